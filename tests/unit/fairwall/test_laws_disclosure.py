"""What a count tells of one person: Bayes's rule by counting small worlds, and the bound where it holds and not."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from compliance.answers.studies import Study
from compliance.ledger import Ledger
from developer.disclosure import believe
from fairwall.laws.studies import disclosure
from fairwall.laws.studies.disclosure import MODES, PriorKnowledge, advantage, bound, bound_applies, posterior
from sim.games import lay_out
from sim.games.disclosure import deal
from sim.games.disclosure.trial import DisclosureOutcome, _disclosure_deal, _DisclosureTrial, record, summarise
from sim.games.submissions import AuditReport

RATE = 0.2
EPSILONS = (0.5, 2.0, math.inf)


def worlds() -> Iterator[PriorKnowledge]:
    for mode, epsilon, others, takes_part in itertools.product(MODES, EPSILONS, (0, 2), (True, False)):
        if mode == "presence" and not takes_part:
            continue
        told = None if mode == "presence" else takes_part
        yield PriorKnowledge(mode, epsilon, others, None, told, RATE)
        if mode != "inferential":
            for yes in range(others + 1):
                yield PriorKnowledge(mode, epsilon, others, yes, told, RATE)


def noise(z: int, epsilon: float) -> float:
    if math.isinf(epsilon):
        return float(z == 0)
    a = math.exp(-epsilon)
    return (1 - a) / (1 + a) * a ** abs(z)


def counted(known: PriorKnowledge, count: int) -> tuple[float, float]:
    """Count every fact and every answer of the others: P(count and s = 0), P(count and s = 1), of what is known."""
    found = [0.0, 0.0]
    for secret, fact in itertools.product((0, 1), repeat=2):
        rate = 0.5
        weight = 0.25
        if known.mode == "inferential":
            rate = 1 - RATE if fact else RATE
            weight = 0.5 * (rate if secret else 1 - rate)
        own = secret if known.takes_part in (None, True) else 0
        for answers in itertools.product((0, 1), repeat=known.others):
            yes = sum(answers)
            if known.others_yes in (None, yes):
                law = rate**yes * (1 - rate) ** (known.others - yes)
                found[secret] += weight * law * noise(count - yes - own, known.epsilon)
    return found[0], found[1]


def test_the_posterior_is_what_counting_gives() -> None:
    for mode in MODES:
        for known in (world for world in worlds() if world.mode == mode):
            total = 0.0
            # Beyond these counts the laws have less than e^-40.
            reach = 0 if math.isinf(known.epsilon) else math.ceil(40 / known.epsilon)
            yes = known.others_yes
            all_of_x = 1.0 if yes is None else math.comb(known.others, yes) / 2**known.others
            for count in range(-reach, known.others + 2 + reach):
                no, one = counted(known, count)
                total += abs(one - no) / all_of_x
                expected = one / (no + one) if no + one > 0 else 0.5
                assert posterior(known, count) == pytest.approx(expected, abs=1e-9), (known, count)
            assert advantage(known) == pytest.approx(total, abs=1e-9), known
            if bound_applies(known.mode):
                assert advantage(known) <= bound(known.epsilon) + 1e-12, known


def test_known_answers_and_geometric_noise_attain_the_bound() -> None:
    for epsilon in (0.1, 1.0, 3.0, math.inf):
        known = PriorKnowledge("presence", epsilon, 500, 250, None, RATE)
        assert advantage(known) == pytest.approx((math.e**epsilon - 1) / (math.e**epsilon + 1) if epsilon < 9 else 1.0)


def test_a_mechanism_with_half_the_noise_is_above_the_bound() -> None:
    half = PriorKnowledge("presence", 2.0, 10, 5, None, RATE)
    assert advantage(half) > bound(1.0) + 0.2


def test_what_a_study_teaches_of_others_no_epsilon_hides() -> None:
    for takes_part in (True, False):
        known = PriorKnowledge("inferential", 0.1, 1000, None, takes_part, RATE)
        assert advantage(known) == pytest.approx(1 - 2 * RATE, abs=1e-3)
        assert advantage(known) > 10 * bound(0.1)


def test_one_of_a_thousand_does_not_show_in_a_share() -> None:
    """The paper's (3) calls it all but certain that Alice takes part, given a share of 1,000 people; it is a coin."""
    assert advantage(PriorKnowledge("presence", math.inf, 1000, None, None, RATE)) < 0.03


def test_a_count_that_no_study_has_teaches_nothing() -> None:
    known = PriorKnowledge("attribute", math.inf, 3, None, True, RATE)
    assert [posterior(known, count) for count in (-1, 5)] == [disclosure.PRIOR] * 2


CELLS = {
    "presence": {"alice": "drawn", "knows": "others", "epsilon": 1.0},
    "attribute": {"knows": "law", "people": 8, "epsilon": 2.0},
    "inferential": {"alice": "out", "people": 20, "epsilon": 0.5},
    "identity": {"cells": 20, "people": 40, "epsilon": "inf"},
}


@pytest.mark.few(2)
@pytest.mark.parametrize("mode", CELLS)
def test_what_is_drawn_has_the_law_that_is_computed(mode: str) -> None:
    """False alarms: five standard errors, twice for each mode, one in 200,000."""
    trials = 400
    values = {
        "scenario": {"name": "laws", "game": "disclosure", "trials": trials},
        "disclosure": {"mode": mode, "people": 30, **CELLS[mode]},
    }
    cell = lay_out(values, "laws.toml").cells[0]
    lines, ledger = [], Ledger()
    for trial in range(trials):
        dealt = deal.deal(cell, trial, "deal-1")
        own = dealt.study
        study = Study(
            "deal-1", own.cells.astype(np.intp), own.answers, own.width, own.records, ledger, dealt.compliance.seed
        )
        told, _ = _disclosure_deal(_DisclosureTrial(dealt))
        believed = believe(told, study.tabulated("table-1", dealt.study.epsilon))
        lines += record(cell, trial, dealt, DisclosureOutcome(believed, AuditReport((), 0.0)))
    found = summarise({}, lines)
    right = np.array([line["right"] for line in lines], dtype=float)
    law = np.array([line["advantage_law"] for line in lines])
    error = 2 * math.sqrt(0.25 / trials)
    assert abs(2 * right.mean() - 1 - law.mean()) < 5 * error
    # The posterior's own advantage has the same mean.
    sure = np.array([abs(2 * line["posterior"] - 1) for line in lines])
    assert abs(sure.mean() - law.mean()) < 5 * max(sure.std() / math.sqrt(trials), 1e-9) + 0.01
    if mode == "identity":
        assert abs(found["linked"] / trials - found["linked_law"]) < 5 * 0.5 / math.sqrt(trials)
