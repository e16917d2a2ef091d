"""Noise from a cube on N0 and on centred sums: as `counts`, at half the noise and less for many models.

The mathematics is `fairwall.laws.cube`; what is computed from the noisy sums, and their intervals, is as for `counts`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms.counts import Asked, NoisyCounts, answer, size_fact, size_of
from compliance.mechanisms.mechanism import Facts, Guarantee, Question, Release
from compliance.mechanisms.posterior_answers import Told, answers
from compliance.mechanisms.promise import Noisy
from compliance.noise.sampling import Noise, step_for
from compliance.records.sums import StratumSums
from fairwall.laws.batch import Stratum
from fairwall.laws.cube import Coordinates, CubeNoise, cube_scales
from fairwall.laws.noise import Laplace
from fairwall.laws.posterior import Seen, posterior

_VARIANCE_MIN = 1e-6

_UNSEEN = 4.0
"""Each of one person's values is 1 or -1 at most: of two that differ so half of the square, and of as many again."""


@dataclass(frozen=True)
class CubeMechanism(Noisy):
    """Adds noise from one cube to N0 and to all centred sums.

    Parameters
    ----------
    shrinks : whether answers are the joint posterior mean of the batch, `fairwall.laws.posterior`.
    """

    shrinks: bool = False
    name: str = "cube"
    title: str = "noise from a cube"
    guarantee: Guarantee = "pure"

    def noisy(self, question: Question, facts: Facts, epsilon: float, delta: float, noise: Noise) -> Release:  # noqa: ARG002
        """Return possible values of the metric, and N0 as a fact. See `Noisy.noisy`.

        Of candidates, which are searched, also how gaps may go together by the posterior.
        """
        looked = dict[int | None, tuple[Seen, int]]()

        def buy(asked: Asked) -> NoisyCounts:
            step = cube_step(epsilon, asked.n)
            told = asked.stratum.coordinates(step)
            scales = cube_scales(told.sides, epsilon, size_known=asked.known)
            if asked.stratum.by_sums:
                exact = told.of_sums(asked.n0, asked.sums)
            else:
                exact = question.sums_of_steps(asked.stratum, told.pieces(asked.stratum.pieces())) * step
            law = scales.law if scales.law.stair else drawn_law(scales.scale, scales.sides, step)
            size, least = None, least_size(law, step)
            if scales.together:
                size, *released = noise.cube(np.append(float(asked.n0), exact), law.scale, step, least).tolist()
                sums = np.array(released)
            else:
                if scales.size is not None:
                    size = float(noise.laplace(np.array([float(asked.n0)]), scales.size, 1.0)[0])
                sums = noise.cube(exact, law.scale, step, least) if scales.sides else exact
            apart = Laplace(scales.size) if scales.size is not None else law
            expected, totals = None, None
            if isinstance(asked.stratum, StratumSums):
                # As many coordinates as the other cube has, so that the law is the same.
                about = np.zeros(law.sides)
                about[: len(exact)] = told.of_sums(asked.n, asked.stratum.totals)
                found = noise.cube(about, law.scale, step, least)[: len(exact)]
                totals = told.sums(found) + asked.n * told.centres
            elif self.shrinks:
                few = question.asked.few.strata[question.asked.strata.index(asked.stratum)]
                with_noise = told, (sums, law), None if size is None else (size, apart)
                seen, gram = _looked(asked.stratum, few, *with_noise)
                expected = _expected(asked.stratum, told, seen, gram)
                if question.candidates is not None:
                    # By all people, of whom `answers` looks at X X'.
                    of_all = seen if few is asked.stratum else _looked(asked.stratum, asked.stratum, *with_noise)[0]
                    looked[asked.stratum.label] = of_all, told.sides
            # Each of N0 people was rounded, by half a step at most.
            return NoisyCounts(
                size,
                apart,
                told.sums(sums),
                law,
                asked.n * step / 2 * told.halves,
                told.centres,
                told.halves,
                expected,
                scales.together,
                totals=totals,
            )

        released = answer(question, facts, buy, shrinks=False, gaussian=False)
        if not looked:
            return released
        sizes = {**facts, **released.facts}

        def look(stratum: Stratum) -> Told:
            size = size_of(sizes[size_fact(stratum.label)], question.records.minimum_group, stratum.people)
            seen, d = looked[stratum.label]
            # Of one coordinate, 9/5 E r^4 / (E r^2)^2 - 3 with r of Gamma(d + 1): 3 for d = 1, and below 0 from 7 on.
            excess = max(0.0, 9 / 5 * (d + 3) * (d + 4) / ((d + 1) * (d + 2)) - 3)
            return Told(size.value, size.law.variance(), seen, excess)

        _, _, joint = answers(question, look)
        return replace(released, joint=joint)


def _looked(
    stratum: Stratum,
    few: Stratum,
    told: Coordinates,
    released: tuple[NDArray[np.float64], CubeNoise],
    size: tuple[float, Laplace | CubeNoise] | None,
) -> tuple[Seen, NDArray[np.float64]]:
    """Say what noisy coordinates tell of a stratum's sums, and N0 where it is released with them; and X X'."""
    sums, law = released
    values, variances = sums, np.full(len(sums), law.variance())
    if size is not None:
        noisy, of_size = size
        values, variances = np.append(values, noisy), np.append(variances, of_size.variance())
    # Not so little that rounding errors decide.
    variances = np.maximum(variances, _VARIANCE_MIN)
    return (_seen if few is stratum else _seen_by_few)(stratum, few, told, values, variances)


def _expected(
    stratum: Stratum, told: Coordinates, seen: Seen, gram: NDArray[np.float64]
) -> Callable[[float], NDArray[np.float64]]:
    """Return what the centred sums are by the posterior, given N0."""

    def expected(n0: float) -> NDArray[np.float64]:
        found = posterior(gram, seen, n0 / stratum.people, stratum.people)
        nearest: NDArray[np.float64] = found.mean + n0 * (stratum.means - told.centres)
        return nearest

    return expected


def _seen(
    stratum: Stratum, _: Stratum, told: Coordinates, values: NDArray[np.float64], variances: NDArray[np.float64]
) -> tuple[Seen, NDArray[np.float64]]:
    """Say what noisy coordinates, and N0 after them, tell of a stratum's sums; and X X'."""
    ones, products, cross = np.zeros(len(values)), np.zeros((len(values),) * 2), np.zeros((stratum.rows, len(values)))
    for _people, block in stratum.blocks():
        rows = told.of(block) * told.step
        if len(values) > told.sides:
            rows = np.vstack([rows, np.ones(block.shape[1])])
        ones += rows.sum(axis=1)
        products += rows @ rows.T
        cross += stratum.centre(block) @ rows.T
    return Seen(values, ones, products, cross, variances), stratum.gram


def _seen_by_few(
    stratum: Stratum, few: Stratum, told: Coordinates, values: NDArray[np.float64], variances: NDArray[np.float64]
) -> tuple[Seen, NDArray[np.float64]]:
    """Return the same of very many people, of whom a part says how coordinates go together, and no more.

    What each coordinate adds up to, and how much it varies, is known of all. That two go together is believed but for
    what people of whom the part has none may change: `_UNSEEN` of those for whom one of it stands.
    """
    d, kept, people = told.sides, told.kept, stratum.people
    sums, products, members = np.zeros(d), np.zeros((d, d)), 0
    for _, block in few.blocks():
        rows = told.of(block) * told.step
        sums, products, members = sums + rows.sum(axis=1), products + rows @ rows.T, members + rows.shape[1]
    products -= np.outer(sums, sums) / members
    of_all = stratum.means * (1 - stratum.means) if stratum.by_sums else stratum.variances
    squares = people * of_all[kept] / told.halves[kept] ** 2
    believed = np.sqrt(np.maximum(squares - _UNSEEN * people / members, 0.0))
    deviations = np.sqrt(np.diag(products))
    scales = np.divide(believed, deviations, out=np.zeros(d), where=deviations > 0)
    products *= np.outer(scales, scales)
    np.fill_diagonal(products, squares)
    effects = np.zeros((stratum.rows, d))
    telling = np.flatnonzero(told.place >= 0)
    effects[telling, told.place[telling]] = (told.sign * told.halves)[telling]
    cross, ones = effects @ products, told.of_sums(people, stratum.totals)
    gram = cross @ effects.T
    if len(values) > d:
        products, cross = np.pad(products, (0, 1)), np.pad(cross, ((0, 0), (0, 1)))
        ones = np.append(ones, people)
    return Seen(values, ones, products + np.outer(ones, ones) / people, cross, variances), gram


def drawn_law(scale: float, sides: int, step: float) -> CubeNoise:
    """Return the noise that is drawn: of this scale, or a larger one, which costs less."""
    # With a wider step than this draws would take long; such a scale is next to nothing.
    return CubeNoise(max(scale, sides * step), max(sides, 1))


def least_size(law: CubeNoise, step: float) -> int:
    """Return how many steps a staircase's least size has, where one person moves by 1; 0 for sizes of all kinds."""
    return max(1, round(law.gamma / step)) if law.stair else 0


def cube_step(epsilon: float, people: int) -> float:
    """Return the grid's step: 2^-24 of the noise's least scale, and at most 1, in units of what one person moves."""
    return min(1.0, step_for(1 / epsilon, 24, magnitude=people))
