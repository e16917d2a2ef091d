"""A budget that is spent in several batches on finding out who is who reveals no more than is told of it beforehand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from compliance.answers.audits import AuditCase, facts_of
from compliance.answers.charging import DEVELOPER, game_ledger
from compliance.answers.exposure import limited, offers
from compliance.ledger.accountant import Budget, Neighbours
from compliance.mechanisms import MECHANISMS
from compliance.records.people import Records
from fairwall.laws.choice.cell_purchases import purchases
from fairwall.laws.metrics.group_size_range import Shares
from fairwall.laws.privacy.budget_exposure import revealed_by_budget
from fairwall.laws.privacy.exposure import Limit, cells_within

N = 3000


def played(limit: Limit, n0: int, paid: list[float], trials: int) -> tuple[float, float]:
    """Buy cells of people drawn at random, batch by batch, and add up what all counts say: the mean, and its error."""
    rng, found = np.random.default_rng(13), []
    for _ in range(trials):
        protected = (rng.permutation(N) >= n0).astype(np.uint8)
        records = Records(np.zeros(N, np.uint8), protected, ("sp",), n0)
        ledger = game_ledger("people", Neighbours.A_FLIP, Budget(math.fsum(paid) + 1e-9))
        case = AuditCase("people", records, limited(MECHANISMS["cells"], limit), ledger, 100, seed=rng.bytes(32))
        for number, epsilon in enumerate(paid):
            cells = min(max(6, cells_within(N, epsilon, limit)), 60)
            score = (rng.permutation(N) + 0.5) / N
            batch = (score > np.arange(1, cells)[:, np.newaxis] / cells).astype(np.float64)
            case.answer(DEVELOPER, str(number), b"", "sp", batch, epsilon)
        score = np.zeros(N)
        for one in purchases(facts_of(ledger.facts("people", DEVELOPER))):
            size = np.bincount(one.cell_of)
            spread = size * n0 * (N - n0) / N**2 + one.variances
            score += ((one.counts - size * n0 / N - 0.5) / spread)[one.cell_of]
        guess, z = score > 0, protected == 0
        found.append((guess[z].mean() + (~guess[~z]).mean()) / 2)
    return float(np.mean(found)), float(np.std(found) / math.sqrt(trials))


def told(limit: Limit, n0: int, epsilon: float) -> float:
    records = Records.imagined(np.zeros(N, np.uint8), (np.arange(N) >= n0).astype(np.uint8), ("sp",), n0)
    mechanism = limited(MECHANISMS["cells"], limit)
    batch = (1e-3, math.inf, 0.0)
    (offer,) = offers(records, mechanism, 100, batch, limit, by_group=False, released=0.0)
    return revealed_by_budget(offer, epsilon)


def policy_of(least: int) -> Limit:
    return Limit(0.6, Shares(minimum_group=least, by_policy=True))


# Each costs a little more than the one before, or it would be answered for nothing.
TWO, SIX = [0.999, 1.0], [0.33 + number / 1000 for number in range(6)]


@pytest.mark.check
@pytest.mark.parametrize(("least", "paid"), [(300, TWO), (30, SIX)])
def test_several_batches_reveal_no_more_than_is_told_of_their_budget(least: int, paid: list[float]) -> None:
    found, error = played(policy_of(least), least, paid, 8)
    # False alarms: one in ten million.
    assert found < told(policy_of(least), least, math.fsum(paid)) + 5.2 * error


@pytest.mark.check
def test_what_is_reckoned_for_the_range_of_shares_is_found_out() -> None:
    """The broken twin: a limit and a figure for groups of 5% and more, `audit.shares`, and a group of 0.5%."""
    limit, paid = Limit(0.6), [2.499, 2.5]
    found, error = played(limit, 15, paid, 8)
    assert found > told(limit, 15, math.fsum(paid)) + 5.2 * error


@pytest.mark.check
def test_what_cannot_answer_a_metric_is_not_sold() -> None:
    """Noise on gaps cannot protect ratios: no attack on them is looked at, and a service that sells `di` starts."""
    records = Records.imagined(np.zeros(18, np.uint8), (np.arange(18) >= 5).astype(np.uint8), ("sp", "di"), 1)
    batch = (1e-3, 0.5, 0.0)
    ratios, gaps = offers(records, MECHANISMS["recommended"], 4, batch, policy_of(1), by_group=True, released=0.0)
    assert (ratios.metric, gaps.metric) == ("di", "sp")
    assert set(gaps.names) - set(ratios.names) == {"laplace", "cauchy"}
    assert 0.5 < revealed_by_budget(ratios, 0.5) <= revealed_by_budget(gaps, 0.5) < 1
