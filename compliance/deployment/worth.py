"""Whether a policy sells anything: what answers of each metric will be worth, told and judged when a service starts."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass

from compliance.answers.expectation import Expectation, expected_about
from compliance.answers.exposure import exposure_about
from compliance.deployment.policy.schema import Policy, PolicyError
from compliance.records.people import Records
from fairwall.laws.standings import midpoint

LOG = logging.getLogger(__name__)

_BATCH = 25
"""Models of a typical batch, where the policy allows so many."""


@dataclass(frozen=True)
class Worth:
    """What a metric's answers are worth where as much is spent as the policy allows.

    Parameters
    ----------
    one, batch : Expectation
        Of one model, and of each model of a typical batch.
    revealed : tuple of float
        What one such answer gives away, and such a batch: NaN where that is not known.
    """

    metric: str
    one: Expectation
    batch: Expectation
    revealed: tuple[float, float]


def spendable(policy: Policy) -> float:
    """Return the most epsilon that any developer can spend on one batch."""
    return min(policy.epsilon_max, max(share.epsilon for share in policy.developers.values()))


def batch_of(policy: Policy) -> int:
    """Return how many models a typical batch has."""
    return min(_BATCH, policy.audit.queries_max)


def worths(policy: Policy, records: Records) -> Iterator[Worth]:
    """Find out for each metric of a policy; nothing protected is looked at. Takes up to a second or two for each."""
    for metric in policy.audit.metrics:
        asked = [
            (records, policy.mechanism, metric, models, spendable(policy), policy.audit.delta, policy.shares)
            for models in (1, batch_of(policy))
        ]
        one, batch = (expected_about(*each) for each in asked)
        of_one, of_batch = (exposure_about(*each) for each in asked)
        yield Worth(metric, one, batch, (of_one, of_batch))


def check(policy: Policy, found: list[Worth]) -> None:
    """Refuse a policy if the middle of some metric's range, which costs nothing, beats the best answer that it sells.

    Raises
    ------
    PolicyError
        With one line that names the metric, the epsilon and what would help.
    """
    for worth in found:
        if _is_worthless(worth.one):
            better = "" if policy.audit.mechanism == "recommended" else ', mechanism = "recommended"'
            raise PolicyError(
                f"{policy.data_name}: audit: {worth.metric} of one model at epsilon {spendable(policy):g} "
                f"{_comparison(worth.metric, worth.one)}: more people{better} or a larger epsilon would help; "
                "--even-if-worthless serves all the same"
            )


def say(policy: Policy, found: list[Worth]) -> None:
    """Tell the log, one line for each metric, and one more where answers are worth nothing."""
    for level, line in told(policy, found):
        LOG.log(level, "%s", line)


def told(policy: Policy, found: list[Worth]) -> Iterator[tuple[int, str]]:
    """Tell what answers of a data set will be worth: lines, each with the log's level."""
    name, models = policy.data_name, batch_of(policy)
    yield logging.INFO, f"{name}: 95% interval, ~ where not guaranteed (median error), at epsilon {spendable(policy):g}"
    yield logging.INFO, f"{name}: {'metric':<10} {'one model':<19} {models} in a batch"
    for worth in found:
        yield logging.INFO, f"{name}: {worth.metric:<10} {_figures(worth.one):<19} {_figures(worth.batch)}"
    for worth in found:
        for count, expected in {1: worth.one, models: worth.batch}.items():
            if _is_worthless(expected):
                yield logging.WARNING, f"{name}: {worth.metric} of {count} {_comparison(worth.metric, expected)}"
        for count, revealed in zip((1, models), worth.revealed, strict=True):
            if revealed > policy.audit.reveal_max:
                yield (
                    logging.WARNING,
                    f"{name}: {worth.metric} of {count} gives away a balanced accuracy of {100 * revealed:.3g}%, "
                    f"groups of {policy.data.minimum_group}: audit.reveal_max is not kept",
                )


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
