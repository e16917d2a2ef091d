"""Noise from one cube on N0 and on sums that models share, and from another on each model's remainder.

The mathematics is `fairwall.laws.low_rank`; answers and intervals are computed from the noisy sums as for `counts`.
"""

from dataclasses import dataclass

import numpy as np

from compliance.intervals.counts import Common
from compliance.mechanisms.counts import CountPurchase, NoisyCounts, answer
from compliance.mechanisms.cube import cube_step, drawn_law
from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, MechanismAnswer
from compliance.mechanisms.promise import Noisy
from compliance.noise.sampling import Noise
from fairwall.laws.low_rank import best_split


@dataclass(frozen=True)
class LowRankMechanism(Noisy):
    """A mechanism of noise from one cube on N0 and common sums, and from another on each model's remainder."""

    name: str = "low-rank"
    title: str = "noise from two cubes"
    guarantee: Guarantee = "pure"

    def noisy(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return possible values of the metric, and N0 as a fact. See `Noisy.noisy`."""

        def buy(purchase: CountPurchase) -> NoisyCounts:
            step = cube_step(epsilon, purchase.n)
            split = best_split(purchase.stratum.inside, epsilon, step, size_known=purchase.known)
            measured = split.common, split.own_steps
            common, own = (question.sums_of_steps(purchase.stratum, [rows]) * step for rows in measured)
            if not purchase.known:
                common = np.append(float(purchase.n0), common)
            law, own_law = (drawn_law(each.scale, each.sides, step) for each in (split.law, split.own_law))
            if len(common):
                common = noise.cube(common, law.scale, step)
            if len(own):
                own = noise.cube(own, own_law.scale, step)
            size = None if purchase.known else float(common[0])
            shared = common if purchase.known else common[1:]
            return NoisyCounts(
                size,
                law,
                split.own.sums(own) + split.weights @ shared,
                own_law,
                purchase.n * split.rounded,
                split.own.centres,
                split.own.halves,
                shared=not purchase.known,
                common=Common(law, split.weights),
            )

        return answer(question, facts, buy, shrinks=False, gaussian=False)
