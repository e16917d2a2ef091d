"""The requirements of a legal preset, compared with a ledger: the first section of a page whose policy names a preset.

A table is judged by the smallest rate over the largest, whichever groups have them: the interval of that ratio holds
these people's exact one in at least 95% of cases. The requirements are the preset's reading; it cites its sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compliance.deployment.policy.schema import Policies
from fairwall.laws.groups.group_tables import UNDEFINED
from fairwall.tables.values import is_unknown
from sim.attestation import rates
from sim.report.notation import MISSING, number, plural
from sim.report.page import PageSection
from sim.report.tables import PageTable, PrintedColumn

_Told = Mapping[str, Any]

_NO_ADVICE = "No legal advice: this is what the authors of the preset read in the sources below, as of that day."

_BY_DEFAULT = ("selection_rate", "scoring_rate", "mean_score")
"""Measures that `by_group` requests by default."""


@dataclass(frozen=True)
class _Table:
    """A table in the ledger: its request, attributes and measure, and its anchor on the page, or ""."""

    request: _Told
    over: tuple[str, ...]
    measure: str
    place: str


def stated(policies: Policies, dataset: str | None = None) -> list[dict[str, Any]]:
    """Return the presets of a policy's data sets, or of one: the name, the file's digest and the whole content."""
    return [
        {
            "dataset": policy.data_name,
            "preset": policy.law.preset.name,
            "digest": {"sha256": policy.law.preset.digest.hex()},
            "columns": policy.law.columns,
            **policy.law.preset.asks.model_dump(mode="json"),
        }
        for policy in policies.datasets.values()
        if policy.law is not None and dataset in (None, policy.data_name)
    ]


def findings(account: _Told) -> list[str]:
    """Return, for each preset, a line on how many of its tables the ledger has."""
    return [
        f"{law['preset']}, {law['dataset']}: {_there(account, law)} No legal advice." for law in account.get("law", ())
    ]


def sections(account: _Told) -> list[PageSection]:
    """Return each preset's sections: requirements, tables in the ledger, what noise means for them, and sources."""
    return [
        section
        for place, law in enumerate(account.get("law", ()))
        for section in (
            _main(account, law, f"law-{place}"),
            *_left_out(account, law, f"law-{place}-left-out"),
            _asked(law, f"law-{place}-asked"),
            _sources(law, f"law-{place}-sources"),
        )
    ]


def _main(account: _Told, law: _Told, name: str) -> PageSection:
    rows = [(by, table) for by in _wanted(account, law) for table in (_tables(account, law, by) or (None,))]
    about = (
        f"{law['jurisdiction']}. Data set {law['dataset']}, preset {law['preset']}, checked on {law['checked']}. "
        f"{_NO_ADVICE}"
    )
    return PageSection(
        name,
        law["title"],
        before=(about,),
        conclusions=[_there(account, law), *_calls(account, law)],
        table=_page_table(law, rows) if rows else None,
        after=law["noise"],
    )


def _page_table(law: _Told, rows: Sequence[tuple[tuple[str, ...], _Table | None]]) -> PageTable:
    tables = [table for _, table in rows]
    columns = [
        PrintedColumn("table", [f"by {rates.named(by)}" for by, _ in rows], numeric=False, stays=True),
        PrintedColumn("request", list(map(_request, tables)), numeric=False, wraps=True, stays=True),
        PrintedColumn("measure", [rates.called(one.measure) if one else MISSING for one in tables], numeric=False),
        PrintedColumn("worst ratio", list(map(_worst, tables)), numeric=False, wraps=True, stays=True),
    ]
    notes = [
        "Worst ratio: the smallest rate over the largest, whoever has them; in brackets, where the exact one of these "
        "people lies in at least 95% of cases, noise counted."
    ]
    if threshold := law["threshold"]:
        judged = [_judged(one, threshold) for one in tables]
        columns.append(PrintedColumn(f"below {threshold:g}", judged, numeric=False, stays=True))
        notes.append("Yes or no: the whole interval is on that side. Open: noise leaves it open.")
    if law["tables"]:
        categories = {_columns(law, table["by"]): table["categories"] for table in law["tables"]}
        columns.append(PrintedColumn("categories", [categories[by] for by, _ in rows], numeric=False, wraps=True))
    if likely := {found for one in tables if one and (found := rates.likely(one.request, one.over))}:
        notes.append(
            f"Known by probabilities, set right by a golden sample: {', '.join(sorted(likely))}. "
            "The preset does not say whether the rule takes such figures."
        )
    return PageTable(columns, notes, links=[one.place if one else "" for one in tables])


def _wanted(account: _Told, law: _Told) -> list[tuple[str, ...]]:
    """Return the columns of each table that the rule names; if it names none, of each table in the ledger."""
    named = [_columns(law, table["by"]) for table in law["tables"]]
    there = {table.over: None for table in _tables(account, law)}
    return named or list(there)


def _columns(law: _Told, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(law["columns"].get(name, name) for name in names)


def _tables(account: _Told, law: _Told, by: tuple[str, ...] | None = None) -> list[_Table]:
    """Return the ledger's last tables of measures that count, oldest first, by these columns in any order."""
    places = {(id(request), *rest): f"rates-{place}" for place, (request, *rest) in enumerate(rates.asked(account))}
    return [
        _Table(request, over, measure, places.get((id(request), over, measure), ""))
        for request, over, measure in rates.asked(account, len(account["byGroup"]))
        if request["dataset"] == law["dataset"] and measure in law["measures"] and (by is None or {*by} == {*over})
    ][-rates.REQUESTS_MAX :]


def _there(account: _Told, law: _Told) -> str:
    wanted = _wanted(account, law)
    if not law["measures"]:
        return "The rule asks for no table; what it asks for stands below."
    if not law["tables"]:
        return f"The rule names no table; kinds of tables by group here: {len(wanted)}."
    here = sum(bool(_tables(account, law, by)) for by in wanted)
    return f"Tables that the rule asks for: {len(wanted)}; here: {here}."


def _calls(account: _Told, law: _Told) -> Iterator[str]:
    """Yield which tables are missing, and the developer's calls that would make them."""
    missing = [by for by in _wanted(account, law) if not _tables(account, law, by)]
    if not missing:
        return
    named = "; ".join(f"by {rates.named(by)}" for by in missing)
    measures = "" if {*law["measures"]} & {*_BY_DEFAULT} else f", measures={tuple(law['measures'])}"
    # Counts by several attributes include the tables by any of them.
    calls = [
        f"audits.by_group(predictions, by={by}, epsilon=...{measures})"
        for by in missing
        if not any({*by} < {*other} for other in missing)
    ]
    yield f"Not here: {named}. A developer has them made by {' and '.join(calls)}."


def _request(table: _Table | None) -> str:
    return rates.asker(table.request) if table else "not here"


def _pairs(table: _Table | None) -> Sequence[_Told]:
    return rates.of(table.request["worst"], table.over, table.measure) if table else ()


def _worst(table: _Table | None) -> str:
    known = [pair for pair in _pairs(table) if pair["ratio"] is not None]
    if not known:
        return UNDEFINED if _pairs(table) else MISSING
    pair = min(known, key=lambda pair: float(pair["ratio"]))
    middle, low, high = (number(pair[f"ratio{end}"]) for end in ("", "_low", "_high"))
    model = f", model {pair['model']} of {len(known)}" if len(known) > 1 else ""
    return f"{middle} [{low} to {high}]: {', '.join(pair['least'])} over {', '.join(pair['most'])}{model}"


def _judged(table: _Table | None, threshold: float) -> str:
    said = [_side(pair, threshold) for pair in _pairs(table)]
    several = {side: said.count(side) for side in ("yes", "open", "no", UNDEFINED) if side in said}
    if len(said) > 1 and len(several) > 1:
        return ", ".join(f"{side}: {plural(many, 'model')}" for side, many in several.items())
    return next(iter(several), MISSING)


def _side(pair: _Told, threshold: float) -> str:
    low, high = pair["ratio_low"], pair["ratio_high"]
    if pair["ratio"] is None:
        return UNDEFINED
    return "yes" if high < threshold else "no" if low >= threshold else "open"


def _left_out(account: _Told, law: _Told, name: str) -> list[PageSection]:
    last = [tables[-1] for by in _wanted(account, law) if (tables := _tables(account, law, by))]
    rows = [(table, row, share) for table in last for row, share in _not_compared(table)]
    if not rows:
        return []
    shown = [row for _, row, _ in rows]
    table = PageTable(
        (
            PrintedColumn("group", [", ".join(row["group"]) for row in shown], False, stays=True),
            PrintedColumn("table", [f"by {rates.named(table.over)}" for table, _, _ in rows], False, stays=True),
            PrintedColumn("why", [_why(table, row) for table, row, _ in rows], False, stays=True),
            rates.with_ends("people", shown, "people", digits=6),
            PrintedColumn("share of all", [f"{share:.1%}" for _, _, share in rows], stays=True),
            rates.with_ends("rate", shown, "rate"),
        ),
        (
            "Of each table's newest request, its first model. Who is unknown is in no ratio; who is small is decided "
            "by an estimate, which has noise.",
        ),
    )
    return [PageSection(name, f"{law['preset']}: who is in no ratio", table=table)]


def _not_compared(table: _Table) -> Iterator[tuple[_Told, float]]:
    rows = [row for row in rates.of(table.request["rates"], table.over, table.measure) if row["model"] == 1]
    people = sum(row["people"] for row in rows)
    yield from ((row, row["people"] / (people or 1)) for row in rows if not row["compared"])


def _why(table: _Table, row: _Told) -> str:
    if any(map(is_unknown, row["group"])):
        return "unknown"
    least = table.request["leastShare"]
    return f"small: below {number(100 * least)}%" if least else "next to nobody"


def _asked(law: _Told, name: str) -> PageSection:
    conditions = law["safeguards"]
    heads = {"asked": "condition", "has": "here", "lacks": "not here"}
    table = PageTable(
        tuple(PrintedColumn(head, [one[key] for one in conditions], False, wraps=True) for key, head in heads.items())
    )
    return PageSection(
        name,
        f"{law['preset']}: what the rule asks",
        conclusions=law["wording"],
        table=table if conditions else None,
    )


def _sources(law: _Told, name: str) -> PageSection:
    told = law["sources"]
    columns = [
        PrintedColumn(key, [one[key] for one in told], False, wraps=True) for key in ("title", "citation", "url")
    ]
    dates = PrintedColumn("date", [f"{one['dated']} {one['date']}" for one in told], False, wraps=True)
    read = PrintedColumn("read by the preset's authors", [one["read"] for one in told], False, wraps=True)
    digest = f"The SHA-256 of the preset's file begins with {law['digest']['sha256'][:12]}; the statement has it all."
    return PageSection(
        name,
        f"{law['preset']}: what the rule does not say, and sources",
        conclusions=law["not_said"],
        table=PageTable((*columns, dates, read), (digest,)),
        after=(f"Checked on {law['checked']}: a rule may have changed since. {_NO_ADVICE}",),
    )
