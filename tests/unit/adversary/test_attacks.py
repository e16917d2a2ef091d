"""The attacks: what each of them reads, and that it does."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from adversary.attacks import ATTACKS, Attack, ShadowEvidence
from adversary.attacks.attack import LEAST
from adversary.attacks.shadow_attacks import STRENGTHS, meta_classifier, threshold

PROBES = 120
WITH_SHADOWS = [name for name, attack in ATTACKS.items() if attack.shadows]


def world(
    bits: NDArray[np.int64], rng: np.random.Generator, lead: float, labels: NDArray[np.uint8]
) -> NDArray[np.float64]:
    """Scores of models that are right more often about the group they were trained on, by so much in the logit."""
    group = np.repeat([0, 1], PROBES // 2)
    truth = np.where(labels == 1, 1.0, -1.0)
    own = np.where(bits[:, None] == group, lead, -lead)
    return np.asarray(1 / (1 + np.exp(-(truth * (0.5 + own) + rng.normal(size=(len(bits), PROBES))))))


@cache
def evidence(seed: int = 0, shadows: int = 60, lead: float = 0.4) -> ShadowEvidence:
    rng = np.random.default_rng(seed)
    labels = np.tile([0, 1], PROBES // 2).astype(np.uint8)
    group = np.repeat([0, 1], PROBES // 2).astype(np.uint8)
    bits = (np.arange(shadows) % 2).astype(np.uint8)
    return ShadowEvidence(labels, group, bits, world(bits, rng, lead, labels), seed)


def victims(
    known: ShadowEvidence, count: int, lead: float = 0.4, seed: int = 99
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, count)
    return bits, world(bits, rng, lead, known.labels)


@pytest.fixture(params=ATTACKS)
def attack(request: pytest.FixtureRequest) -> Attack:
    return ATTACKS[request.param]


def test_every_attack_finds_what_there_is_to_find(attack: Attack) -> None:
    known = evidence()
    bits, answers = victims(known, 120)
    found = attack.guess(known, answers, "scores")
    assert np.mean(found.bits == bits) > 0.9
    assert set(np.unique(found.bits)) == {0, 1}
    # A larger score speaks for 1.
    assert found.scores[bits == 1].mean() > found.scores[bits == 0].mean()
    assert found.scores[found.bits == 1].min() >= found.scores[found.bits == 0].max()


def test_no_attack_finds_what_is_not_there(attack: Attack) -> None:
    known = evidence(lead=0.0)
    bits, answers = victims(known, 1000, lead=0.0)
    guesses = attack.guess(known, answers, "scores").bits
    # 5.5 standard deviations of a difference of two means of 500: 4e-8.
    assert abs(np.mean(guesses[bits == 1]) - np.mean(guesses[bits == 0])) < 5.5 * np.sqrt(2 * 0.25 / 500)


@pytest.mark.few(3)
def test_a_guess_is_a_function_of_the_victim_s_own_answers(attack: Attack) -> None:
    known = evidence()
    _, answers = victims(known, 5)
    every = attack.guess(known, answers, "scores")
    again = attack.guess(known, answers[::-1], "scores")
    assert np.array_equal(again.bits[::-1], every.bits)
    assert np.allclose(again.scores[::-1], every.scores)
    alone = attack.guess(known, answers[:1], "scores")
    assert int(alone.bits[0]) == every.bits[0]


def test_shadows_that_are_right_about_the_other_group_are_followed_too() -> None:
    """The sign comes from the shadows, not from what one would think."""
    for name in WITH_SHADOWS:
        known = evidence(lead=-0.4)
        bits, answers = victims(known, 100, lead=-0.4)
        assert np.mean(ATTACKS[name].guess(known, answers, "scores").bits == bits) > 0.9
        fixed = ATTACKS["loss-test"].guess(known, answers, "scores").bits
        assert np.mean(fixed == bits) < 0.1


def test_attacks_on_labels_read_no_more_than_labels(attack: Attack) -> None:
    known = evidence()
    _, answers = victims(known, 20)
    labels = (answers >= 0.5).astype(float)
    if attack.needs == "scores":
        with pytest.raises(ValueError, match="labels only"):
            attack.guess(known, labels, "labels")
        return
    assert np.array_equal(attack.guess(known, labels, "labels").scores, attack.guess(known, answers, "scores").scores)


def test_scores_of_0_and_1_and_models_that_never_differ_are_borne(attack: Attack) -> None:
    known = evidence()
    found = attack.guess(known, np.stack([np.zeros(PROBES), np.ones(PROBES), known.labels.astype(float)]), "scores")
    assert np.isfinite(found.scores).all()
    certain = replace(known, shadows=np.ones_like(known.shadows))
    found = attack.guess(certain, np.ones((4, PROBES)), "scores")
    assert np.isfinite(found.scores).all()
    assert len(set(found.bits.tolist())) == 1, "victims that answer alike are guessed alike"


def test_what_does_not_fit_is_refused() -> None:
    known = evidence()
    for attack in ATTACKS.values():
        with pytest.raises(ValueError, match="120 probes"):
            attack.guess(known, np.zeros((2, PROBES - 1)), "scores")
        if attack.shadows:
            with pytest.raises(ValueError, match="both bits"):
                attack.guess(replace(known, bits=np.zeros_like(known.bits)), np.zeros((2, PROBES)), "scores")
        else:
            none = ShadowEvidence(known.labels, known.group, known.bits[:0], known.shadows[:0])
            assert len(attack.guess(none, known.shadows, "scores").bits) == 60


def test_evidence_has_probes_of_both_groups() -> None:
    known = evidence()
    with pytest.raises(ValueError, match="both groups"):
        replace(known, group=np.zeros_like(known.group))
    with pytest.raises(ValueError, match="one entry per probe"):
        replace(known, shadows=known.shadows[:, 1:])


def test_the_fixed_rule_is_on_the_side_of_the_larger_accuracy() -> None:
    known = evidence()
    right = np.where(np.arange(PROBES) < 50, known.labels, 1 - known.labels)
    found = ATTACKS["loss-test"].guess(known, np.stack([right, 1 - right, known.labels]).astype(float), "labels")
    assert found.bits.tolist() == [0, 1, 0]
    assert found.scores == pytest.approx([-50 / 60, 50 / 60, 0])


def test_the_threshold_tells_the_shadows_apart() -> None:
    for values, bits, cut, sign in (
        ([1, 2, 3, 4], [0, 0, 1, 1], 2.5, 1),
        ([1, 2, 3, 4], [1, 1, 0, 0], 2.5, -1),
        ([1, 2, 3, 4, 5, 9], [0, 0, 0, 1, 0, 1], 3.5, 1),
        ([0, 0, 0, 0], [0, 0, 1, 1], -1, 1),
        # A class of one counts as much as one of five.
        ([1, 1, 1, 1, 2, 2], [0, 0, 0, 0, 0, 1], 1.5, 1),
    ):
        assert threshold(np.array(values, float), np.array(bits, np.uint8)) == (pytest.approx(cut), sign)


def test_no_other_threshold_does_better() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values, bits = rng.integers(0, 6, 14).astype(float), np.tile([0, 1], 7).astype(np.uint8)
        found = threshold(values, bits)
        worths = {}
        for cut in (*np.arange(-0.5, 6), found[0]):
            for sign in (1, -1):
                guess = sign * (values - cut) > 0
                worths[cut, sign] = float(np.mean(guess[bits == 1]) + np.mean(~guess[bits == 0]))
        assert worths[found] == pytest.approx(max(worths.values()))


def test_divergence_votes_are_those_of_the_pairs() -> None:
    known = evidence(shadows=10)
    _, answers = victims(known, 6)
    q = np.clip(known.shadows, LEAST, 1 - LEAST)
    p = answers[:, None, :]
    divergence = np.mean(p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q)), 2)
    votes = divergence[:, known.bits == 0][:, :, None] > divergence[:, known.bits == 1][:, None, :]
    assert np.allclose(ATTACKS["kl"].guess(known, answers, "scores").scores, votes.mean((1, 2)) - 0.5)


def test_the_meta_classifier_in_the_shadows_span_is_the_one_over_all_probes() -> None:
    """The same penalised regression fitted on every probe, with the strength that was chosen."""
    from sklearn.linear_model import LogisticRegression

    known = evidence(shadows=30)
    _, answers = victims(known, 40)
    found = meta_classifier(known, known.shadows, answers)
    mean, spread = known.shadows.mean(0), known.shadows.std(0)
    size = np.sqrt(PROBES)
    candidates = []
    for strength in STRENGTHS:
        full = LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-10)
        full.fit((known.shadows - mean) / spread / size, known.bits)
        candidates.append(np.abs(full.decision_function((answers - mean) / spread / size) - found.scores).max())
    assert min(candidates) < 1e-4 * np.abs(found.scores).max()


@pytest.mark.check
def test_the_meta_classifier_is_the_same_again_and_works_with_two_shadows() -> None:
    known = evidence()
    bits, answers = victims(known, 20)
    for name in ("label-meta", "logit-meta"):
        first, again = (ATTACKS[name].guess(known, answers, "scores").scores for _ in range(2))
        assert np.array_equal(first, again)
    pair = replace(known, bits=known.bits[:2], shadows=known.shadows[:2])
    assert np.mean(ATTACKS["logit-meta"].guess(pair, answers, "scores").bits == bits) > 0.5


def test_importing_loads_nothing_heavy() -> None:
    code = (
        "import sys, adversary.play, adversary.inference, adversary.membership;"
        "assert not {'torch', 'scipy', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
