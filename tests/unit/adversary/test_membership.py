"""Membership inference: rankings and what is read from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adversary.membership import auc, by_loss
from fairwall.learning import Recipe, train


def test_by_loss_a_surer_right_score_ranks_higher() -> None:
    answers = np.array([[0.9, 0.9, 0.1, 0.1, 0.0, 1.0]])
    ranks = by_loss(answers, np.array([1, 0, 1, 0, 1, 1], np.uint8))
    logit = np.log(9)
    assert ranks[0, :4] == pytest.approx([logit, -logit, -logit, logit])
    assert np.isfinite(ranks).all()
    # The order of the log-losses.
    assert ranks[0, 4] < ranks[0, 2] < ranks[0, 0] < ranks[0, 5]


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=24))
def test_the_auc_is_what_counting_pairs_gives(rows: list[tuple[int, bool]]) -> None:
    values = np.array([[value for value, _ in rows]], float)
    member = np.array([[inside for _, inside in rows]])
    if member.all() or not member.any():
        return
    members, others = values[member], values[~member]
    pairs = [(a > b) + 0.5 * (a == b) for a in members for b in others]
    assert auc(values, member)[0] == pytest.approx(np.mean(pairs))


def test_a_perfect_ranking_has_all_of_it() -> None:
    member = np.array([[True, False, True, False]])
    assert auc(np.array([[3.0, 1, 4, 2]]), member) == [1]
    assert auc(-np.array([[3.0, 1, 4, 2]]), member) == [0]
    with pytest.raises(ValueError, match="members and others"):
        auc(np.zeros((1, 4)), np.ones((1, 4), bool))


def test_overfitted_models_are_found_out() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    rng = np.random.default_rng(0)
    features = rng.normal(size=(1400, 10))
    # Rows are differently hard: some labels are near certain, some a coin.
    labels = (2 * features[:, 0] + 2 * rng.normal(size=1400) * (features[:, 1] > 0) > 0).astype(np.uint8)
    recipe = Recipe(layers=(32,), steps=200, batch_size=50, learning_rate=2e-2)
    candidates = np.arange(400)
    inside = [rng.choice(candidates, 200, replace=False) for _ in range(12)]
    outside = [rng.choice(np.arange(400, 1400), 200, replace=False) for _ in range(12)]
    victims, strangers = (train(features, labels, rows, range(12), recipe) for rows in (inside, outside))
    member = np.stack([np.isin(candidates, rows) for rows in inside])
    found, nothing = (auc(by_loss(one.scores(features[:400]), labels[:400]), member) for one in (victims, strangers))
    assert found.mean() > 0.55
    # Models that saw none of them: with 400 candidates an AUC's standard deviation is about 0.03.
    assert abs(nothing.mean() - 0.5) < 5.5 * 0.03 / np.sqrt(12)
