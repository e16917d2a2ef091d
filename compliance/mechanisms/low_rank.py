"""Noise from a cube on the few sums that say most of a batch, and on N0; gaps by the joint posterior.

`fairwall.laws.low_rank` chooses the sums, `fairwall.laws.posterior` has the answers. They are moved towards no gap as
far as the release leaves them open, and an answer near no gap from a small epsilon is no evidence of fairness.

**Intervals** are those of `compliance.mechanisms.posterior_answers`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms.counts import as_fact, size_fact, size_of
from compliance.mechanisms.cube import cube_step, drawn_law, sums_of_steps
from compliance.mechanisms.mechanism import Facts, Guarantee, Question, Release
from compliance.mechanisms.posterior_answers import Told, answers
from compliance.mechanisms.promise import Noisy
from compliance.noise.sampling import Noise
from fairwall.laws.batch import Stratum
from fairwall.laws.decimals import least_scale
from fairwall.laws.low_rank import best_measurement, posterior_noise
from fairwall.laws.posterior import Seen


@dataclass(frozen=True)
class LowRankMechanism(Noisy):
    """Adds noise from one cube to N0 and to sums that the models of a batch share, and answers by the posterior."""

    name: str = "low-rank"
    title: str = "noise from a cube on common sums"
    guarantee: Guarantee = "pure"

    def noisy(self, question: Question, facts: Facts, epsilon: float, delta: float, noise: Noise) -> Release:  # noqa: ARG002
        """Return the posterior's answers, and N0 as a fact. See `Noisy.noisy`."""
        bought = dict[str, NDArray[np.float64]]()

        def look(stratum: Stratum) -> Told:
            n, name = stratum.people, size_fact(stratum.label)
            step = cube_step(epsilon, n)
            measured = best_measurement(stratum.inside, epsilon, step, size_known=name in facts)
            law = drawn_law(least_scale(epsilon), len(measured.steps), step)
            exact = sums_of_steps(question, stratum, measured.steps, step)
            told = noise.cube(exact, law.scale, step) if len(exact) else exact
            if name not in facts:
                bought[name] = as_fact(told[0], law, n)
            released = size_of((facts if name in facts else bought)[name], 1, n)
            people = measured.steps * step
            of_noise = np.full(len(told), posterior_noise(law, n))
            seen = Seen(
                told, people.sum(axis=1), people @ people.T, stratum.centred[:, stratum.members] @ people.T, of_noise
            )
            return Told(float(np.rint(released.value)), released.law.variance(), seen)

        values, likely = answers(question, look)
        return Release(values, bought, likely=likely)
