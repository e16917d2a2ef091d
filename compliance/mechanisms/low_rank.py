"""Noise from a cube on the few sums that say most of a batch, and on N0; gaps by the joint posterior.

`fairwall.laws.low_rank` chooses the sums, `fairwall.laws.posterior` has the answers. They are moved towards no gap as
far as the release leaves them open, and an answer near no gap from a small epsilon is no evidence of fairness.

**Intervals** are those of `compliance.mechanisms.posterior_answers`.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.accountant import Loss, pure
from compliance.mechanisms.counts import as_fact, from_fact, size_fact, variance_of
from compliance.mechanisms.cube import cube_step
from compliance.mechanisms.mechanism import (
    Facts,
    Guarantee,
    Question,
    Release,
    exactly,
    require_answerable,
    require_budget,
)
from compliance.mechanisms.posterior_answers import Told, answers
from compliance.metrics import part_values
from compliance.noise import Noise
from fairwall.laws.cube import CubeNoise
from fairwall.laws.low_rank import Measurement, best_measurement, posterior_noise
from fairwall.laws.metric import find_metric
from fairwall.laws.posterior import Seen


@dataclass(frozen=True)
class LowRankMechanism:
    """Adds noise from one cube to N0 and to sums that the models of a batch share, and answers by the posterior."""

    name: str = "low-rank"
    title: str = "noise from a cube on common sums"
    guarantee: Guarantee = "pure"

    def refuses(self, metric: str, epsilon: float, delta: float) -> str | None:  # noqa: ARG002
        """Refuse nothing: every metric is a function of sums."""
        return None

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return epsilon, for any number of models."""
        require_budget(epsilon, delta)
        return pure(epsilon)

    def release(self, question: Question, facts: Facts, epsilon: float, delta: float, noise: Noise) -> Release:
        """Return the posterior's answers, and N0 as a fact. See `Mechanism.release`."""
        require_answerable(self, question.metric, epsilon, delta)
        if math.isinf(epsilon):
            return exactly(question.gaps())
        bought = dict[str, NDArray[np.float64]]()

        def look(
            label: int | None, members: NDArray[np.bool_], of_all: NDArray[np.float64], centred: NDArray[np.float64]
        ) -> Told:
            values, name = of_all[:, members], size_fact(label)
            n = values.shape[1]
            step = cube_step(epsilon, n)
            measured = best_measurement(values, epsilon, step, size_known=name in facts)
            told, law = _measure(question, members, measured, epsilon, step, noise)
            if name not in facts:
                bought[name] = as_fact(told[0], law, n)
            size, of_size = from_fact((facts if name in facts else bought)[name])
            people = measured.steps * step
            of_noise = np.full(len(told), posterior_noise(law, n))
            seen = Seen(told, people.sum(axis=1), people @ people.T, centred[:, members] @ people.T, of_noise)
            return Told(size, variance_of(of_size), seen)

        values, low, high = answers(question, look)
        return Release(values, bought, low, high)


def predicted(question: Question, epsilon: float) -> float:
    """Return the error to expect of an answer; public."""
    errors = [
        best_measurement(values, epsilon, cube_step(epsilon, values.shape[1]), size_known=False).error
        for values in _values(question)
    ]
    return sum(errors) / len(errors)


def _values(question: Question) -> list[NDArray[np.float64]]:
    """Return the values of each stratum's members, those of one part after the other's."""
    metric = find_metric(question.metric)
    values = list(part_values(question.metric, question.predictions, question.records.labels))
    found = []
    for label in metric.strata:
        inside = [i for i, part in enumerate(metric.parts) if part.label == label]
        found.append(np.concatenate([values[i][1][:, values[i][0]] for i in inside]))
    return found


def _measure(
    question: Question,
    members: NDArray[np.bool_],
    measured: Measurement,
    epsilon: float,
    step: float,
    noise: Noise,
) -> tuple[NDArray[np.float64], CubeNoise]:
    sides = len(measured.steps)
    # With a wider step than this draws would take long; such a scale is next to nothing, and costs less.
    law = CubeNoise(max(1 / epsilon, sides * step), max(sides, 1))
    if not sides:
        return np.zeros(0), law
    steps = np.zeros((sides, members.size))
    steps[:, members] = measured.steps
    exact = question.records.sums_of_disadvantaged(members, steps) * step
    return noise.cube(exact, law.scale, step), law
