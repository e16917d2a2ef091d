"""The accounts that a policy opens: audits, counts by group and releases, all charged to one ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import TYPE_CHECKING

from compliance.answers.accounts import Accounts
from compliance.answers.audits import AuditCase
from compliance.answers.groups import GroupCase
from compliance.answers.releases import AttributeRelease
from compliance.answers.sealed import ScorerProcess, SealedModels
from compliance.deployment.answer_value import later
from compliance.deployment.committed import Derive, committed
from compliance.deployment.policy.loading import Data
from compliance.ledger import Ledger

if TYPE_CHECKING:
    from compliance.answers.exposure import BudgetExposure


def opened(data: Sequence[Data], ledger: Ledger, work: Executor, scorer: ScorerProcess | None = None) -> Accounts:
    """Open every data set's accounts, by data set name; `work` computes budget exposures in the background."""
    audits = {
        each.policy.data_name: case_of(
            each,
            ledger,
            ledger.derived_key,
            ledger.begun_at(each.policy.data_name),
            later(work, each.policy, each.first),
            _sealed(each, scorer),
        )
        for each in data
    }
    releases = {each.policy.data_name: _release(each, ledger) for each in data if each.released is not None}
    return Accounts(audits, _grouped(data, audits), dict(releases))


def case_of(
    data: Data,
    ledger: Ledger,
    derive: Derive,
    begun: bytes,
    exposure: Callable[[], BudgetExposure] | None = None,
    sealed: SealedModels | None = None,
) -> AuditCase:
    """Return the case of a data set, with the policy's mechanism.

    Its noise is the system's, never seeded, unless the policy commits to a key, which `derive` makes, for the ledger
    whose chain starts at `begun`.
    """
    policy, key = data.policy, derive("data")
    column, *others = data.records
    bound = committed(policy, data.first, derive, begun) if policy.audit.committed else None
    case = AuditCase(
        dataset=policy.data_name,
        records=data.first,
        protected=column if data.tables is None else "",
        rows=data.rows,
        mechanism=policy.mechanism,
        ledger=ledger,
        queries_max=policy.audit.queries_max,
        epsilon_max=policy.epsilon_max,
        epsilon_min=policy.audit.epsilon_min,
        answer_seconds=policy.audit.answer_seconds,
        delta=policy.audit.delta,
        precision=policy.audit.precision,
        developers=frozenset(policy.developers),
        shares=policy.shares,
        answers_a_day=data.answers_a_day,
        budget_exposure=exposure,
        tables=data.tables,
        sealed=sealed,
        noise_of=None if bound is None else bound.noise_of,
        commitment=None if bound is None else (bound.commitment, bound.terms_digest),
    )
    by = {name: data.records[name] for name in others}
    return replace(
        case,
        others={
            name: replace(case, records=records, protected=name, bought_under=records.fingerprint(key))
            for name, records in by.items()
        },
    )


def _sealed(data: Data, scorer: ScorerProcess | None) -> SealedModels | None:
    asked = data.policy.sealed
    if asked is None or data.features is None:
        return None
    assert scorer is not None, "it was started for a policy that has this"
    return SealedModels(asked.features, data.features, asked.megabytes << 20, asked.seconds, scorer)


def _grouped(data: Sequence[Data], cases: Mapping[str, AuditCase]) -> dict[str, GroupCase]:
    return {
        each.policy.data_name: GroupCase(
            cases[each.policy.data_name],
            each.grouped,
            each.policy.data.least_share,
            each.policy.limit,
        )
        for each in data
        if each.grouped is not None
    }


def _release(data: Data, ledger: Ledger) -> AttributeRelease:
    policy, released = data.policy, data.released
    assert policy.release is not None, "what was released was read by it"
    assert released is not None
    return AttributeRelease(
        policy.release_name,
        policy.release.protocol,
        *released,
        ledger,
        seed=None,
        epsilon_min=policy.release.epsilon_min,
        developers=frozenset(policy.developers),
        answers_a_day=data.answers_a_day,
    )
