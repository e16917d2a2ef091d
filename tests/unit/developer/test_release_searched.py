"""A search for how many queries to ask beside a release: fewer where these tell more, and never more than there are."""

from __future__ import annotations

import numpy as np
import pytest

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from developer.release import searched
from developer.release.beliefs import AttributeGuesses, believe
from developer.release.mixture import from_mixture, tossed
from developer.reveal.decode.likelihood import counts_size
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.laws.noise.count_noise import laplace_scales

PEOPLE = 100


def nothing_released() -> AttributeGuesses:
    terms = game.ReleaseTerms(protocol="grr", columns=[game.SensitiveColumn(domain=2, share=1.0, groups=True)])
    return believe(terms, np.zeros((PEOPLE, 1)), np.zeros(PEOPLE, np.uint8), None)


@pytest.mark.check
def test_fewer_queries_are_asked_where_they_tell_more() -> None:
    asked, believed = game.QueryTerms(queries=100, mechanism="counts", epsilon=4.0), nothing_released()
    number = searched.found(asked, believed)
    assert 1 < number < 50
    gains = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        group, right = (rng.random(PEOPLE) < 0.6).astype(np.uint8), {}
        for queries in (100, number):
            rows = tossed(PEOPLE, queries, rng)
            question = BatchQuestion("sp", rows, Records(np.zeros_like(group), group, ("sp",)))
            answers = MECHANISMS["counts"].release(question, NO_FACTS, asked.epsilon, 0.0, Seeded(rng)).values
            right[queries] = float((from_mixture(asked, believed, rows, answers) == group).mean())
        gains.append(right[number] - right[100])
    assert np.mean(gains) > 0.01


@pytest.mark.parametrize("mechanism", ["conceal", "counts"])
def test_no_more_is_asked_than_there_is(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searched, "_TRIED", 300)
    monkeypatch.setattr(searched, "_FINAL", 500)
    found = [
        searched.found(game.QueryTerms(queries=queries, mechanism=mechanism, epsilon=1.0), nothing_released())
        for queries in (1, 3, 3)
    ]
    assert found[0] == 1
    assert 1 <= found[1] == found[2] <= 3


@pytest.mark.parametrize("mechanism", ["cauchy", "counts"])
def test_answers_are_simulated_as_they_are_given(mechanism: str) -> None:
    rng, epsilon = np.random.default_rng(3), 2.0
    z, rows = np.arange(PEOPLE) < 40, tossed(PEOPLE, 25, 4)
    asked = game.QueryTerms(queries=25, mechanism=mechanism, epsilon=epsilon)
    question = BatchQuestion("sp", rows, Records(np.zeros(PEOPLE, np.uint8), (~z).astype(np.uint8), ("sp",)))
    simulated = np.array([searched._answered(asked, z, rows, rng) for _ in range(300)])
    given = np.array(
        [MECHANISMS[mechanism].release(question, NO_FACTS, epsilon, 0.0, Seeded(rng)).values for _ in range(300)]
    )
    exact = rows @ np.where(z, -1 / 40, 1 / 60)
    errors = [np.median(np.abs(answers - exact)) for answers in (simulated, given)]
    assert errors[0] == pytest.approx(errors[1], rel=0.1)
    if mechanism == "counts":  # what size they go with is found out of them, as of real ones
        sizes = [counts_size(PEOPLE, rows, one, laplace_scales(25, epsilon).sums) for one in simulated]
        assert abs(np.median(sizes) - 40) < 2
