"""Services that leak: each tells a caller, or whoever reads a log, something of protected values beside noisy numbers.

Test subjects, never to be served. Each changes one thing of a sound service.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from compliance.answers import audit_service, groups, releases
from compliance.answers import audits as cases
from compliance.deployment import reload, telemetry
from compliance.deployment.policy import loading
from compliance.ledger.accountant import pure
from compliance.ledger.entries import LedgerError
from compliance.mechanisms.counts import CountsMechanism
from compliance.mechanisms.mechanism import BatchQuestion, exactly, with_interval
from compliance.mechanisms.noise_on_gaps import LaplaceMechanism
from compliance.mechanisms.randomized_response import RandomizedResponse
from compliance.mechanisms.recommended import Recommended
from compliance.noise.sampling import step_for
from fairwall.laws.noise.distributions import Laplace
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.attestation import statement

_FEW = 6
"""So few people are a small group, to services that look."""


def _smallest(case: cases.AuditCase) -> int:
    return case.records.smallest_group(case.records.metrics[0])


def narrower_intervals_for_even_groups(patch: pytest.MonkeyPatch) -> None:
    def noisy(self: Any, question: BatchQuestion, *given: Any, sound: Any = LaplaceMechanism.noisy) -> Any:
        found = sound(self, question, *given)
        n0, n1 = question.records.counts(question.metric)
        reach = (found.high - found.values) * (1 - min(n0, n1) / 1000)
        return replace(found, low=found.values - reach, high=found.values + reach)

    patch.setattr(LaplaceMechanism, "noisy", noisy)


def tables_cost_less_of_uneven_groups(patch: pytest.MonkeyPatch) -> None:
    def loss(self: groups.GroupCase, epsilon: float) -> Any:
        return pure(epsilon * np.bincount(self.people.codes[0]).max() / len(self.people.labels))

    patch.setattr(groups.GroupCase, "loss", loss)


def small_groups_are_refused(patch: pytest.MonkeyPatch) -> None:
    def validate(header: Any, case: cases.AuditCase, sound: Any = audit_service._validate) -> str:
        if _smallest(case) < _FEW:
            raise Refusal(error_pb2.REASON_MECHANISM_REFUSES)
        return sound(header, case)

    patch.setattr(audit_service, "_validate", validate)


def free_answers_are_exact(patch: pytest.MonkeyPatch) -> None:
    def release(self: Any, question: BatchQuestion, facts: Any, epsilon: float, *given: Any) -> Any:
        return (
            exactly(question.gaps()) if self.is_free(facts, epsilon) else sound(self, question, facts, epsilon, *given)
        )

    sound = RandomizedResponse.release
    patch.setattr(RandomizedResponse, "release", release)


def facts_hold_exact_sizes(patch: pytest.MonkeyPatch) -> None:
    def noisy(self: Any, question: BatchQuestion, *given: Any, sound: Any = CountsMechanism.noisy) -> Any:
        found, (n0, _) = sound(self, question, *given), question.records.counts(question.metric)
        return replace(found, facts={name: np.array([n0, *fact[1:]]) for name, fact in found.facts.items()})

    patch.setattr(CountsMechanism, "noisy", noisy)


def the_exact_gaps_choose(patch: pytest.MonkeyPatch) -> None:
    def chosen(self: Any, *given: Any, sound: Any = Recommended.chosen) -> Any:
        question = given[5]
        is_odd = question is not None and question.metric != "di" and 1000 * np.abs(question.gaps()).max() % 2 > 1
        return LaplaceMechanism() if is_odd else sound(self, *given)

    patch.setattr(Recommended, "chosen", chosen)


def revealed_of_the_groups_as_they_are(patch: pytest.MonkeyPatch) -> None:
    def revealed(self: cases.AuditCase, *given: Any, sound: Any = cases.AuditCase.revealed) -> float:
        return sound(replace(self, shares=replace(self.shares, minimum_group=_smallest(self))), *given)

    patch.setattr(cases.AuditCase, "revealed", revealed)


def logs_how_many(patch: pytest.MonkeyPatch) -> None:
    def answer(self: cases.AuditCase, *given: Any, sound: Any = cases.AuditCase.answer) -> Any:
        audit_service.LOG.debug("%d people are disadvantaged", self.records.counts("sp")[0])
        return sound(self, *given)

    patch.setattr(cases.AuditCase, "answer", answer)


def _sizes(patch: pytest.MonkeyPatch) -> dict[str, int]:
    """Have the smallest group of what is served put down, by what requests call it."""
    sizes: dict[str, int] = {}

    def opened(data: Any, *given: Any, sound: Any = reload.opened) -> Any:
        accounts = sound(data, *given)
        sizes.update({name: _smallest(case) for name, case in accounts.audits.items()})
        return accounts

    patch.setattr(reload, "opened", opened)
    return sizes


def labels_calls_with_the_smallest_group(patch: pytest.MonkeyPatch) -> None:
    sizes = _sizes(patch)

    def emit(self: Any, record: Any, sound: Any = telemetry._Calls.emit) -> None:
        call = record.call
        record.call = call | {"dataset": str(sizes)}
        sound(self, record)
        record.call = call

    patch.setattr(telemetry._Calls, "emit", emit)


def the_page_tells_the_smallest_group(patch: pytest.MonkeyPatch) -> None:
    sizes = _sizes(patch)

    def account_of(*given: Any, sound: Any = statement.account_of) -> Any:
        return sound(*given) | {"groups": str(sizes)}

    patch.setattr(statement, "account_of", account_of)


def less_noise_for_even_groups(patch: pytest.MonkeyPatch) -> None:
    def noisy(self: Any, question: BatchQuestion, _: Any, epsilon: float, __: float, noise: Any) -> Any:
        law = Laplace(question.queries / min(question.records.counts(question.metric)) / epsilon)
        step = step_for(1 / epsilon)
        return with_interval(noise.laplace(question.gaps(), law.scale, step), replace(law, scale=1 / epsilon), step)

    patch.setattr(LaplaceMechanism, "noisy", noisy)


def releases_in_the_order_of_attributes(patch: pytest.MonkeyPatch) -> None:
    def sanitised(
        self: releases.AttributeRelease, *given: Any, sound: Any = releases.AttributeRelease.sanitised
    ) -> Any:
        return sound(self, *given)[np.argsort(self.values[:, 0], kind="stable")]

    patch.setattr(releases.AttributeRelease, "sanitised", sanitised)


def an_error_tells_how_many(patch: pytest.MonkeyPatch) -> None:
    def received(header: Any, requests: Any, case: cases.AuditCase, sound: Any = audit_service.received) -> Any:
        try:
            return sound(header, requests, case)
        except Refusal as refusal:
            raise Refusal(error_pb2.AuditError(reason=refusal.reason, people=case.records.counts("sp")[0])) from None

    patch.setattr(audit_service, "received", received)


def another_policy_is_refused_where_groups_are_small(patch: pytest.MonkeyPatch) -> None:
    def agree(policy: Any, data: Any, of: Any, sound: Any = reload.agree) -> None:
        if any(each.first.smallest_group(each.first.metrics[0]) < _FEW for each in data):
            raise LedgerError("a group is too small for another policy")
        sound(policy, data, of)

    patch.setattr(reload, "agree", agree)


def whoever_lacks_a_group_is_left_out(patch: pytest.MonkeyPatch) -> None:
    def audited(data: Any, name: str, table: Any, sound: Any = loading._audited) -> Any:
        looked_at = [column for column in (data.label, data.protected) if column not in data.impute]
        if data.missing == "refuse" or not looked_at:
            return sound(data, name, table)
        return ~np.any([loading.ColumnValues.of(name, column, table).missing() for column in looked_at], axis=0)

    patch.setattr(loading, "_audited", audited)


LEAKS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    leak.__name__: leak
    for leak in (
        tables_cost_less_of_uneven_groups,
        whoever_lacks_a_group_is_left_out,
        small_groups_are_refused,
        narrower_intervals_for_even_groups,
        free_answers_are_exact,
        facts_hold_exact_sizes,
        the_exact_gaps_choose,
        revealed_of_the_groups_as_they_are,
        labels_calls_with_the_smallest_group,
        the_page_tells_the_smallest_group,
        logs_how_many,
        releases_in_the_order_of_attributes,
        less_noise_for_even_groups,
        an_error_tells_how_many,
        another_policy_is_refused_where_groups_are_small,
    )
}
