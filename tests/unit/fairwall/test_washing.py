"""How surely a customer's reports tell, and commitments: by counting small worlds, and by what they must not do."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adversary.play import reported
from compliance.games.wash import judge
from fairwall.game.v1.wash_service_pb2 import SightingDeal
from fairwall.laws.studies.cheat_detection import detection, least
from fairwall.wire.commitment import BYTES, commit, opens


def test_the_law_counts_every_small_world() -> None:
    for people, flips, checks in ((6, 2, 3), (7, 0, 3), (7, 3, 0), (6, 4, 6)):
        for wrong in (0.0, 0.3):
            tail = np.zeros(checks + 2)
            draws = list(combinations(range(people), checks))
            for drawn, mistaken in product(draws, product((0, 1), repeat=checks)):
                how = math.prod(wrong if one else 1 - wrong for one in mistaken) / len(draws)
                tail[: 1 + sum((row < flips) != bool(one) for row, one in zip(drawn, mistaken, strict=True))] += how
            found = [detection(people, flips, checks, wrong, from_on) for from_on in range(checks + 2)]
            assert found == pytest.approx(tail.tolist(), abs=1e-12)
            if not wrong:
                assert found[1] == pytest.approx(1 - math.comb(people - flips, checks) / math.comb(people, checks))


def test_the_threshold_is_the_least_that_spares_the_honest() -> None:
    for checks, wrong, alarm in ((50, 0.0, 1e-6), (258, 0.02, 1e-6), (127, 0.058, 0.05), (3, 0.4, 1e-3)):
        from scipy.stats import binom

        found = least(checks, wrong, alarm)
        assert binom.sf(found - 1, checks, wrong) <= alarm
        assert found == 1 or binom.sf(found - 2, checks, wrong) > alarm
        assert detection(1000, 0, checks, wrong, found) <= alarm


def trial(rng: np.random.Generator, people: int, flips: int, checks: int, wrong: float, alarm: float) -> bool:
    """Whether compliance accuses, of rows that are drawn and reported as in the game."""
    deployed = rng.integers(0, 2, people).astype(np.uint8)
    audited = deployed.copy()
    audited[rng.choice(people, flips, replace=False)] ^= 1
    rows = rng.choice(people, checks, replace=False)
    seen = reported(deployed[rows].astype(np.float64), wrong, rng.bytes(32))
    return judge(audited, SightingDeal(rows=rows, wrong=wrong, alarm=alarm), seen).accused


@pytest.mark.parametrize(("checks", "wrong"), [(50, 0.0), pytest.param(258, 0.005, marks=pytest.mark.check)])
def test_accusations_are_as_frequent_as_the_law_says(checks: int, wrong: float) -> None:
    """Over 1,000 trials one share is off by more than 3 points in 1 of 17 at worst; the seed is one of the others."""
    rng = np.random.default_rng([checks, 2])
    accused = np.mean([trial(rng, 1000, 10, checks, wrong, 1e-6) for _ in range(1000)])
    assert accused == pytest.approx(detection(1000, 10, checks, wrong, least(checks, wrong, 1e-6)), abs=0.03)


def test_an_honest_developer_is_accused_in_none_of_a_thousand_trials() -> None:
    """At an alarm level of 1e-6 one trial in a million accuses: 1,000 of them in one case in 1,000."""
    rng = np.random.default_rng(3)
    assert not any(trial(rng, 1000, 0, 258, 0.058, 1e-6) for _ in range(1000))


bits = st.lists(st.integers(0, 1), min_size=1, max_size=40).map(lambda values: np.array(values, np.uint8))
salts = st.binary(min_size=BYTES, max_size=BYTES)


@given(bits, salts, st.data())
def test_a_commitment_opens_to_these_decisions_alone(decisions: np.ndarray, salt: bytes, data: st.DataObject) -> None:
    committed = commit(decisions, salt)
    assert len(committed) == BYTES
    assert opens(committed, decisions, salt)
    other = decisions.copy()
    other[data.draw(st.integers(0, len(other) - 1))] ^= 1
    assert not opens(committed, other, salt)
    assert not opens(committed, decisions[:-1], salt)
    assert not opens(committed, decisions, bytes([salt[0] ^ 1]) + salt[1:])
    assert not opens(committed, decisions, salt[:-1])
    assert not opens(committed[:-1], decisions, salt)
    with pytest.raises(ValueError, match="a salt has 32 bytes, not 31"):
        commit(decisions, salt[:-1])


def test_who_had_nothing_audited_broke_its_word() -> None:
    deal = SightingDeal(rows=[0], committed=True, commitment=bytes(BYTES), salt=bytes(BYTES), alarm=1e-6)
    assert vars(judge(None, deal, np.ones(1))) == {"contradictions": 0, "broken": True, "accused": True}
    deal.committed = False
    assert not judge(None, deal, np.ones(1)).accused
