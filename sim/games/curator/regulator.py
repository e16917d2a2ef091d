"""The regulator: it opens some of the requests and judges whether compliance kept its promises.

Attributes, seed and salts are opened to the regulator alone. It also knows the requests and answers as the developer
got them and, where a sample is shown, other people of the same table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion
from compliance.mechanisms.noise_on_gaps import LaplaceMechanism
from compliance.noise.sampling import ROUNDING_STEPS, committed_noise, step_for
from compliance.records.people import Records
from developer.curator import METRIC
from fairwall.arrays import Bytes, Floats
from fairwall.laws.mechanisms.calibration import laplace_law
from fairwall.laws.studies import cheat_detection
from fairwall.laws.studies.commitment import Commitment, rows_of
from sim.games.curator.deal import CuratorDeal


@dataclass(frozen=True, eq=False)
class Answered:
    """The developer's requests: ids, predictions (requests, people) of 0 and 1, and answers (requests,)."""

    request_ids: tuple[str, ...]
    predictions: Bytes
    answers: Floats


@dataclass(frozen=True, eq=False)
class Opening:
    """Compliance's opening: attributes (people,), the seed, the key of the salts, and the sample's row numbers."""

    attributes: Bytes = field(repr=False)
    seed: bytes = field(repr=False)
    salt_key: bytes = field(repr=False)
    sample: NDArray[np.intp] = field(repr=False)


@dataclass(frozen=True)
class RegulatorVerdict:
    """The regulator's verdict: the numbers of the opened requests, from 0, and the tests' p-values by name."""

    accused: bool
    opened: tuple[int, ...]
    tests: dict[str, float]


@lru_cache(maxsize=1)  # called for reply, score and verifier, and sample tests are slow
def judge(deal: CuratorDeal, answered: Answered, commitment: Commitment | None, opening: Opening) -> RegulatorVerdict:
    """Open requests chosen at random after the answers, and judge by the scenario's defence."""
    asked = deal.scenario.curator
    rng = np.random.default_rng([*deal.own, 1])
    opened = tuple(sorted(rng.choice(asked.requests, asked.openings, replace=False).tolist())) if asked.openings else ()
    if asked.sample:
        tests = cheat_detection.p_values(deal.people[opening.sample], deal.others, rng)
        return RegulatorVerdict(min(tests.values()) < cheat_detection.CORRECTED, opened, tests)
    if asked.defence == "statistics":
        found = cheat_detection.p_value((answered.answers - exact_gaps(deal, answered))[list(opened)] / scale(deal))
        return RegulatorVerdict(found < cheat_detection.NOISE_LEVEL, opened, {"noise": found})
    if asked.defence == "commitment":
        assert commitment is not None, "nobody is admitted before there is one"
        rows = rows_of(deal.compliance.labels)
        if not commitment.is_opened(rows, opening.attributes.tolist(), opening.seed, opening.salt_key):
            return RegulatorVerdict(True, opened, {})
        again = answers(deal, answered, opening.attributes, opening.seed, opened)
        return RegulatorVerdict(not np.array_equal(again, answered.answers[list(opened)]), opened, {})
    return RegulatorVerdict(False, opened, {})


def answers(deal: CuratorDeal, answered: Answered, attributes: Bytes, seed: bytes, numbers: Sequence[int]) -> Floats:
    """Recompute the answers to the requests with these numbers: shape (numbers,)."""
    asked, epsilon = deal.scenario.curator, deal.scenario.share_of_epsilon
    records = Records.imagined(deal.compliance.labels, attributes, (METRIC,), asked.minimum_group)

    def answer(number: int) -> float:
        question = BatchQuestion(METRIC, answered.predictions[number : number + 1], records)
        noise = committed_noise(seed, answered.request_ids[number])
        return float(LaplaceMechanism().release(question, NO_FACTS, epsilon, 0.0, noise).values[0])

    return np.array([answer(number) for number in numbers])


def exact_gaps(deal: CuratorDeal, answered: Answered) -> Floats:
    """Return the gaps without noise under people's true attributes, shape (requests,)."""
    records = Records.imagined(deal.compliance.labels, deal.compliance.protected, (METRIC,))
    return BatchQuestion(METRIC, answered.predictions, records).gaps()


def scale(deal: CuratorDeal) -> float:
    """Return the scale of the noise of each answer, as in `compliance.mechanisms.noise_on_gaps`."""
    people, least = deal.scenario.data.people, deal.scenario.curator.minimum_group
    epsilon = deal.scenario.share_of_epsilon
    exact = laplace_law(METRIC, people, 1, epsilon, least).scale
    return exact + ROUNDING_STEPS * step_for(exact) / epsilon
