"""Rates by group as they were released, for a statement and its page: by single attributes and by several together.

The four-fifths rule and New York's Local Law 144 use, for each group, the number of people, the rate, and the impact
ratio: the rate over that of the most favoured group. All is computed from the developer's answers
(`fairwall.laws.groups.group_tables`), with the noise counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

from fairwall.client.by_group import ByGroup
from fairwall.compliance.v1.group_service_pb2 import GroupRelease
from fairwall.laws.groups.group_tables import UNDEFINED
from fairwall.laws.noise.quantiles import LEVEL
from sim.attestation import figures
from sim.report.notation import MISSING, number, plural
from sim.report.page import PageSection
from sim.report.tables import PageTable, PrintedColumn, as_csv, plain

_Told = Mapping[str, Any]

REQUESTS_MAX = 12
"""Most requests whose rates are on the page; the statement has all."""

_SUBSETS_OF = 3
"""Most attributes of which all subsets have tables; of more, single attributes and all together have."""

_IN_SHORT = 3
"""Most requests in the findings at the page's top."""

_ID_MAX = 24

_SURE = 0.95

_COLUMNS = ("people", "rate", "difference", "ratio")
"""Figures that have an interval."""


@lru_cache(maxsize=4096)
def rates_of(answer: bytes) -> dict[str, Any]:
    """Return the rates in counts by group: a row for each model, measure and group, and the pairs furthest apart.

    ``answer`` is a ``GroupRelease`` as the ledger keeps it. The result is cached: callers must not change it. It is
    empty for releases of versions that did not name their attributes.
    """
    release = GroupRelease.FromString(answer)
    if not release.by:
        return {}
    found = ByGroup.read(release, epsilon_charged=0.0, epsilon_remaining=0.0, epsilon_remaining_now=0.0)
    ways = [over for many in _sizes(len(found.by)) for over in combinations(found.by, many)]
    return {
        "by": list(found.by),
        "leastShare": found.least_share,
        **({"byProbabilities": {"attribute": found.probable, "golden": found.golden}} if found.probable else {}),
        "rates": [row for over in ways for row in _rows(found, over)],
        "worst": [pair for over in ways for pair in _worst(found, over)],
    }


def _sizes(attributes: int) -> Sequence[int]:
    """Return the numbers of attributes in tables: all subsets of more than three are too many to read."""
    return range(1, attributes + 1) if attributes <= _SUBSETS_OF else (1, attributes)


def _rows(answer: ByGroup, over: Sequence[str]) -> Iterator[dict[str, Any]]:
    records = answer.records(over)
    for measure in answer.measures:
        for record in records:
            told = {key.removeprefix(f"{measure}_"): value for key, value in record.items()}
            told["rate"], told["rate_low"], told["rate_high"] = (record[measure + end] for end in ("", "_low", "_high"))
            yield {
                "over": list(over),
                "measure": measure,
                "model": record["model"] + 1,
                "group": [record[name] for name in over],
                "compared": record["compared"],
                **{f"{name}{end}": _number(told[f"{name}{end}"]) for name in _COLUMNS for end in ("", "_low", "_high")},
                "below_four_fifths": _number(told["below_four_fifths"]),
                "p_value": _number(told.get("p_value", math.nan)),
                **({"proxy_p_value": _number(told["proxy_p_value"])} if answer.probable else {}),
            }


def _worst(answer: ByGroup, over: Sequence[str]) -> Iterator[dict[str, Any]]:
    for measure in answer.measures:
        for model in range(answer.models):
            worst = answer.worst_pair(measure, model, over)
            if worst is not None:
                most, least, pair = worst
                yield {
                    "over": list(over),
                    "measure": measure,
                    "model": model + 1,
                    "most": list(most),
                    "least": list(least),
                    **{f"ratio{end}": _number(getattr(pair, f"ratio{end}")) for end in ("", "_low", "_high")},
                    "below_four_fifths": _number(pair.below),
                }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def table_of(account: _Told) -> bytes:
    """Return all rates of an account as a CSV file, a row for each model, measure and group; numbers in full."""
    told = [*(f"{name}{end}" for name in _COLUMNS for end in ("", "_low", "_high")), "below_four_fifths", "p_value"]
    head = ["dataset", "developer", "request", "model", "by", "group", "measure", "compared", *told]
    rows = [
        [
            *map(plain, (request["dataset"], request["developer"], request["request"], str(row["model"]))),
            *map(plain, (named(row["over"]), ", ".join(row["group"]), row["measure"])),
            "yes" if row["compared"] else "no",
            *("" if row[name] is None else repr(row[name]) for name in told),
        ]
        for request in account.get("byGroup", ())
        for row in request.get("rates", ())
    ]
    return as_csv([head, *rows])


def findings(account: _Told) -> list[str]:
    """Return findings on the last requests' selection and scoring rates: the four-fifths rule's question."""
    return [
        f"{asker(request)}, {called(measure)} by {named(over)}: {said}"
        for request, over, measure in asked(account, _IN_SHORT)
        if measure in ("selection_rate", "scoring_rate")
        for said in _verdicts(of(request["worst"], over, measure), 1)
    ]


def sections(account: _Told) -> list[PageSection]:
    """Return a section for each request's rates: by single attributes, then by several together."""
    told = list(asked(account))
    return [_section(request, over, measure, place) for place, (request, over, measure) in enumerate(told)]


def asked(account: _Told, most: int = REQUESTS_MAX) -> Iterator[tuple[_Told, tuple[str, ...], str]]:
    """Yield the tables of the last requests: request, attributes, measure."""
    for request in [one for one in account.get("byGroup", ()) if one.get("rates")][-most:]:
        ways = dict.fromkeys((row["measure"], tuple(row["over"])) for row in request["rates"])
        yield from ((request, over, measure) for measure, over in ways)


def _section(request: _Told, over: Sequence[str], measure: str, place: int) -> PageSection:
    rows, worst = (of(request[what], over, measure) for what in ("rates", "worst"))
    several = len({row["model"] for row in rows}) > 1
    table = PageTable(
        (
            *([PrintedColumn("model", [str(row["model"]) for row in rows], stays=True)] if several else []),
            PrintedColumn(named(over), [", ".join(row["group"]) for row in rows], numeric=False, stays=True),
            with_ends("people", rows, "people", digits=6),
            with_ends("rate", rows, called(measure)),
            with_ends("ratio", rows, "impact ratio"),
            PrintedColumn(
                "P(ratio < 0.8)",
                [UNDEFINED if _is_undefined(row, "ratio") else _probability(row["below_four_fifths"]) for row in rows],
                stays=True,
            ),
            with_ends("difference", rows, "difference"),
            *(
                [PrintedColumn("p-value", [number(row["p_value"]) for row in rows])]
                if rows[0]["p_value"] is not None
                else []
            ),
        ),
        (
            "Impact ratio: a group's rate over the most favoured group's; difference: that rate less the group's. "
            "Numbers in brackets hold the exact value of these people in at least 95% of cases, noise counted. "
            "P(ratio < 0.8) leans to yes: noise makes the largest of several rates larger.",
            *_left_out(request, rows),
            *_by_probabilities(request, over, rows),
        ),
        keys=2 if several else 1,
    )
    heading = f"{called(measure).capitalize()} by {named(over)}: {asker(request)}"
    drawn = figures.ratios(f"ratios-{place}", heading, rows) if len(rows) <= figures.ANSWERS_MAX else None
    return PageSection(
        f"rates-{place}",
        heading,
        conclusions=_verdicts(worst, 3),
        table=table,
        figures=[drawn] if drawn is not None else [],
    )


def _is_undefined(row: _Told, name: str) -> bool:
    """Return whether a group's figure is 0 over 0, rather than left out."""
    return row[name] is None and (row["compared"] or name == "rate")


def with_ends(name: str, rows: Sequence[_Told], head: str, digits: int = 3) -> PrintedColumn:
    """Return a column of a figure with the ends of its interval."""

    def text(row: _Told) -> str:
        if _is_undefined(row, name):
            return UNDEFINED
        middle, low, high = (number(row[f"{name}{end}"], digits) for end in ("", "_low", "_high"))
        return middle if MISSING in (low, high) else f"{middle} [{low} to {high}]"

    return PrintedColumn(head, list(map(text, rows)), stays=True)


def _verdicts(worst: Sequence[_Told], most: int) -> list[str]:
    """Describe the groups furthest apart, for the models most likely to be below four fifths."""
    if not worst:
        return []
    order = sorted(worst, key=lambda pair: (-(pair["below_four_fifths"] or 0), pair["ratio"] or 0, pair["model"]))
    several = len(worst) > 1
    said = [
        (f"model {pair['model']}: " if several else "")
        + (
            f"{', '.join(pair['least'])} has {number(pair['ratio'])} [{number(pair['ratio_low'])} to "
            f"{number(pair['ratio_high'])}] times the rate of {', '.join(pair['most'])}; below four fifths with a "
            f"probability of {_probability(pair['below_four_fifths'])}."
            if pair["ratio"] is not None
            else f"impact ratios are {UNDEFINED}: no group has a rate above 0."
        )
        for pair in order[:most]
    ]
    if several:
        below = sum((pair["below_four_fifths"] or 0) >= _SURE for pair in worst)
        above = sum((pair["below_four_fifths"] if pair["ratio"] is not None else 1) <= 1 - _SURE for pair in worst)
        said.append(
            f"Of {plural(len(worst), 'model')}, {below} {'is' if below == 1 else 'are'} below four fifths with a "
            f"probability of {_SURE:.0%} and more, and {above} above; of the others noise leaves it open."
        )
    return said


def _left_out(request: _Told, rows: Sequence[_Told]) -> list[str]:
    names = list(dict.fromkeys(", ".join(row["group"]) for row in rows if not row["compared"]))
    if not names:
        return []
    share = request["leastShare"]
    small = f", and groups that are estimated below {share:.0%} of the people" if share else ""
    return [f"Not compared: {'; '.join(names)}. People of whom something is unknown are not{small}."]


def likely(request: _Told, over: Sequence[str]) -> str | None:
    """Return the attribute of a table that is known by probabilities, or None."""
    attribute: str | None = request.get("byProbabilities", {}).get("attribute")
    return attribute if attribute in over else None


def _by_probabilities(request: _Told, over: Sequence[str], rows: Sequence[_Told]) -> list[str]:
    """Note that an attribute is known by probabilities, and whether the golden sample contradicts them."""
    if likely(request, over) is None:
        return []
    known = request["byProbabilities"]
    tested = [row["proxy_p_value"] for row in rows if row["proxy_p_value"] is not None]
    broken = min(tested, default=1.0) < 1 - LEVEL
    return [
        f"{known['attribute']} is known by probabilities; it is known for sure of {known['golden']:,} people, "
        "drawn at random, by whom the rates are set right. Intervals count what is open for either reason. "
        + (
            "Probabilities alone would give wrong rates: what was decided depends on the groups beyond them."
            if broken
            else "Nothing says that probabilities alone would give other rates."
        )
    ]


def of(rows: Sequence[_Told], over: Sequence[str], measure: str) -> list[_Told]:
    """Return the rows of one table."""
    return [row for row in rows if (tuple(row["over"]), row["measure"]) == (tuple(over), measure)]


def named(over: Sequence[str]) -> str:
    """Return the names of attributes, joined."""
    return " and ".join(over)


def called(measure: str) -> str:
    """Return a measure's name in words."""
    return measure.replace("_", " ")


def _probability(value: float | None) -> str:
    if value is None:
        return MISSING
    return "more than 99%" if value > 0.99 else "less than 1%" if value < 0.01 else f"{value:.0%}"


def asker(request: _Told) -> str:
    """Return a request's name: the developer and the id, with a long (generated) id cut."""
    name = request["request"]
    return f"{request['developer']}/{name if len(name) <= _ID_MAX else name[: _ID_MAX // 2] + '…'}"
