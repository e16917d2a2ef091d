"""What a policy opens: audits, counts by group and releases, all charged to one ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace

from compliance.answers.accounts import Accounts
from compliance.answers.audits import Case
from compliance.answers.groups import GroupCase
from compliance.answers.releases import Release
from compliance.answers.sealed import Scorer, Sealed
from compliance.deployment.policy.loading import Data
from compliance.deployment.worth import later
from compliance.ledger import Ledger


def opened(data: Sequence[Data], ledger: Ledger, work: Executor, scorer: Scorer | None = None) -> Accounts:
    """Open every data set, each kind of account by what requests call the data; what `later` finds out comes later."""
    audits = {each.policy.data_name: _case(each, ledger, work, scorer) for each in data}
    releases = {each.policy.data_name: _release(each, ledger) for each in data if each.released is not None}
    return Accounts(audits, _grouped(data, audits), dict(releases))


def _case(data: Data, ledger: Ledger, work: Executor, scorer: Scorer | None) -> Case:
    """Choose the mechanism that a deployment answers with; its noise is the system's, never seeded."""
    policy, key = data.policy, ledger.derived_key("data")
    column, *others = data.records
    case = Case(
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
        budget_exposure=later(work, policy, data.first),
        tables=data.tables,
        sealed=_sealed(data, scorer),
    )
    by = {name: data.records[name] for name in others}
    return replace(
        case,
        others={
            name: replace(case, records=records, protected=name, bought_under=records.fingerprint(key))
            for name, records in by.items()
        },
    )


def _sealed(data: Data, scorer: Scorer | None) -> Sealed | None:
    asked = data.policy.sealed
    if asked is None or data.features is None:
        return None
    assert scorer is not None, "it was started for a policy that has this"
    return Sealed(asked.features, data.features, asked.megabytes << 20, asked.seconds, scorer)


def _grouped(data: Sequence[Data], cases: Mapping[str, Case]) -> dict[str, GroupCase]:
    """Open what is asked by group, at the terms of the audits of the same people."""
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


def _release(data: Data, ledger: Ledger) -> Release:
    policy, released = data.policy, data.released
    assert policy.release is not None, "what was released was read by it"
    assert released is not None
    return Release(
        policy.release_name,
        policy.release.protocol,
        *released,
        ledger,
        seed=None,
        epsilon_min=policy.release.epsilon_min,
        developers=frozenset(policy.developers),
        answers_a_day=data.answers_a_day,
    )
