"""What a strategy is given, what it may ask, and what it gives back."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from developer.reveal.decode.decoder import Decoder
from fairwall.laws.exposure import NO_LIMIT, Limit
from fairwall.laws.mechanisms import MECHANISM_LAWS, Noisy
from fairwall.laws.metric import METRICS, Metric
from fairwall.laws.precision import Precision


class Metrics(Set[str]):
    """The names of the metrics of which something is so, those of plug-ins among them once they are looked up."""

    __hash__ = object.__hash__  # it does not change

    @classmethod
    def _from_iterable(cls, names: Iterable[str]) -> Set[str]:  # type: ignore[override]  # what is left of some
        return frozenset(names)

    def __init__(self, fits: Callable[[Metric], bool]) -> None:
        self._fits = fits

    def __contains__(self, name: object) -> bool:
        return name in METRICS and self._fits(METRICS[str(name)])

    def __iter__(self) -> Iterator[str]:
        return (name for name, metric in METRICS.items() if self._fits(metric))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __or__(self, other: object) -> Metrics:
        if not isinstance(other, Metrics):
            return NotImplemented
        return Metrics(lambda metric: self._fits(metric) or other._fits(metric))


SIGNED = Metrics(lambda metric: metric.of_means and not metric.absolute)
"""Metrics that are a statistical parity gap of something, sign and all."""

PLAIN = Metrics(lambda metric: metric.name in SIGNED and metric.parts[0].value == "prediction")
"""Metrics that are the statistical parity gap of the predictions in a stratum."""

ABSOLUTE = Metrics(lambda metric: metric.of_means and metric.absolute)
"""Metrics that are the absolute value of such a gap."""

ODDS = Metrics(lambda metric: metric.joined is not None)
"""Metrics that can be asked for one absolute gap at a time."""

RATIO = Metrics(lambda metric: not metric.bounded)
"""Metrics from which a gap can be told once the sizes are known."""


PRECISION = Metrics(lambda metric: metric.binary)
"""Metrics of decisions that tell a gap of precision."""


@dataclass(frozen=True)
class Terms:
    """What is public about the answers.

    Attributes
    ----------
    metric, mechanism : their names.
    epsilon : the privacy loss that all queries together may spend, the size query included; infinite for no noise.
    delta : that of one batch.
    precision : None where nobody says.
    n0 : how many disadvantaged people the metric looks at; None where that is not public. Whoever knows it asks no size
        query.
    limit : what a batch may give away, by which cells are cut.
    first : whether the batch to come is the first of the account; with `counts` that one buys N0 as well as sums.
    """

    metric: str = "sp"
    mechanism: str = "exact"
    epsilon: float = math.inf
    delta: float = 0.0
    precision: Precision | None = "float64"
    n0: int | None = None
    first: bool = False
    limit: Limit = NO_LIMIT

    @property
    def noise_on(self) -> Noisy:
        """What noise is added to, by which answers are read."""
        return MECHANISM_LAWS[self.mechanism].noise_on

    def shares(self, queries: int) -> tuple[float, float]:
        """Say what the size query and so many metric queries in one batch spend of epsilon; 0 for what is not asked.

        Each query has one share. What randomised response sells first answers everything.
        """
        if self.noise_on == "attributes" or math.isinf(self.epsilon):
            return self.epsilon, self.epsilon
        size = self.epsilon / (queries + 1) if self.n0 is None else 0.0
        return size, self.epsilon - size


class Auditor(Protocol):
    """What a strategy may ask.

    A strategy plays on the people whom the metric looks at, and thinks in statistical parity gaps among them; the
    auditor says it in the metric's own terms.
    """

    def give_up(self, queries: int) -> None:
        """Say, before asking anything, that so many of the metric queries there may be will not be asked.

        What they might have spent goes to the others.
        """
        ...

    def size(self, row: NDArray[np.float64]) -> float:
        """Ask the size query (Remark 4): the gap of one row, (n,) in [0, 1]. Not where `Terms.n0` is known."""
        ...

    def gaps(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Ask metric queries: the gaps, (m,), of the rows, (m, n) in [0, 1]."""
        ...

    def sized_gaps(self, row: NDArray[np.float64], rows: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Ask the size query and metric queries in one batch, where one choice of compliance's is to answer both."""
        ...


@dataclass(frozen=True)
class Hand:
    """What a strategy plays with.

    Attributes
    ----------
    people : n.
    base : the base model h0's scores on the n people, (n,) in [0, 1]; may wait for h0 to be trained.
    prior : the guess made without any query, (n,), 1 = advantaged.
    auditor : who answers.
    rng : the source of random rows.
    queries : m, the number of metric queries, or the most there may be; strategies that always ask the same number do
        not look at it.
    perturbation : b, how far any score asked about may be from h0's; 1 leaves rows free.
    decode : the decoder; None for the strategy's own.
    target : the person aimed at, by the strategies that aim at one.
    terms : what is public about the answers.
    llr : (n,), the log-likelihood ratio of being disadvantaged to being advantaged that features alone give, by a
        public sample; None without one. May wait for its predictor to be trained.
    labels : (n,), the public labels.
    """

    people: int
    base: Callable[[], NDArray[np.float64]]
    prior: Callable[[], NDArray[np.uint8]]
    auditor: Auditor
    rng: np.random.Generator
    queries: int
    perturbation: float = 0.1
    decode: Decoder | None = None
    target: int = 0
    terms: Terms = Terms()
    llr: Callable[[], NDArray[np.float64]] | None = None
    labels: NDArray[np.uint8] | None = None


@dataclass(frozen=True)
class Reveal:
    """What a strategy found out.

    Attributes
    ----------
    guess : (n,), 1 = advantaged.
    targeted : (n,), the people the strategy speaks about; the others keep the guess made without any query.
    reconstruction : (n,), the recovered s of Theorem 2, where there is one.
    polarity_known : False for a partition: either of the two groups may be the advantaged one.
    from_answers : (n,), the guess that the answers alone lead to, where ``guess`` looks at features too; else None.
    confidence : (n,), how probable answers alone make it, at even odds, that a person is disadvantaged, in [0, 1]; None
        where no law of the noise was looked at.
    """

    guess: NDArray[np.uint8]
    targeted: NDArray[np.bool_]
    reconstruction: NDArray[np.float64] | None = None
    polarity_known: bool = True
    from_answers: NDArray[np.uint8] | None = None
    confidence: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Strategy:
    """A strategy of Attribute-Reveal.

    Attributes
    ----------
    name : as players choose it.
    play : the strategy itself.
    counts : from n to the numbers m of metric queries it can be played with; any where nothing is said.
    metrics : what it reads.
    decoders : what it can be combined with, its own first; none where it reads the answers directly.
    size_queries : how many size queries it asks besides the m, at most.
    adaptive : whether it stops once it knows everybody: m is then the most it asks, and need not be given.
    exact : whether only exact answers are of use to it.
    mechanism : the only one whose answers it reads, where there is one.
    free : whether its rows cannot be kept near h0.
    perturbation : how far its rows may be from h0 where nobody says; 1 leaves them free.
    """

    name: str
    play: Callable[[Hand], Reveal]
    counts: Callable[[int], range] = lambda _: range(1, sys.maxsize)
    metrics: Set[str] = SIGNED
    decoders: tuple[str, ...] = ()
    size_queries: int = 0
    adaptive: bool = False
    exact: bool = False
    mechanism: str | None = None
    free: bool = False
    perturbation: float = 1.0


def aimed(hand: Hand, advantaged: bool) -> Reveal:
    """Speak about the target alone."""
    guess = hand.prior().astype(np.uint8)
    guess[hand.target] = advantaged
    return Reveal(guess, np.arange(hand.people) == hand.target)


def everyone(guess: NDArray[np.bool_], reconstruction: NDArray[np.float64] | None = None) -> Reveal:
    """Speak about all n people."""
    return Reveal(guess.astype(np.uint8), np.ones(guess.size, np.bool_), reconstruction)
