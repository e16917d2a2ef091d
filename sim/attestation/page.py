"""The page of a ledger, drawn from a statement's account and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compliance.ledger.accountant import Neighbours, Rule
from compliance.mechanisms import MECHANISMS
from sim.attestation import figures, law, rates
from sim.report.drawing import Figure
from sim.report.notation import MISSING, as_float, number, plural
from sim.report.page import PageSection, Term, fill
from sim.report.tables import PageTable, PrintedColumn

_Told = Mapping[str, Any]

_ROWS_MAX = 400
"""Most answers in the page's table; the statement has all."""

_UNITS = {
    Neighbours.A_FLIP: "One person's protected attribute, all of them where gaps are by several: which of two groups a "
    "row of the test set is in. A person is one row.",
    Neighbours.ATTRIBUTES: "All of one person's sensitive attributes that are released, together. A person is one row.",
    Neighbours.RECORD: "One record.",
    Neighbours.USER: "One person, with all of that person's records.",
}

_RELATIONS = {
    Neighbours.A_FLIP: "Two data sets are neighbours if they have the same people and labels, and the protected "
    "attribute of one person differs. Nobody is added or left out (the relation is bounded), so how many people there "
    "are is not protected.",
    Neighbours.ATTRIBUTES: "Two data sets are neighbours if they have the same people, and the sensitive attributes of "
    "one person differ, all of them or some. Each person's are randomised on their own (local differential privacy).",
    Neighbours.RECORD: "Two data sets are neighbours if one record differs.",
    Neighbours.USER: "Two data sets are neighbours if they differ in the records of one person.",
}

_RULES = {
    Rule.BASIC: "Epsilons add up, and so do deltas (Rogers et al. 2016).",
    Rule.ADVANCED: "Advanced composition in the form that holds for adaptive questions (Whitehouse et al. 2023).",
    Rule.ZCDP: "Zero-concentrated differential privacy: rho adds up, and is stated as epsilon at delta (Bun and "
    "Steinke 2016; Feldman and Zrnic 2021).",
    Rule.TIGHT: "Exact for Gaussian noise; privacy loss distributions or Renyi divergences for other losses "
    "(Koskela et al. 2020; Smith and Thakurta 2022; Feldman and Zrnic 2021).",
}

_LIMITS: tuple[Term, ...] = (
    (
        "Groups, and what is true of them",
        "The guarantee is for each person. That one group is treated worse than the other is what audits are meant to "
        "tell, and they do. Of k people whose attributes go together, the loss is up to k times epsilon.",
    ),
    (
        "What is public",
        "Labels, features, predictions and the number of people. Where developers lack the labels, answers about a "
        "metric that looks at them tell of the labels as well.",
    ),
    (
        "Whoever holds the data",
        "Compliance sees the protected attribute in the clear. The guarantee is about the answers that leave it, not "
        "about who can read its files. What is signed is compliance's word: nobody else has seen how it computed them.",
    ),
    (
        "Other sources",
        "The same people in other data sets, in another ledger, or in what others publish: each adds its own loss. "
        "Budgets for different units are not added up either.",
    ),
    (
        "Time, and refusals",
        "How long an answer takes is not part of the guarantee. A refusal depends on nothing that is protected.",
    ),
    (
        "What answers are worth",
        "An interval is about the test set and not about other people, and several intervals do not all hold with that "
        "probability at once. A subject of the statement is the predictions that were sent: whether a model in use "
        "makes them, nobody here can tell.",
    ),
    (
        "The ledger",
        "Its records are compliance's own, and chained under its key. A ledger and its head that were both put back to "
        "an older state are not found out. Refusals are counted in a log, which nothing protects.",
    ),
)


def render(account: _Told) -> bytes:
    """Return the page, self-contained HTML: the same bytes for an account, under one version of matplotlib."""
    only = account["only"]
    part = [f"{what} {only[key]}" for key, what in (("dataset", "data set"), ("developer", "developer")) if only[key]]
    page = fill(
        "account.html.j2",
        name=account["deployment"],
        about="What audits were answered, at what cost in privacy, and what bounds that cost.",
        part=f"This page is about {' and '.join(part)} alone; the ledger may hold more." if part else "",
        findings=_findings(account),
        settings=(
            ("signed", f"{moment(account['signedAt'])} UTC, by compliance of {account['deployment']}"),
            ("ledger", plural(account["ledger"]["records"], "record")),
        ),
        told=[section for write in _SECTIONS for section in write(account)],
        limits=_LIMITS,
        checked=_checked(account),
        provenance=(
            *((f"signer's {_SIGNERS[kind]}, SHA-256", digest) for kind, digest in account["signer"].items()),
            ("ledger's head", account["ledger"]["head"]),
            ("fairwall", account["fairwall"]),
        ),
    )
    return page.encode()


_SIGNERS = {"certificate": "certificate", "publicKey": "public key"}


def _findings(account: _Told) -> list[str]:
    audits = account["audits"]
    models = sum(len(audit["models"]) for audit in audits)
    askers = len({audit["developer"] for audit in audits})
    found = [
        f"{plural(len(audits), 'question')} about {plural(models, 'model')} from {plural(askers, 'developer')} "
        f"{'was' if len(audits) == 1 else 'were'} answered."
    ]
    if searches := sum(bool(audit.get("search")) for audit in audits):
        found.append(f"{plural(searches, 'question')} searched for a less discriminatory model.")
    for key, what in (("byGroup", "request for counts by group"), ("releases", "release of sanitised attributes")):
        if bought := account.get(key, []):
            some = what.replace(" ", "s ", 1) if len(bought) > 1 else what
            found.append(f"{len(bought):,} {some} {'was' if len(bought) == 1 else 'were'} answered.")
    found += law.findings(account)
    found += rates.findings(account)
    for one in wholes(account):
        found.append(
            f"{one['dataset']}: ε = {number(one['spent'])} of {number(one['epsilon'])} is spent. {_meaning(one)}"
        )
    raised = sum(one["change"] == "raised" for one in account["budgets"])
    found.append(
        f"Budgets and shares were raised {'once' if raised == 1 else f'{raised} times'}."
        if raised
        else "No budget and no share was raised."
    )
    if account["lost"]:
        found.append(
            "The ledger was lost and put back from an older copy; what it had charged since is charged as below."
        )
    if account["refusals"] is not None:
        found.append(
            f"{plural(refused(account), 'call')} {'was' if refused(account) == 1 else 'were'} refused, by the log."
        )
    found.append("This page is signed. Its last section says how anybody checks that, without a network.")
    return found


def _meaning(one: _Told) -> str:
    spent = as_float(one["spent"])
    if not spent:
        return ""
    if spent > 700:
        return "That bounds nothing."
    delta = f", but for a probability of {number(one['delta'])}" if one["delta"] else ""
    return (
        "Whatever the answers are, they are at most "
        f"{number(math.exp(spent))} times as probable as with a neighbouring data set{delta}."
    )


def _unit(account: _Told) -> list[PageSection]:
    def said(whole: _Told) -> str:
        return _UNITS[Neighbours(whole["neighbours"])]

    return [_by_data_set("unit", "Unit of privacy", account, "neighbours", "what is protected", said)]


def _relation(account: _Told) -> list[PageSection]:
    def said(whole: _Told) -> str:
        # 1 for ledgers that rely on no minimum group, and for statements without the key.
        least = whole.get("minimumGroup", 1)
        larger = f" Both have at least {least} people in each group, wherever a metric looked." if least > 1 else ""
        return _RELATIONS[Neighbours(whole["neighbours"])] + larger

    what = "which data sets are neighbours"
    return [_by_data_set("relation", "Neighbour relation", account, "neighbours", what, said)]


def _composition(account: _Told) -> list[PageSection]:
    section = _by_data_set(
        "composition", "Composition", account, "rule", "how losses add up", lambda whole: _RULES[Rule(whole["rule"])]
    )
    after = (
        "Developers choose each question after the answers before it, its epsilon too: each rule is a privacy filter, "
        "which bounds the loss also then. Losses for different units are never added up. A repeated request gets its "
        "stored answer and costs nothing."
    )
    return [PageSection(section.name, section.heading, table=section.table, after=(after,))]


def _by_data_set(
    name: str, heading: str, account: _Told, key: str, what: str, text: Callable[[_Told], str]
) -> PageSection:
    told = wholes(account)
    table = PageTable(
        (
            PrintedColumn("data set", [one["dataset"] for one in told], numeric=False),
            PrintedColumn("in the ledger", [one[key] for one in told], numeric=False),
            PrintedColumn(what, [text(one) for one in told], numeric=False, wraps=True),
        )
    )
    return PageSection(name, heading, table=table)


def budget(
    account: _Told,
    drawing: Callable[[_Told, str, Sequence[str]], Figure | None] = figures.spent,
) -> list[PageSection]:
    """Return sections on what is left of each account, drawn over time, and on how it was set."""
    accounts, changes = account["accounts"], account["budgets"]
    standing = PageTable(
        (
            *columns(accounts, "dataset", "developer", epsilon="budget, ε", delta="at δ"),
            *columns(accounts, spent="spent, ε", left="left, ε", charges="charges"),
        ),
        (
            "A data set's budget bounds all developers together. A developer's row is a share of it; shares may add "
            "up to more. In the statement, what is spent is rounded up, and what is left down.",
        ),
    )
    drawn = [drawing(account, one["dataset"], developers(account)) for one in wholes(account)]
    history = PageTable(
        columns(changes, "record", "time", "dataset", "developer", "change", epsilon="budget, ε", delta="at δ")
    )
    return [
        PageSection("budget", "Privacy budget", table=standing, figures=[one for one in drawn if one is not None]),
        PageSection("changes", "Privacy budget: how it was set and raised", table=history),
        *_records(
            "lost",
            "Privacy budget: charged for what was lost",
            account["lost"],
            ("record", "time", "dataset", "epsilon", "delta"),
            before="The ledger was lost and put back from a copy that was not the newest. Which answers had left since "
            "is unknown; compliance charged what it states they came to, at most.",
        ),
    ]


def _mechanisms(account: _Told) -> list[PageSection]:
    charges = [*account["audits"], *account.get("byGroup", []), *account["releases"]]
    if not charges:
        return []
    names = sorted({charge["mechanism"] for charge in charges})
    several = [[charge for charge in charges if charge["mechanism"] == name] for name in names]
    table = PageTable(
        (
            PrintedColumn(
                "mechanism", [MECHANISMS[name].title if name in MECHANISMS else name for name in names], numeric=False
            ),
            PrintedColumn("in the ledger", names, numeric=False),
            PrintedColumn("charges", [str(len(some)) for some in several]),
            PrintedColumn(
                "ε of one, least", [number(min(as_float(one["epsilon"]) for one in some)) for some in several]
            ),
            PrintedColumn("most", [number(max(as_float(one["epsilon"]) for one in some)) for some in several]),
        ),
        ("Noise is drawn from the operating system's generator. An answer made from what was paid for costs 0.",),
    )
    return [PageSection("mechanisms", "Mechanisms", table=table)]


def _audits(account: _Told) -> list[PageSection]:
    audits = account["audits"]
    rows = [(audit, which, model) for audit in audits for which, model in enumerate(audit["models"], start=1)]
    shown = rows[-_ROWS_MAX:]
    firsts = [audit for audit, _, _ in shown]
    notes = [
        "Gap: advantaged minus disadvantaged, as answered, with noise. The test set's exact gap lies in its "
        f"guaranteed interval in at least {account['confidence']:.0%} of cases, whoever is who, and in its likely one "
        "if gaps are what a prior expects; both are one where noise has a known law. ε and δ are of the whole batch. "
        "Digest: how the batch's digest in the statement begins; who has the predictions can compute it."
    ]
    if len(shown) < len(rows):
        notes.append(f"The last {len(shown):,} of {len(rows):,} answers; the statement has all.")
    by = ["by"] if any(audit.get("by") for audit in firsts) else []
    table = PageTable(
        (
            *columns(firsts, "record", "time", "dataset", "developer", "request", "metric", *by, "epsilon", "delta"),
            PrintedColumn("model", [_name(audit, which) for audit, which, _ in shown]),
            PrintedColumn("gap", [number(model["gap"]) for _, _, model in shown]),
            PrintedColumn("guaranteed", [_interval(model, "") for _, _, model in shown]),
            PrintedColumn("likely", [_interval(model, "likely_") for _, _, model in shown]),
            *columns(firsts, "digest"),
        ),
        notes,
    )
    asked = sorted({(audit["metric"], audit.get("by") or "") for audit in audits})
    drawn = [figures.answers(account, *each, developers(account)) for each in asked]
    if not rows:
        return [PageSection("answers", "Questions and answers", before=("Nothing was asked.",))]
    return [PageSection("answers", "Questions and answers", table=table, figures=drawn)]


def _searches(account: _Told) -> list[PageSection]:
    rows = [
        (audit, one)
        for audit in account["audits"]
        if (search := audit.get("search"))
        for one in search["candidates"]
        if one["alike"] or one["model"] == search["baseline"]
    ]
    if not rows:
        return []
    searches = [audit for audit in account["audits"] if audit.get("search")]
    of_all = ", ".join(
        f"{plural(len(audit['search']['candidates']), 'candidate')} by {audit['request']}" for audit in searches
    )
    shown = rows[-_ROWS_MAX:]
    table = PageTable(
        (
            *columns([audit for audit, _ in shown], "record", "dataset", "developer", "request", "metric"),
            PrintedColumn("candidate", [one["model"] for _, one in shown], numeric=False, wraps=True),
            PrintedColumn("utility", [number(one["utility"]) for _, one in shown]),
            PrintedColumn("gap, likely", [_interval(one, "") for _, one in shown]),
            PrintedColumn(
                "P(better)", [MISSING if one["better"] is None else f"{one['better']:.0%}" for _, one in shown]
            ),
            PrintedColumn("standing", [_standing(audit["search"], one) for audit, one in shown], numeric=False),
        ),
        (
            f"Searched were {of_all}; the statement has all of them. Utility is the developer's own count, which "
            "nobody here has checked. The gap is believed to lie in its interval in "
            f"{account['confidence']:.0%} of cases, also of a candidate that was chosen for its answer. P(better): "
            "that its gap is nearer to equal treatment than the baseline's. Which candidate was taken, nobody here "
            "can tell.",
        ),
    )
    return [PageSection("searches", "Searches for less discriminatory models", table=table)]


def _name(audit: _Told, which: int) -> str:
    search = audit.get("search")
    return search["candidates"][which - 1]["model"] if search else f"{which}"


def _standing(search: _Told, one: _Told) -> str:
    least = min(
        (each for each in search["candidates"] if each["alike"]), key=lambda one: one["disparity"], default=None
    )
    words = ["baseline"] if one["model"] == search["baseline"] else []
    if one is least:
        words.append("least expected")
    elif one["alike"]:
        words.append("cannot be told apart from the least")
    return ", ".join(words)


def _by_group(account: _Told) -> list[PageSection]:
    keys = ("record", "time", "dataset", "developer", "request", "epsilon", "digest")
    note = (
        "Counts of people by group and decision, with noise. ε bounds what they tell of one person's protected "
        "attributes, all of them together."
    )
    return _records("by-group", "Counts by group", account.get("byGroup", []), keys, note=note)


def _releases(account: _Told) -> list[PageSection]:
    keys = ("record", "time", "dataset", "developer", "request", "mechanism", "epsilon")
    return _records("releases", "Sanitised attributes", account["releases"], keys)


def refusals(account: _Told) -> list[PageSection]:
    """Return a section on refused calls, if they were counted in a log."""
    told = account["refusals"]
    heading = "Refusals"
    if told is None:
        said = "A refusal is charged nothing, and is not in the ledger. No log was given in which to count them."
        return [PageSection("refusals", heading, before=(said,))]
    calls = told["calls"]
    files = ", ".join(f"{log['name']} (SHA-256 {log['digest']['sha256'][:12]})" for log in told["logs"])
    span = f", of calls from {moment(told['from'])} to {moment(told['to'])} UTC" if told["from"] else ""
    before = f"A refusal is charged nothing, and is not in the ledger. These were counted in {files}{span}."
    table = PageTable(columns(calls, "caller", "dataset", "method", "reason", "calls"))
    return [PageSection("refusals", heading, before=(before,), table=table if calls else None)]


def _others(account: _Told) -> list[PageSection]:
    return _records("others", "Other records", account["others"], ("record", "time", "kind"))


def _records(
    name: str, heading: str, rows: Sequence[_Told], keys: Sequence[str], *, before: str = "", note: str = ""
) -> list[PageSection]:
    table = PageTable(columns(rows, *keys), (note,) if note else ())
    return [PageSection(name, heading, before=(before,) if before else (), table=table)] if rows else []


def _checked(account: _Told) -> list[PageSection]:
    by_certificate = "certificate" in account["signer"]
    who = (
        "--authority authority.pem, the file of the deployment's authority, which is in every developer's credentials"
        if by_certificate
        else "--public-key compliance.pub, compliance's public key as it was given to whoever is to check"
    )
    said = (
        "Keep the page and the statement together: the second has the name of the first, and ends in .intoto.json.",
        f"Run: fairwall deploy ledger check PAGE.html {' '.join(who.split()[:2]).rstrip(',')}",
        f"That takes {who}; no service, ledger or network. It says who signed and when, and refuses both files if one "
        "byte of either is another. With --predictions it finds the batches that were about given predictions.",
        "The SHA-256 below is that of the signer's "
        f"{'certificate' if by_certificate else 'public key'}. What was signed is compliance's word for its ledger.",
    )
    return [PageSection("checked", "How this page is checked", before=said)]


_SECTIONS: tuple[Callable[[_Told], list[PageSection]], ...] = (
    *(law.sections, rates.sections, _unit, _relation, budget, _composition),
    *(_mechanisms, _audits, _searches, _by_group, _releases, refusals, _others),
)
"""The preset's requirements, the rates by group that they use, then the topics of SP 800-226."""


def wholes(account: _Told) -> list[_Told]:
    """Return the accounts of whole data sets."""
    return [one for one in account["accounts"] if one["developer"] is None]


def developers(account: _Told) -> list[str]:
    """Return the names of the developers in an account, sorted."""
    return sorted(
        {
            one["developer"]
            for one in (*account["accounts"], *account["audits"], *account.get("byGroup", []))
            if one["developer"]
        }
    )


def refused(account: _Told) -> int:
    """Return the number of refused calls."""
    return sum(one["calls"] for one in account["refusals"]["calls"])


def columns(rows: Sequence[_Told], *keys: str, **headings: str) -> tuple[PrintedColumn, ...]:
    """Return a column for each key of these records; ``headings`` gives keys with an unusual heading."""
    return tuple(
        PrintedColumn(
            heading, [_shown(key, row[key]) for row in rows], numeric=key in _NUMBERS, wraps=_wraps(key, rows)
        )
        for key, heading in ({key: _HEADINGS.get(key, key) for key in keys} | headings).items()
    )


def _wraps(key: str, rows: Sequence[_Told]) -> bool:
    """Return whether a column wraps: names that users choose may be long."""
    return key == "request" or max((len(str(row[key])) for row in rows if key in _CHOSEN), default=0) > _LONG


_CHOSEN = frozenset({"dataset", "developer", "caller", "by"})
_LONG = 24
_NUMBERS = frozenset({"record", "epsilon", "delta", "spent", "left", "charges", "calls", "models"})
_HEADINGS = {
    "time": "time, UTC",
    "dataset": "data set",
    "epsilon": "ε",
    "delta": "δ",
    "mechanism": "protocol",
    "method": "call",
}


def _shown(key: str, value: Any) -> str:
    if key in _NUMBERS:
        return number(value, digits=6)
    match key:
        case "time":
            return moment(value)
        case "digest":
            return str(value)[:12]
        case "method":
            return str(value).rpartition(".")[2]
        case "developer":
            return value or "all"
        case "dataset" | "by":
            return value or MISSING
        case _:
            return str(value)


def _interval(model: _Told, kind: str) -> str:
    low, high = (model.get(f"{kind}{end}") for end in ("low", "high"))
    return MISSING if low is None or high is None else f"{number(low)} to {number(high)}"


def moment(time: str) -> str:
    """Return a time of the account in readable form, to the second."""
    return f"{time[:10]} {time[11:19]}"
