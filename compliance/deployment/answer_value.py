"""The worth of a policy's answers by metric, and what they reveal, computed when a service starts."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from compliance.answers.expectation import Expectation, expected_about
from compliance.answers.exposure import BudgetExposure, exposure_about, offers
from compliance.deployment.policy.schema import DEVELOPERS_LISTED, Policy, PolicyError
from compliance.records.people import Records
from fairwall.laws.choice.prediction import midpoint
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.privacy.budget_exposure import (
    BUDGETS,
    AuditOffer,
    budget_that_keeps,
    most_by_budget,
    revealed_by_budget,
)
from fairwall.tables.columns import names_of

LOG = logging.getLogger(__name__)

_KEPT = (0.6, 0.7, 0.8)
"""Balanced accuracies for which the largest budget that keeps within them is reported."""

_BATCH = 25
"""Models of a typical batch, where the policy allows that many."""


@dataclass(frozen=True)
class Worth:
    """The worth of a metric's answers at the largest epsilon that the policy allows.

    `one`, `batch`: of one model, and of each model of a typical batch. `revealed`: balanced accuracies of attacks with
    one such answer, and such a batch; NaN if not known.
    """

    metric: str
    one: Expectation
    batch: Expectation
    revealed: tuple[float, float]


def spendable(policy: Policy) -> float:
    """Return the most epsilon that any developer can spend on one batch."""
    return min(policy.epsilon_max, max(share.epsilon for share in policy.developers.values()))


def batch_of(policy: Policy) -> int:
    """Return the number of models of a typical batch."""
    return min(_BATCH, policy.audit.queries_max)


def worths(policy: Policy, records: Records) -> Iterator[Worth]:
    """Yield the worth of each metric, in up to a second or two each; no protected attribute is read."""
    return (_worth(policy, records, metric) for metric in policy.audit.metrics)


def _worth(policy: Policy, records: Records, metric: str) -> Worth:
    one, batch = (_expected(policy, records, metric, models) for models in (1, batch_of(policy)))
    return Worth(metric, one, batch, _revealed_by_batches(policy, records, metric))


def _expected(policy: Policy, records: Records, metric: str, models: int) -> Expectation:
    spent, delta = spendable(policy), policy.audit.delta
    return expected_about(records, policy.mechanism, metric, models, spent, delta, policy.shares)


def _revealed_by_batches(policy: Policy, records: Records, metric: str) -> tuple[float, float]:
    spent, delta = spendable(policy), policy.audit.delta
    one, batch = (
        exposure_about(records, policy.mechanism, metric, models, spent, delta, policy.shares)
        for models in (1, batch_of(policy))
    )
    return one, batch


def later(work: Executor, policy: Policy, records: Records) -> Callable[[], BudgetExposure]:
    """Compute a policy's worth in the background and log it; return a function that waits for the budget exposure."""
    total = work.submit(budget_exposure, policy, records)
    found = [work.submit(_worth, policy, records, metric) for metric in policy.audit.metrics]
    work.submit(lambda: say(policy, records, [each.result() for each in found]))
    return total.result


def budget_exposure(policy: Policy, records: Records) -> BudgetExposure:
    """Return what whole budgets reveal, in half a second; no protected attribute is read."""
    sold = _offers(policy, records)
    return BudgetExposure(
        {name: _revealed(sold, each.epsilon) for name, each in policy.developers.items()},
        _revealed(sold, policy.budget.epsilon),
        _proved(policy, records),
        {share: budget_that_keeps(sold, share) or 0.0 for share in _KEPT if sold},
    )


def _proved(policy: Policy, records: Records) -> float:
    people = min(records.exposed(metric) // len(find_metric(metric).strata) for metric in records.metrics)
    least = policy.shares.allowed(people)[0]
    return most_by_budget(people, least, policy.budget.epsilon + policy.released, policy.budget.delta)


def _offers(policy: Policy, records: Records) -> list[AuditOffer]:
    """Return what is sold; empty for rules other than basic composition, and for golden samples: no attack is known.

    A golden sample is fewer people, whom a request tells apart.
    """
    if policy.budget.rule != "basic" or policy.data.probabilities:
        return []
    audited = policy.audit
    batch = (audited.epsilon_min, audited.epsilon_max or math.inf, audited.delta)
    by_group, queries = bool(policy.data.groups), audited.queries_max
    return offers(records, policy.mechanism, queries, batch, policy.limit, by_group=by_group, released=policy.released)


def _revealed(sold: Sequence[AuditOffer], epsilon: float) -> float:
    return max((revealed_by_budget(offer, epsilon) for offer in sold), default=math.nan)


def check_revealed(policy: Policy, records: Records) -> None:
    """Raise PolicyError if a batch reveals more than an explicit `reveal_max`, or the budget more than `reveal_total`.

    Only what the policy limits is computed: a starting service waits for this. The error is one line that says what
    would keep the limit.
    """
    audited = policy.audit
    if audited.reveal_total < 1:
        _check_total(policy, records)
    for metric in audited.metrics if "reveal_max" in audited.model_fields_set else ():
        for count, revealed in zip((1, batch_of(policy)), _revealed_by_batches(policy, records, metric), strict=True):
            if revealed > audited.reveal_max:
                raise PolicyError(
                    f"{policy.data_name}: audit.reveal_max: {metric} of {count} at epsilon {spendable(policy):g} "
                    f"gives away a balanced accuracy of {_percent(revealed)}; "
                    f"{_helps('audit.epsilon_max', _batch_that_keeps(policy, records, metric, count))}"
                )


def _check_total(policy: Policy, records: Records) -> None:
    sold, limit = _offers(policy, records), policy.audit.reveal_total
    told = _of_all(_revealed(sold, policy.budget.epsilon), _proved(policy, records))
    if told > limit:
        kept = budget_that_keeps(sold, limit) if sold else None
        raise PolicyError(
            f"{policy.data_name}: audit.reveal_total: a budget of epsilon {policy.budget.epsilon:,g} gives away a "
            f"balanced accuracy of {_percent(told)}; {_helps('budget.epsilon', kept)}"
        )


def _of_all(together: float, most: float) -> float:
    """Return what a whole budget reveals: by the best attack known, or the proved bound if none is."""
    return most if math.isnan(together) else together


def _batch_that_keeps(policy: Policy, records: Records, metric: str, models: int) -> float | None:
    """Return the largest of `BUDGETS` that a batch may spend within `reveal_max`, if any."""
    delta, limit = policy.audit.delta, policy.audit.reveal_max
    smaller = [each for each in BUDGETS if each < spendable(policy)]
    while smaller:
        about = (records, policy.mechanism, metric, models, smaller[-1], delta, policy.shares)
        if exposure_about(*about) <= limit:
            return smaller[-1]
        smaller.pop()
    return None


def _helps(key: str, epsilon: float | None) -> str:
    keeps = f"{key} = {epsilon:g} keeps it, and so may" if epsilon else "what may keep it is"
    return f"{keeps} a larger data.minimum_group; --even-if-revealing serves all the same"


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def check(policy: Policy, records: Records) -> None:
    """Raise PolicyError if the middle of a metric's range, a free guess, beats the best answer that the policy sells.

    The error is one line that names the metric, the epsilon and what would help.
    """
    for metric in policy.audit.metrics:
        one = _expected(policy, records, metric, 1)
        if _is_worthless(one):
            better = "" if policy.audit.mechanism == "recommended" else ', mechanism = "recommended"'
            raise PolicyError(
                f"{policy.data_name}: audit: {metric} of one model at epsilon {spendable(policy):g} "
                f"{_comparison(metric, one)}: more people{better} or a larger epsilon would help; "
                "--even-if-worthless serves all the same"
            )


def say(policy: Policy, records: Records, by_metric: list[Worth]) -> None:
    """Write the lines of `told` to the log."""
    for level, line in told(policy, records, by_metric):
        LOG.log(level, "%s", line)


def told(policy: Policy, records: Records, by_metric: list[Worth]) -> Iterator[tuple[int, str]]:
    """Yield log lines, each with its level, about what a data set's answers are worth and reveal."""
    name, models = policy.data_name, batch_of(policy)
    yield logging.INFO, f"{name}: 95% interval (median error) at epsilon {spendable(policy):g}"
    yield logging.INFO, f"{name}: {'metric':<10} {'one model':<19} {models} in a batch"
    rows = [f"{worth.metric:<10} {_figures(worth.one):<19} {_figures(worth.batch)}" for worth in by_metric]
    yield from ((logging.INFO, f"{name}: {row}") for row in rows)
    if any("~" in row for row in rows):
        yield logging.INFO, f"{name}: ~ is a likely interval, where none is guaranteed"
    for worth in by_metric:
        for count, expected in {1: worth.one, models: worth.batch}.items():
            if _is_worthless(expected):
                yield logging.WARNING, f"{name}: {worth.metric} of {count} {_comparison(worth.metric, expected)}"
        for count, revealed in zip((1, models), worth.revealed, strict=True):
            if revealed > policy.audit.reveal_max:
                yield (
                    logging.WARNING,
                    f"{name}: {worth.metric} of {count} gives away a balanced accuracy of {_percent(revealed)}, "
                    f"groups of {policy.data.minimum_group}: audit.reveal_max is not kept",
                )
    total = budget_exposure(policy, records)
    yield from ((logging.INFO, f"{name}: {line}") for line in _told_of_budgets(policy, total))
    if (revealed := _of_all(total.together, total.most)) > policy.audit.reveal_total:
        yield (
            logging.WARNING,
            f"{name}: a budget of epsilon {policy.budget.epsilon:,g} gives away a balanced accuracy of "
            f"{_percent(revealed)}: audit.reveal_total is not kept",
        )


def _told_of_budgets(policy: Policy, total: BudgetExposure) -> Iterator[str]:
    groups = f"groups of {policy.data.minimum_group} and more"
    whoever = (
        f"whoever spends all of epsilon {policy.budget.epsilon:,g} on who is who has a balanced accuracy of at most"
    )
    proved = f"{whoever} {_percent(total.most)}, whatever it does: proved, for {groups}"
    if math.isnan(total.together):
        yield proved
        return
    by_share: dict[str, list[str]] = {}
    for name, revealed in total.revealed.items():
        by_share.setdefault(_percent(revealed), []).append(name)
    shares = "; ".join(f"{names_of(names, DEVELOPERS_LISTED)} {share}" for share, names in by_share.items())
    yield f"{whoever} {_percent(total.together)} by the best attack known here, {groups}; with a share of it {shares}"
    yield proved
    kept = ", ".join(f"{_percent(share)} {epsilon:,g}" for share, epsilon in total.kept.items())
    yield f"budgets that keep so much by that attack: {kept}"


def _is_worthless(expected: Expectation) -> bool:
    return expected.error >= expected.midpoint_error  # never where answers are choices, and their error NaN


def _comparison(metric: str, expected: Expectation) -> str:
    return f"errs by {expected.error:.2g}, saying {midpoint(metric):g} by {expected.midpoint_error:.2g}"


def _figures(expected: Expectation) -> str:
    if math.isnan(expected.error):
        return "no value"
    sure, likely = expected.half_width, expected.likely_half_width
    interval = f"±{sure:.2g} " if not math.isnan(sure) else "" if math.isnan(likely) else f"~±{likely:.2g} "
    return f"{interval}({expected.error:.2g})"
