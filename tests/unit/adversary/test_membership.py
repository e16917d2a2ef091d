"""Membership inference: rankings and what is read from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adversary.membership import OWN_SPREAD, advantage, auc, by_likelihood, by_loss
from fairwall.learning import Recipe, train


def test_by_loss_a_surer_right_score_ranks_higher() -> None:
    answers = np.array([[0.9, 0.9, 0.1, 0.1, 0.0, 1.0]])
    ranks = by_loss(answers, np.array([1, 0, 1, 0, 1, 1], np.uint8))
    logit = np.log(9)
    assert ranks[0, :4] == pytest.approx([logit, -logit, -logit, logit])
    assert np.isfinite(ranks).all()
    # The order of the log-losses.
    assert ranks[0, 4] < ranks[0, 2] < ranks[0, 0] < ranks[0, 5]


@pytest.mark.parametrize("shadows", [8, OWN_SPREAD])
def test_by_likelihood_a_rank_is_so_many_spreads_above_the_shadows(shadows: int) -> None:
    rng = np.random.default_rng(0)
    labels = np.array([1, 0, 1], np.uint8)
    outside, victims = rng.uniform(0.2, 0.8, (shadows, 3)), rng.uniform(0.2, 0.8, (2, 3))
    logits = by_loss(outside, labels)
    own = logits.std(0, ddof=1)
    pooled = np.full(3, np.sqrt(np.mean(own**2)))
    expected = (by_loss(victims, labels) - logits.mean(0)) / (own if shadows >= OWN_SPREAD else pooled)
    assert by_likelihood(victims, labels, outside) == pytest.approx(expected)
    certain = by_likelihood(victims, labels, np.ones((shadows, 3)))
    assert np.isfinite(certain).all()
    with pytest.raises(ValueError, match="at least 2"):
        by_likelihood(victims, labels, outside[:1])


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=24))
def test_auc_and_advantage_are_what_counting_pairs_and_halves_gives(rows: list[tuple[int, bool]]) -> None:
    values = np.array([[value for value, _ in rows]], float)
    member = np.array([[inside for _, inside in rows]])
    if member.all() or not member.any():
        return
    members, others = values[member], values[~member]
    pairs = [(a > b) + 0.5 * (a == b) for a in members for b in others]
    assert auc(values, member)[0] == pytest.approx(np.mean(pairs))
    # Fair shares of a tie: the mean over all ways to break it; swapping signs swaps the halves.
    found = advantage(values, member)[0]
    assert -1 <= found <= 1
    assert advantage(-values, member)[0] == pytest.approx(-found)
    assert advantage(np.zeros_like(values), member)[0] == pytest.approx(0)


def test_a_perfect_ranking_has_all_of_both() -> None:
    member = np.array([[True, False, True, False]])
    assert auc(np.array([[3.0, 1, 4, 2]]), member) == [1]
    assert advantage(np.array([[3.0, 1, 4, 2]]), member) == [1]
    assert auc(-np.array([[3.0, 1, 4, 2]]), member) == [0]
    with pytest.raises(ValueError, match="members and others"):
        auc(np.zeros((1, 4)), np.ones((1, 4), bool))


def test_overfitted_models_are_found_out_and_likelihood_finds_more() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    rng = np.random.default_rng(0)
    features = rng.normal(size=(1400, 10))
    # Rows are differently hard: some labels are near certain, some a coin.
    labels = (2 * features[:, 0] + 2 * rng.normal(size=1400) * (features[:, 1] > 0) > 0).astype(np.uint8)
    recipe = Recipe(layers=(32,), steps=400, batch_size=50, learning_rate=1e-2)
    candidates = np.arange(400)
    inside = [rng.choice(candidates, 200, replace=False) for _ in range(12)]
    victims: Any = train(features, labels, inside, range(12), recipe)
    shadows = train(
        features, labels, [rng.choice(np.arange(400, 1400), 200, replace=False) for _ in range(64)], range(64), recipe
    )
    member = np.stack([np.isin(candidates, rows) for rows in inside])
    answers, known = victims.scores(features[:400]), shadows.scores(features[:400])
    loss, ratio = by_loss(answers, labels[:400]), by_likelihood(answers, labels[:400], known)
    assert auc(loss, member).mean() > 0.55
    assert auc(ratio, member).mean() > auc(loss, member).mean() + 0.03
    assert advantage(ratio, member).mean() > 0.1
    # Models that saw none of them: with 400 candidates an AUC's standard deviation is about 0.03.
    strangers = known[:12]
    assert abs(auc(by_loss(strangers, labels[:400]), member).mean() - 0.5) < 5.5 * 0.03 / np.sqrt(12)
