"""What queries add to a release: guesses from both are no worse than from the release, and know the groups' sizes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from developer.release.beliefs import AttributeGuesses, believe
from developer.release.mixture import ANSWERED_BY, from_mixture, tossed
from fairwall.game.v1 import referee_service_pb2 as game

PEOPLE, QUERIES = 120, 20


def guessed(mechanism: str, epsilon: float, group: NDArray[np.uint8], believed: AttributeGuesses) -> NDArray[np.uint8]:
    rows = tossed(PEOPLE, QUERIES, 5)
    question = BatchQuestion("sp", rows, Records(np.zeros_like(group), group, ("sp",)))
    noise = Seeded(np.random.default_rng(6))
    answers = MECHANISMS[mechanism].release(question, NO_FACTS, epsilon, 0.0, noise).values
    asked = game.QueryTerms(queries=QUERIES, mechanism=mechanism, epsilon=epsilon)
    return from_mixture(asked, believed, rows, answers)


def told(epsilon: float, seed: int) -> tuple[NDArray[np.uint8], AttributeGuesses]:
    """Release groups of which 70% are advantaged by randomised response, and believe it."""
    rng = np.random.default_rng(seed)
    group = (rng.random(PEOPLE) < 0.7).astype(np.uint8)
    reported = np.where(rng.random(PEOPLE) < 1 / (1 + np.exp(epsilon)), 1 - group, group)
    column = game.SensitiveColumn(place=0, domain=2, share=1.0, groups=True)
    terms = game.ReleaseTerms(protocol="grr", columns=[column], epsilon=epsilon)
    return group, believe(terms, rng.normal(size=(PEOPLE, 1)), np.zeros(PEOPLE, np.uint8), np.eye(2)[reported])


def test_answers_do_no_harm_to_a_release_that_tells_much() -> None:
    for mechanism, epsilon in (*zip(ANSWERED_BY, (0.1, 10.0, 1000.0, 0.1), strict=True), ("counts", 1000.0)):
        group, believed = told(3.0, 7)
        alone = float((believed.from_everything == group).mean())
        assert alone > 0.9
        assert float((guessed(mechanism, epsilon, group, believed) == group).mean()) > alone - 0.02


def test_noisy_counts_tell_which_group_is_the_larger_one() -> None:
    # With nothing released everybody is as likely to be of either group.
    group = told(1.0, 8)[0]
    terms = game.ReleaseTerms(protocol="grr", columns=[game.SensitiveColumn(domain=2, share=1.0, groups=True)])
    nothing = believe(terms, np.zeros((PEOPLE, 1)), np.zeros(PEOPLE, np.uint8), None)
    assert float((guessed("counts", 5.0, group, nothing) == group).mean()) > 0.65
    assert float((guessed("counts", 200.0, group, nothing) == group).mean()) > 0.75
