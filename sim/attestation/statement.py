"""An in-toto Statement v1 about the predictions of each batch that was answered.

It is made from the ledger's records, which have the developers' answers and nothing else of the data, and from refused
calls, which the ledger does not keep.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import fairwall
from compliance.answers.audits import column_of, intervals_of, search_of, values_of
from compliance.answers.groups import METRIC as BY_GROUP
from compliance.ledger.accountant import FREE, Budget, Loss
from compliance.ledger.entries import LOST, BudgetRecord, LedgerEntry
from compliance.ledger.place import Inspection
from fairwall.laws.noise.quantiles import LEVEL
from sim.attestation.envelope import PREDICATE_TYPE, STATEMENT_TYPE
from sim.attestation.rates import rates_of

_POINTS = 40
"""Most points in time at which a data set's spending is stated: a composition rule may take long to evaluate."""

_RELEASE = "release"
"""The ledger's metric name for a release of sanitised attributes."""


def account_of(
    chains: Sequence[Inspection],
    deployment: str,
    at: datetime,
    signer: dict[str, str],
    *,
    dataset: str | None = None,
    developer: str | None = None,
    refusals: dict[str, Any] | None = None,
    law: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Return the content of a ledger, as the predicate of a statement, in values that JSON can write.

    An infinite number is ``"inf"``, an unknown end of an interval None. ``chains`` are whole; ``at`` is the time of
    signing; ``signer`` is `sim.attestation.envelope.Signer.described`. ``dataset`` and ``developer`` keep only their
    records, but a data set's total loss is always stated. ``refusals`` and ``law`` are as `sim.attestation.refusals`
    and `sim.attestation.law.stated` return them.
    """
    records = [record for found in chains for record in found.records if _concerns(record, dataset, developer)]
    charges = [record for record in records if isinstance(record, LedgerEntry)]
    asked = [entry for entry in charges if entry.request.metric not in (BY_GROUP, _RELEASE, LOST)]
    return {
        "deployment": deployment,
        "signedAt": _time(at.timestamp()),
        "signer": signer,
        "fairwall": fairwall.__version__,
        "ledger": {"records": sum(len(found.records) for found in chains), "head": _head(chains)},
        "only": {"dataset": dataset, "developer": developer},
        "confidence": LEVEL,
        "accounts": [
            _account(found, *names)
            for found in chains
            for names in found.books.accounts
            if _is_told(*names, dataset, developer)
        ],
        "budgets": _budgets([record for record in records if isinstance(record, BudgetRecord)]),
        "course": _course([record for found in chains for record in found.records], dataset, developer),
        "audits": [_audit(entry) for entry in asked],
        "byGroup": [
            {**_batch(entry), **rates_of(entry.reply.answer)} for entry in charges if entry.request.metric == BY_GROUP
        ],
        "releases": [_charge(entry) for entry in charges if entry.request.metric == _RELEASE],
        "lost": [_charge(entry) for entry in charges if entry.request.metric == LOST],
        "others": [
            {**_frame(record), "kind": type(record).__name__}
            for record in records
            if not isinstance(record, LedgerEntry | BudgetRecord)
        ],
        "refusals": refusals,
        "law": [*law],
    }


def statement_of(account: dict[str, Any], files: Mapping[str, bytes]) -> bytes:
    """Return the statement of an account in JSON, with the digests of its files: the page first, then tables."""
    subjects = [{"name": name, "digest": {"sha256": hashlib.sha256(file).hexdigest()}} for name, file in files.items()]
    subjects += [
        {"name": audit["subject"], "digest": {"blake3": audit["digest"]}}
        for audit in (*account["audits"], *account.get("byGroup", []))
    ]
    whole = {"_type": STATEMENT_TYPE, "subject": subjects, "predicateType": PREDICATE_TYPE, "predicate": account}
    return json.dumps(whole, allow_nan=False).encode()


def _head(chains: Sequence[Inspection]) -> str:
    """Return the chain's head; for several, the SHA-256 of their heads in the order of their names."""
    ends = [found.books.head.chain for found in sorted(chains, key=lambda chain: chain.chain)]
    return (ends[0] if len(ends) == 1 else hashlib.sha256(b"".join(ends)).digest()).hex()


def _concerns(record: object, dataset: str | None, developer: str | None) -> bool:
    if isinstance(record, BudgetRecord):
        return _is_told(record.dataset, record.developer, dataset, developer)
    if isinstance(record, LedgerEntry):
        return _is_told(record.request.dataset, record.request.developer, dataset, developer)
    return True


def _is_told(about: str, whose: str, dataset: str | None, developer: str | None) -> bool:
    return dataset in (None, about) and (developer is None or whose in ("", LOST, developer))


def _account(chain: Inspection, dataset: str, developer: str) -> dict[str, Any]:
    standing = chain.books.standing(dataset, developer)
    assert standing.budget is not None, "accounts are those that have one"
    losses = chain.books.losses(dataset, developer)
    return {
        "dataset": dataset,
        "developer": developer or None,
        "neighbours": chain.books.neighbours[dataset].value,
        "minimumGroup": chain.books.counted_on.get(dataset, 1),
        **_terms(standing.budget),
        "spent": _number(standing.spent),
        "left": _number(standing.remaining),
        "charges": sum(losses.values()),
    }


def _budgets(records: Sequence[BudgetRecord]) -> list[dict[str, Any]]:
    told, before = [], dict[tuple[str, str], Budget]()
    for record in records:
        account = (record.dataset, record.developer)
        if before.get(account) != record.budget:
            told.append(
                {
                    **_frame(record),
                    "dataset": record.dataset,
                    "developer": record.developer or None,
                    "neighbours": record.neighbours.value,
                    **_terms(record.budget),
                    "change": _change(before.get(account), record.budget),
                }
            )
        before[account] = record.budget
    return told


def _change(before: Budget | None, now: Budget) -> str:
    if before is None:
        return "set"
    return "raised" if now.epsilon > before.epsilon or now.delta > before.delta else "lowered"


def _course(records: Sequence[object], dataset: str | None, developer: str | None) -> list[dict[str, Any]]:
    budgets: dict[tuple[str, str], Budget] = {}
    losses: defaultdict[tuple[str, str], Counter[Loss]] = defaultdict(Counter)
    points: defaultdict[tuple[str, str], list[list[Any]]] = defaultdict(list)
    charged = Counter(record.request.dataset for record in records if isinstance(record, LedgerEntry))
    seen: Counter[str] = Counter()
    for record in records:
        if isinstance(record, BudgetRecord):
            budgets[record.dataset, record.developer] = record.budget
        if not isinstance(record, LedgerEntry):
            continue
        about, whose = record.request.dataset, record.request.developer
        for account in {(about, ""), (about, whose)}:
            if record.request.loss != FREE:
                losses[account][record.request.loss] += 1
        seen[about] += 1
        every = math.ceil(charged[about] / _POINTS)
        if seen[about] % every and seen[about] != charged[about]:
            continue
        for account in budgets:
            if account[0] == about and losses[account] and _is_told(*account, dataset, developer):
                spent = _number(budgets[account].spent(losses[account]))
                if not points[account] or points[account][-1][1] != spent:
                    points[account].append([_time(record.time), spent])
    return [
        {"dataset": about, "developer": whose or None, "points": points[about, whose]}
        for about, whose in sorted(points)
    ]


def _audit(entry: LedgerEntry) -> dict[str, Any]:
    names = "gap", "low", "high", "likely_low", "likely_high"
    guaranteed, likely = intervals_of(entry)
    return {
        **_batch(entry),
        "by": column_of(entry) or None,
        "models": [
            {name: _number(value) for name, value in zip(names, told, strict=True)}
            for told in zip(values_of(entry), *guaranteed, *likely, strict=True)
        ],
        "search": _search(entry),
    }


def _search(entry: LedgerEntry) -> dict[str, Any] | None:
    """Return the candidates of a search for the least gap, and their answers; None if the batch was no search."""
    found = search_of(entry)
    if found is None:
        return None
    told = found.candidates
    return {
        "baseline": told.names[told.baseline],
        "atLeast": told.at_least,
        "candidates": [
            {name: _number(value) if isinstance(value, float) else value for name, value in each.items()}
            for each in found.records()
        ],
    }


def _batch(entry: LedgerEntry) -> dict[str, Any]:
    asked = entry.request
    return {**_charge(entry), "subject": f"{asked.developer}/{asked.request_id}", "digest": asked.digest.hex()}


def _charge(entry: LedgerEntry) -> dict[str, Any]:
    asked, loss = entry.request, entry.request.loss
    return {
        **_frame(entry),
        "dataset": asked.dataset,
        "developer": asked.developer,
        "request": asked.request_id,
        "metric": asked.metric,
        "mechanism": asked.mechanism,
        "neighbours": asked.neighbours.value,
        "law": loss.law.value,
        "epsilon": _number(loss.epsilon),
        "delta": loss.delta,
        "multiplier": loss.multiplier or None,
    }


def _frame(record: Any) -> dict[str, Any]:
    return {"record": record.sequence, "time": _time(record.time)}


def _terms(budget: Budget) -> dict[str, Any]:
    return {"rule": budget.rule.value, "epsilon": _number(budget.epsilon), "delta": budget.delta}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _number(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return float(value)
