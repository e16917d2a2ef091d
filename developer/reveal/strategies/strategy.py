"""The interface of a reveal strategy: its inputs, its auditor, and its result."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from developer.reveal.decode.decoder import Decoder
from fairwall.arrays import Bools, Bytes, Floats
from fairwall.laws.mechanisms.table import MECHANISM_LAWS, Noisy
from fairwall.laws.metrics.answer_precision import Precision
from fairwall.laws.metrics.metric import METRICS, Metric
from fairwall.laws.privacy.exposure import NO_LIMIT, Limit


class Metrics(Set[str]):
    """The set of names of metrics with a property; a plug-in's metric counts once it is looked up."""

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
"""Metrics that are a signed statistical parity gap of some value."""

PLAIN = Metrics(lambda metric: metric.name in SIGNED and metric.parts[0].value == "prediction")
"""Metrics that are the statistical parity gap of the predictions in a stratum."""

ABSOLUTE = Metrics(lambda metric: metric.of_means and metric.absolute)
"""Metrics that are the absolute value of a statistical parity gap."""

ODDS = Metrics(lambda metric: metric.joined is not None)
"""Metrics of which one absolute gap at a time can be queried."""

RATIO = Metrics(lambda metric: not metric.bounded)
"""Metrics from which a gap can be computed once the group sizes are known."""


PRECISION = Metrics(lambda metric: metric.binary)
"""Metrics of decisions from which a gap of precision can be computed."""


@dataclass(frozen=True)
class PublicTerms:
    """The public facts about the answers.

    Attributes
    ----------
    epsilon : privacy budget of all queries together, the size query included; infinite means no noise.
    delta : the delta of one batch.
    precision : the answers' number format; None where it is not public.
    n0 : disadvantaged people whom the metric counts; None where not public. If it is public, no size query is sent.
    first : whether the next batch is the account's first; under `counts` that batch buys N0 as well as sums.
    limit : limit on what a batch may reveal; it determines the cells.
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
        """The part of the computation that the noise is added to, which decides how answers are read."""
        return MECHANISM_LAWS[self.mechanism].noise_on

    def shares(self, queries: int) -> tuple[float, float]:
        """Return the epsilon of the size query, and of that many metric queries together, in one batch; 0 for no query.

        Each query has one share. The first answer of randomised response answers everything.
        """
        if self.noise_on == "attributes" or math.isinf(self.epsilon):
            return self.epsilon, self.epsilon
        size = self.epsilon / (queries + 1) if self.n0 is None else 0.0
        return size, self.epsilon - size


class Auditor(Protocol):
    """The queries that a strategy may send.

    A strategy sees only the people whom the metric counts, and works in statistical parity gaps among them; the auditor
    translates to the metric's own terms.
    """

    def give_up(self, queries: int) -> None:
        """Renounce that many of the metric queries, before the first query; the others get their budget."""
        ...

    def size(self, row: Floats) -> float:
        """Send the size query (Remark 4) of one row, (n,) in [0, 1], and return its gap; only where n0 is unknown."""
        ...

    def gaps(self, rows: Floats) -> Floats:
        """Send metric queries and return the gaps, (m,), of the rows, (m, n) in [0, 1]."""
        ...

    def sized_gaps(self, row: Floats, rows: Floats) -> tuple[float, Floats]:
        """Send the size query and metric queries in one batch, so compliance answers both with one mechanism."""
        ...


@dataclass(frozen=True)
class StrategyInputs:
    """The inputs of a strategy.

    Attributes
    ----------
    people : n.
    base : returns the scores of the base model h0, (n,) in [0, 1]; may wait for training to end.
    prior : returns the guess made without any query, (n,), 1 = advantaged.
    rng : the source of random rows.
    queries : m, the number of metric queries, or the most; ignored by strategies with a fixed number.
    perturbation : b, the largest distance of a queried score from h0's; 1 leaves rows free.
    decode : the decoder; None for the strategy's default.
    target : the person aimed at, for strategies that aim at one.
    llr : returns (n,), the log-likelihood ratio of being disadvantaged to being advantaged by features alone, from a
        public sample; None without a sample. May wait for its predictor to be trained.
    labels : (n,), the public labels.
    """

    people: int
    base: Callable[[], Floats]
    prior: Callable[[], Bytes]
    auditor: Auditor
    rng: np.random.Generator
    queries: int
    perturbation: float = 0.1
    decode: Decoder | None = None
    target: int = 0
    terms: PublicTerms = PublicTerms()
    llr: Callable[[], Floats] | None = None
    labels: Bytes | None = None


@dataclass(frozen=True)
class Reveal:
    """The result of a strategy.

    Attributes
    ----------
    guess : (n,), 1 = advantaged.
    targeted : (n,), the people the strategy has a result for; the others keep the prior guess.
    reconstruction : (n,), the recovered s of Theorem 2, or None.
    polarity_known : False for a partition: either of the two groups may be the advantaged one.
    from_answers : (n,), the guess from answers alone, where ``guess`` uses features too; else None.
    confidence : (n,) in [0, 1], the probability, from answers alone and at even odds, that a person is disadvantaged;
        None where the noise distribution was not used.
    """

    guess: Bytes
    targeted: Bools
    reconstruction: Floats | None = None
    polarity_known: bool = True
    from_answers: Bytes | None = None
    confidence: Floats | None = None


@dataclass(frozen=True)
class Strategy:
    """A strategy of Attribute-Reveal.

    Attributes
    ----------
    name : as players choose it.
    counts : maps n to the allowed numbers m of metric queries; any by default.
    metrics : the metrics whose answers it reads.
    decoders : the decoders it can be combined with, its default first; none where it reads the answers directly.
    size_queries : most size queries besides the m.
    adaptive : whether it stops once everybody is known: m is then an upper limit, and optional.
    exact : whether it can use exact answers only.
    mechanism : the only mechanism whose answers it reads, or None for any.
    free : whether its rows cannot be kept near h0.
    perturbation : default distance of its rows from h0; 1 leaves them free.
    """

    name: str
    play: Callable[[StrategyInputs], Reveal]
    counts: Callable[[int], range] = lambda _: range(1, sys.maxsize)
    metrics: Set[str] = SIGNED
    decoders: tuple[str, ...] = ()
    size_queries: int = 0
    adaptive: bool = False
    exact: bool = False
    mechanism: str | None = None
    free: bool = False
    perturbation: float = 1.0


def aimed(inputs: StrategyInputs, advantaged: bool) -> Reveal:
    """Return a result about the target alone."""
    guess = inputs.prior().astype(np.uint8)
    guess[inputs.target] = advantaged
    return Reveal(guess, np.arange(inputs.people) == inputs.target)


def everyone(guess: Bools, reconstruction: Floats | None = None) -> Reveal:
    """Return a result about all n people."""
    return Reveal(guess.astype(np.uint8), np.ones(guess.size, np.bool_), reconstruction)
