"""Noise from a cube on N0 and on centred sums: as `counts`, at half the noise and less for many models.

The mathematics is `fairwall.laws.noise.linf_ball`; answers and intervals are computed from the noisy sums as for
`counts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from compliance.intervals.counts import Common
from compliance.mechanisms.counts import CountPurchase, CountsMechanism, NoisyCounts, answer, size_fact, size_of
from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, Mechanism, MechanismAnswer
from compliance.mechanisms.posterior_answers import StratumKnowledge, answers
from compliance.mechanisms.row_defaults import Noisy
from compliance.noise.sampling import Noise, step_for
from compliance.records.sums import StratumSums
from fairwall.arrays import Floats
from fairwall.laws.choice.low_rank import best_split
from fairwall.laws.choice.posterior import NoisyObservations, posterior
from fairwall.laws.choice.public_batch import Stratum
from fairwall.laws.noise.distributions import Laplace
from fairwall.laws.noise.linf_ball import Coordinates, CubeNoise, cube_scales
from fairwall.laws.privacy.exposure import Limit, within

_VARIANCE_MIN = 1e-6

_UNSEEN = 4.0
"""Square, in people per person of a sample, by which two coordinates may differ unseen in the sample.

Each value lies in [-1, 1]: half of the square of their largest difference, for as many people again."""


@dataclass(frozen=True)
class CubeMechanism(Noisy):
    """A mechanism of noise from one cube on N0 and all centred sums.

    `shrinks`: whether answers are the joint posterior mean of the batch, `fairwall.laws.choice.posterior`.
    """

    shrinks: bool = False
    name: str = "cube"
    title: str = "noise from a cube"
    guarantee: Guarantee = "pure"

    def noisy(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return possible values of the metric, and N0 as a fact. See `Noisy.noisy`.

        For a search's candidates, also the joint posterior of the gaps.
        """
        looked = dict[int | None, tuple[NoisyObservations, int]]()

        def buy(purchase: CountPurchase) -> NoisyCounts:
            step = cube_step(epsilon, purchase.n)
            coordinates = purchase.stratum.coordinates(step)
            scales = cube_scales(coordinates.sides, epsilon, size_known=purchase.known)
            if purchase.stratum.by_sums:
                exact = coordinates.of_sums(purchase.n0, purchase.sums)
            else:
                exact = question.sums_of_steps(purchase.stratum, coordinates.pieces(purchase.stratum.pieces())) * step
            law = scales.law if scales.law.stair else drawn_law(scales.scale, scales.sides, step)
            size, least = None, least_size(law, step)
            if scales.together:
                size, *released = noise.cube(np.append(float(purchase.n0), exact), law.scale, step, least).tolist()
                sums = np.array(released)
            else:
                if scales.size is not None:
                    size = float(noise.laplace(np.array([float(purchase.n0)]), scales.size, 1.0)[0])
                sums = noise.cube(exact, law.scale, step, least) if scales.sides else exact
            apart = Laplace(scales.size) if scales.size is not None else law
            expected, totals = None, None
            if isinstance(purchase.stratum, StratumSums):
                # As many coordinates as the other cube has, so that the law is the same.
                about = np.zeros(law.sides)
                about[: len(exact)] = coordinates.of_sums(purchase.n, purchase.stratum.totals)
                found = noise.cube(about, law.scale, step, least)[: len(exact)]
                totals = coordinates.sums(found) + purchase.n * coordinates.centres
            elif self.shrinks:
                few = question.asked.few.strata[question.asked.strata.index(purchase.stratum)]
                with_noise = coordinates, (sums, law), None if size is None else (size, apart)
                seen, gram = _looked(purchase.stratum, few, *with_noise)
                expected = _expected(purchase.stratum, coordinates, seen, gram)
                if question.candidates is not None:
                    # By all people, of whom `answers` looks at X X'.
                    of_all = (
                        seen if few is purchase.stratum else _looked(purchase.stratum, purchase.stratum, *with_noise)[0]
                    )
                    looked[purchase.stratum.label] = of_all, coordinates.sides
            # Each of N0 people was rounded, by half a step at most.
            return NoisyCounts(
                size,
                apart,
                coordinates.sums(sums),
                law,
                purchase.n * step / 2 * coordinates.halves,
                coordinates.centres,
                coordinates.halves,
                expected,
                scales.together,
                totals=totals,
            )

        released = answer(question, facts, buy, shrinks=False, gaussian=False)
        if not looked:
            return released
        sizes = {**facts, **released.facts}

        def look(stratum: Stratum) -> StratumKnowledge:
            size = size_of(sizes[size_fact(stratum.label)], question.records.minimum_group, stratum.people)
            seen, d = looked[stratum.label]
            # Of one coordinate, 9/5 E r^4 / (E r^2)^2 - 3 with r of Gamma(d + 1): 3 for d = 1, and below 0 from 7 on.
            excess = max(0.0, 9 / 5 * (d + 3) * (d + 4) / ((d + 1) * (d + 2)) - 3)
            return StratumKnowledge(size.value, size.law.variance(), seen, excess)

        _, _, joint = answers(question, look)
        return replace(released, joint=joint)


def _looked(
    stratum: Stratum,
    few: Stratum,
    coordinates: Coordinates,
    released: tuple[Floats, CubeNoise],
    size: tuple[float, Laplace | CubeNoise] | None,
) -> tuple[NoisyObservations, Floats]:
    """Return the knowledge of a stratum's sums from noisy coordinates, and from N0 if given; and X X'."""
    sums, law = released
    values, variances = sums, np.full(len(sums), law.variance())
    if size is not None:
        noisy, of_size = size
        values, variances = np.append(values, noisy), np.append(variances, of_size.variance())
    # Not so little that rounding errors decide.
    variances = np.maximum(variances, _VARIANCE_MIN)
    return (_seen if few is stratum else _seen_by_few)(stratum, few, coordinates, values, variances)


def _expected(
    stratum: Stratum, coordinates: Coordinates, seen: NoisyObservations, gram: Floats
) -> Callable[[float], Floats]:
    """Return a function from N0 to the posterior mean of the centred sums."""

    def expected(n0: float) -> Floats:
        found = posterior(gram, seen, n0 / stratum.people, stratum.people)
        nearest: Floats = found.mean + n0 * (stratum.means - coordinates.centres)
        return nearest

    return expected


def _seen(
    stratum: Stratum, _: Stratum, coordinates: Coordinates, values: Floats, variances: Floats
) -> tuple[NoisyObservations, Floats]:
    """Return the knowledge of a stratum's sums from noisy coordinates, and from N0 after them; and X X'."""
    ones, products, cross = np.zeros(len(values)), np.zeros((len(values),) * 2), np.zeros((stratum.rows, len(values)))
    for _people, block in stratum.blocks():
        rows = coordinates.of(block) * coordinates.step
        if len(values) > coordinates.sides:
            rows = np.vstack([rows, np.ones(block.shape[1])])
        ones += rows.sum(axis=1)
        products += rows @ rows.T
        cross += stratum.centre(block) @ rows.T
    return NoisyObservations(values, ones, products, cross, variances), stratum.gram


def _seen_by_few(
    stratum: Stratum, few: Stratum, coordinates: Coordinates, values: Floats, variances: Floats
) -> tuple[NoisyObservations, Floats]:
    """Return `_seen` for very many people, with correlations of coordinates from a sample, `few`.

    Each coordinate's sum and variance are those of all people. Correlations are the sample's, less what people unlike
    any in the sample may change: `_UNSEEN` times the number of people that one of the sample stands for.
    """
    d, kept, people = coordinates.sides, coordinates.kept, stratum.people
    sums, products, members = np.zeros(d), np.zeros((d, d)), 0
    for _, block in few.blocks():
        rows = coordinates.of(block) * coordinates.step
        sums, products, members = sums + rows.sum(axis=1), products + rows @ rows.T, members + rows.shape[1]
    products -= np.outer(sums, sums) / members
    of_all = stratum.means * (1 - stratum.means) if stratum.by_sums else stratum.variances
    squares = people * of_all[kept] / coordinates.halves[kept] ** 2
    believed = np.sqrt(np.maximum(squares - _UNSEEN * people / members, 0.0))
    deviations = np.sqrt(np.diag(products))
    scales = np.divide(believed, deviations, out=np.zeros(d), where=deviations > 0)
    products *= np.outer(scales, scales)
    np.fill_diagonal(products, squares)
    effects = np.zeros((stratum.rows, d))
    telling = np.flatnonzero(coordinates.place >= 0)
    effects[telling, coordinates.place[telling]] = (coordinates.sign * coordinates.halves)[telling]
    cross, ones = effects @ products, coordinates.of_sums(people, stratum.totals)
    gram = cross @ effects.T
    if len(values) > d:
        products, cross = np.pad(products, (0, 1)), np.pad(cross, ((0, 0), (0, 1)))
        ones = np.append(ones, people)
    return NoisyObservations(values, ones, products + np.outer(ones, ones) / people, cross, variances), gram


def drawn_law(scale: float, sides: int, step: float) -> CubeNoise:
    """Return the noise that is drawn: of this scale, or a larger one, which costs less."""
    # With a wider step than this draws would take long; such a scale is next to nothing.
    return CubeNoise(max(scale, sides * step), max(sides, 1))


def least_size(law: CubeNoise, step: float) -> int:
    """Return a staircase's least size in steps, where one person moves by 1; 0 for a cube without stairs."""
    return max(1, round(law.gamma / step)) if law.stair else 0


def cube_step(epsilon: float, people: int) -> float:
    """Return the grid's step: 2^-24 of the noise's least scale, and at most 1, in units of one person's change."""
    return min(1.0, step_for(1 / epsilon, 24, magnitude=people))


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


def answering(mechanism: Mechanism, metric: str, exposed: int, models: int, epsilon: float, limit: Limit) -> Mechanism:
    """Return the mechanism that answers such a batch instead: `cube`, or `counts` for itself or within a limit.

    `exposed` is as in `fairwall.laws.privacy.exposure.revealed`.
    """
    if mechanism.name == CountsMechanism.name:
        return CountsMechanism()
    names = CubeMechanism.name, CountsMechanism.name
    return BY_SUMS[within(names, metric, exposed, models, epsilon, 0.0, limit)[0]]


BY_SUMS: Mapping[str, Mechanism] = {each.name: each for each in (CubeMechanism(), CountsMechanism())}
"""Mechanisms that answer from sums alone."""
