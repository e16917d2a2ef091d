"""What a guess is worth, against the definition itself, for every small game there is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from sim.games.reveal.score import leakage, score_guess, score_partition

Bits = NDArray[np.uint8]


def games(most: int) -> Iterator[tuple[Bits, Bits]]:
    """Every guess about every test set of up to so many people in which both groups occur."""
    for n in range(2, most + 1):
        vectors = [np.array(bits, np.uint8) for bits in itertools.product((0, 1), repeat=n)]
        for guess, protected in itertools.product(vectors, vectors):
            if 0 < protected.sum() < n:
                yield guess, protected


def definition_5_1(guess: Bits, protected: Bits) -> Fraction:
    """Half the true positive rate plus half the true negative rate, in percent, from counts alone."""
    pairs = list(zip(guess.tolist(), protected.tolist(), strict=True))
    positive = Fraction(pairs.count((1, 1)), pairs.count((1, 1)) + pairs.count((0, 1)))
    negative = Fraction(pairs.count((0, 0)), pairs.count((0, 0)) + pairs.count((1, 0)))
    return 50 * (positive + negative)


def everybody(people: Bits) -> NDArray[np.bool_]:
    return np.ones(len(people), np.bool_)


def test_leakage_is_definition_5_1_for_every_game_of_up_to_five() -> None:
    for guess, protected in games(5):
        assert leakage(guess, protected) == pytest.approx(float(definition_5_1(guess, protected)), abs=1e-12)


def test_a_guess_is_exact_if_and_only_if_everybody_is_recovered() -> None:
    for guess, protected in games(4):
        score = score_guess(guess, protected, everybody(guess), protected)
        assert score.recovered == sum(guess.tolist()[i] == a for i, a in enumerate(protected.tolist()))
        assert score.exact == (score.recovered == len(guess)) == (score.leakage == 100)


def test_the_baseline_is_scored_by_the_same_measure() -> None:
    for baseline, protected in games(4):
        score = score_guess(protected, baseline, everybody(baseline), protected)
        assert score.baseline_leakage == leakage(baseline, protected)


def test_the_targeted_are_counted_among_themselves() -> None:
    guess = protected = np.array([0, 1, 1, 0], np.uint8)
    wrong_last = np.array([0, 1, 1, 1], np.uint8)
    targeted = np.array([False, True, False, True])
    assert (score := score_guess(guess, guess, targeted, protected)).targeted == score.targeted_recovered == 2
    assert score_guess(wrong_last, guess, targeted, protected).targeted_recovered == 1


def test_a_partition_is_worth_as_much_as_its_mirror_image() -> None:
    for guess, protected in games(4):
        mirror = (1 - guess).astype(np.uint8)
        scores = [
            score_partition(one, protected, everybody(one), protected, False, [everybody(one)])
            for one in (guess, mirror)
        ]
        assert scores[0] == scores[1]


def test_a_partition_is_worth_the_better_of_the_two_ways_to_name_its_groups() -> None:
    for guess, protected in games(4):
        score = score_partition(guess, protected, everybody(guess), protected, True, [everybody(guess)])
        value = definition_5_1(guess, protected)
        assert score.leakage == pytest.approx(float(max(value, 100 - value)), abs=1e-12)
        assert score.exact == (score.recovered == len(guess))
        assert score.exact == (len({*(guess ^ protected).tolist()}) == 1)


def test_a_partition_named_by_size_is_worth_what_the_named_guess_is() -> None:
    for guess, protected in games(4):
        named = score_partition(guess, protected, everybody(guess), protected, True, [everybody(guess)])
        unnamed = score_partition(guess, protected, everybody(guess), protected, False, [everybody(guess)])
        assert named.leakage_by_size == leakage(guess, protected)
        assert unnamed.leakage_by_size is None


def test_a_partition_named_by_its_first_person_has_that_person_right() -> None:
    for guess, protected in games(4):
        score = score_partition(guess, protected, everybody(guess), protected, False, [everybody(guess)])
        value = definition_5_1(guess, protected)
        named = value if guess[0] == protected[0] else 100 - value
        assert score.leakage_by_person == pytest.approx(float(named), abs=1e-12)


def test_whom_a_partition_does_not_target_keeps_one_guess_under_both_names() -> None:
    protected = np.array([0, 1, 1, 0, 1], np.uint8)
    targeted = np.array([False, True, True, True, False])
    mirrored = np.array([0, 0, 0, 1, 1], np.uint8)  # the targeted are all exchanged, the others are right
    score = score_partition(mirrored, mirrored, targeted, protected, True, [everybody(mirrored)])
    assert score.exact
    assert score.leakage == score.leakage_by_person == 100
    assert score.leakage_by_size == leakage(mirrored, protected)


def test_a_signed_guess_has_no_names_to_find() -> None:
    score = score_guess(*[np.array([0, 1], np.uint8)] * 2, np.ones(2, np.bool_), np.array([0, 1], np.uint8))
    assert score.leakage_by_size is None
    assert score.leakage_by_person is None


def test_each_stratum_of_two_has_a_mirror_image_and_a_known_person_of_its_own() -> None:
    protected = np.array([0, 0, 1, 0, 1, 1], np.uint8)
    strata = [np.array([True, True, True, False, False, False]), np.array([False, False, False, True, True, True])]
    turned = np.where(strata[1], 1 - protected, protected).astype(np.uint8)
    score = score_partition(turned, turned, everybody(turned), protected, False, strata)
    assert (score.exact, score.leakage, score.leakage_by_person) == (True, 100.0, 100.0)
    # One stratum's image says nothing about the other.
    assert not score_partition(turned, turned, everybody(turned), protected, False, [everybody(turned)]).exact
