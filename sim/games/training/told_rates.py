r"""Errors of groups' rates that are told with noise, by the size of the group.

**Noise.** The developer requests once the groups' sums of rows 2y - 1, y being the labels, and their sizes
(`developer.training.groups.GroupAdder.rates`). Compliance adds Gaussian noise of standard deviation sigma = 2 m to each
number: 2 is the l2 sensitivity of an answer to one person's A (`compliance.answers.statistics.SENSITIVITY`), and m the
multiplier at which one request spends epsilon and delta (`developer.training.play.flip_multiplier`). A group of n
people, a share r of them with label 1, has the sum (2r - 1) n. The told rate, with noise
e on the sum and f on the size, is

    1/2 + ((2r - 1) n + e) / (2 (n + f))  =  r + (e - (2r - 1) f) / (2 n) + terms of order 1/n^2,

so to first order its error is normal around 0 with the standard deviation

    sigma sqrt(1 + (2r - 1)^2) / (2 n)  =  m sqrt(1 + (2r - 1)^2) / n.

That is the 1/(epsilon n) of [SD]: m is about proportional to 1/epsilon where epsilon is small. It holds while sigma is
well below n; told rates lie in [0, 1], so no error is above 1.

**Sampling.** The n people are drawn from a table in which the group has rate r; their rate is off by
sqrt(r (1 - r) / n), and by sqrt(1 - n/N) of that where the table has N of them, since nobody is drawn twice.

**Crossing.** The two are equal at n = m^2 (1 + (2r - 1)^2) / (r (1 - r)): noise is larger below, sampling above.

[SD]: "From Statistical Disclosure Control to Fair AI", arXiv 2601.17909.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from developer.training.play import flip_multiplier
from sim.games.game import Line
from sim.games.training.scenario import TrainingScenario
from sim.report.cells import scenario_of
from sim.report.notation import number
from sim.scenarios.sweep import Sweep


@dataclass(frozen=True)
class ToldRate:
    """The rate of one group in one cell.

    Attributes
    ----------
    group : 0 for the disadvantaged one, 1 for the advantaged one.
    people : number of the group's people trained on.
    rate : their rate of label 1.
    epsilon : compliance's charge for flips of A; None where the developer holds A, and there is no noise.
    noise, sampling : root mean squares of the errors over the trials.
    noise_law, sampling_law : their theoretical values; that of noise at most 1, and 0 where there is none.
    crossing : size at which these are equal; 0 where there is no noise, infinite where all have one label.
    """

    group: int
    people: float
    rate: float
    epsilon: float | None
    noise: float
    sampling: float
    noise_law: float
    sampling_law: float
    crossing: float

    @property
    def noise_is_larger(self) -> bool:
        """Whether the measured noise exceeds the sampling error."""
        return self.noise > self.sampling


def noise_scale(epsilon: float, delta: float, rate: float) -> float:
    """Return the noise's standard deviation, times the number of people; one request spends epsilon and delta."""
    return flip_multiplier(epsilon, delta, 1) * math.sqrt(1 + (2 * rate - 1) ** 2)


def sampling_error(rate: float, people: float) -> float:
    """Return the standard deviation of the rate of this number of people, drawn independently."""
    return math.sqrt(rate * (1 - rate) / people)


def crossing(epsilon: float, delta: float, rate: float) -> float:
    """Return the size of a group at which noise and sampling errors are equal; infinite where all have one label."""
    spread = rate * (1 - rate)
    return noise_scale(epsilon, delta, rate) ** 2 / spread if spread > 0 else math.inf


def told_rates(sweep: Sweep[TrainingScenario], cells: Sequence[Line]) -> list[ToldRate]:
    """Return the groups' rates of cells in which they were requested."""
    return [_of(scenario_of(sweep, cell), cell, group) for cell in cells for group in (0, 1)]


def _of(scenario: TrainingScenario, cell: Line, group: int) -> ToldRate:
    people, rate, delta = cell["sizes"][group], cell["rates"][group], scenario.compliance.delta
    epsilon = scenario.epsilon if scenario.told else None
    return ToldRate(
        group=group,
        people=people,
        rate=rate,
        epsilon=epsilon,
        noise=cell["noise_errors"][group],
        sampling=cell["sampling_errors"][group],
        noise_law=0.0 if epsilon is None else min(1.0, noise_scale(epsilon, delta, rate) / people),
        sampling_law=sampling_error(rate, people),
        crossing=0.0 if epsilon is None else crossing(epsilon, delta, rate),
    )


def conclusions(rates: Sequence[ToldRate]) -> list[str]:
    """Return findings on the sizes at which noise or sampling is the larger error."""
    noisy = [one for one in rates if one.epsilon is not None]
    if not noisy:
        return []
    # A cell agrees with the laws if the error that they call larger is the larger one as measured.
    right = sum(one.noise_is_larger == (one.people < one.crossing) for one in noisy)
    return [
        *_crossings([one for one in noisy if one.group == 0]),
        f"As measured, the larger error was the one that the laws say in {right} of {len(noisy)} groups of cells.",
    ]


def _crossings(few: Sequence[ToldRate]) -> Iterator[str]:
    """Yield a finding for each epsilon, at the disadvantaged group's middle rate over its cells."""
    for epsilon in sorted({one.epsilon for one in few if one.epsilon is not None}):
        sizes, rates = (
            sorted(getattr(one, key) for one in few if one.epsilon == epsilon) for key in ("crossing", "rate")
        )
        middle = len(sizes) // 2
        if not math.isinf(sizes[middle]):
            yield (
                f"At ε {number(epsilon)} of A, noise is the larger error in disadvantaged groups of fewer than "
                f"{number(sizes[middle], 2)} people (of rate {rates[middle]:.2f}), and sampling in larger ones."
            )
