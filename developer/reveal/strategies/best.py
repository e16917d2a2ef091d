r"""The strongest attack available for the public facts: metric, mechanism, precision and number of answers.

* **Exact answers** are packed, by `splitting`: no other strategy needs fewer. One ordinary answer about few people
  whose number is public is met in the middle. Where answers are so coarse that a person's weight can hide below their
  last digit, c b < 2 10^-d with c = 1/N0 + 1/N1 >= 4/n and b the most that a score may move, they are statistics.
* **Verdicts** and **predictive parity** have strategies of their own.
* **Few sums**, from which `cells` computes all answers: rows that make these sums the strategy's own partition.
* **Statistics**, all other answers: rows that toss a coin for every score, between the two ends of its range, and the
  decoder that suits the noise distribution. Absolute gaps are queried close to a row whose own gap fixes the sign, and
  read with both signs.

**How many noisy answers.** Noise grows with their number m, so more are not always better. To one person's score test
the m answers are worth d^2 = m (c s)^2 / (c^2 s^2 n V + S(m)^2): s is the standard deviation of a row's scores, S(m)
the noise, and n V the other people's contribution, V = p (1-p) at first, p = N0/n. (Where noise is not Gaussian, the
fraction is replaced by the Fisher information of both together.) But the others become known too, so V shrinks to the
mean variance of a coin of odds p/(1-p) seen through noise at d^2, and so on to a fixed point: state evolution (Donoho,
Maleki, Montanari 2009), where a joint decoder ends. The best m has the largest d^2 there; among the m at which all
people are known, the largest first d^2. No m above about three times what exact answers would take, log2 C(n, N0) /
log2 sqrt(2 pi e n p (1-p) s^2), is needed.

**A public N0 that is sold all the same.** The first batch of `counts` buys N0, at a share of the batch's epsilon that
falls with its size. A strategy that knows N0 queries few rows first, and leaves the rest to later sums: `_size_apart`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from developer.reveal.decode import best as decoder
from developer.reveal.decode import few_sums, score
from developer.reveal.decode.ep import settled
from developer.reveal.decode.likelihood import law_of, likelihood, smeared
from developer.reveal.decode.meet_in_the_middle import is_listable
from developer.reveal.strategies import meet, predictive_parity, splitting, verdicts
from developer.reveal.strategies.compressed import decide, reveal_from_rows, settle
from developer.reveal.strategies.sizes import alone
from developer.reveal.strategies.strategy import ABSOLUTE, ODDS, PLAIN, PRECISION, Reveal, StrategyInputs, everyone
from fairwall.arrays import Floats
from fairwall.laws.metrics.answer_precision import DECIMALS
from fairwall.laws.noise.distributions import Gaussian, NoiseDistribution
from fairwall.laws.privacy.exposure import cells_within, least_people_within

_HUNCH = math.log(0.6 / 0.4)
"""Log-odds given to the guess by h0's scores: Adult's is right for 60% of either group."""

_ENOUGH = 3.0
"""Multiple of the information bound that random rows take."""

_ENOUGH_PEOPLE = 45
"""Number of answers per 100 people from randomised response: only the first costs anything."""

_REPLAYS = 1e-7
"""Error of gaps of noisy attributes after scaling back."""

_LEAST_MOVE = 0.1
"""Largest distance of rows from the base row whose gap fixes the sign, for absolute gaps."""

_KNOWN, _LEAST_LEFT = 50.0, 1e-3
"""The d^2 at which two of 10,000 people are unknown, and the smallest contribution of the others, in people."""

_ROUNDS, _POINTS, _GRID = 20, 31, np.sinh(np.linspace(-7, 7, 141))
"""Iterations of state evolution, and the points of the integrals."""

_SIZE_ROWS = 3
"""Number of rows in the batch that buys a public N0; with fewer, N0's noise clips more of the sums."""


def play(inputs: StrategyInputs) -> Reveal:
    """Play the strategy that suits the public facts."""
    terms = inputs.terms
    if terms.mechanism == "pass-fail":
        return verdicts.play(inputs)
    exact = math.isinf(terms.epsilon)
    if terms.metric in PRECISION:
        if not exact:
            raise ValueError("predictive parity can be read from exact answers only")
        return predictive_parity.play(inputs)
    if terms.mechanism == "round":
        kept = min(terms.precision, DECIMALS) if isinstance(terms.precision, int) else DECIMALS
        terms = replace(terms, precision=kept)
        inputs = replace(inputs, terms=terms)
    if exact and readable(inputs):
        ordinary = inputs.queries == 1 and terms.n0 is not None and is_listable(inputs.people, terms.n0)
        plain = terms.metric in PLAIN and terms.precision == "float64"
        return meet.play(inputs) if ordinary and plain else splitting.play(inputs)
    inputs = replace(inputs, decode=inputs.decode or decoder.decode, llr=inputs.llr or hunch(inputs))
    if terms.metric in ABSOLUTE | ODDS:
        return _both_signs(inputs)
    if terms.noise_on in ("cube", "cells", "directions"):
        return _few_sums(inputs)
    if terms.noise_on == "any":
        return _either_reading(inputs)
    if terms.noise_on == "sums" and terms.first and inputs.queries > _SIZE_ROWS:
        return _size_apart(inputs)
    queries = fewest(inputs)
    inputs.auditor.give_up(inputs.queries - queries)
    return reveal_from_rows(
        replace(inputs, queries=queries),
        lambda limited: coins(limited.base(), limited.perturbation, limited.queries, limited.rng),
    )


def readable(inputs: StrategyInputs) -> bool:
    """Return whether exact answers are precise enough to be packed."""
    precision = inputs.terms.precision
    if not isinstance(precision, int):
        return True
    return min(inputs.perturbation, 1.0) * 4 / inputs.people >= 2 * 10.0**-precision


def coins(base: Floats, reach: float, queries: int, rng: np.random.Generator) -> Floats:
    """Return rows, (m, n), whose scores are at either end of [0, 1] within `reach` of h0's, (n,), by coin toss."""
    low, high = np.maximum(base - reach, 0.0), np.minimum(base + reach, 1.0)
    return np.where(rng.integers(0, 2, (queries, base.size)) == 1, high, low)


def fewest(inputs: StrategyInputs) -> int:
    """Return the best number of noisy answers, at least 1 and at most ``inputs.queries``."""
    n, terms = inputs.people, inputs.terms
    if terms.noise_on == "attributes":
        return min(inputs.queries, n)  # the first is paid for, the others are free
    n0 = few_sums.usual_size(n) if terms.n0 is None else terms.n0
    c, others = 1 / n0 + 1 / (n - n0), n0 * (n - n0) / n
    variance = 0.25 if inputs.perturbation >= 1 else inputs.perturbation**2
    told = 0.5 * math.log2(max(2 * math.pi * math.e * others * variance, 4.0))
    most = min(inputs.queries, max(1, math.ceil(_ENOUGH * math.log2(math.comb(n, n0)) / told)))

    laws = [
        law_of(terms, n0=n0, n1=n - n0, queries=m, epsilon=terms.shares(m)[1]) or Gaussian(0.0)
        for m in range(1, most + 1)
    ]

    def worth(others: Floats) -> Floats:
        told = [_information(law, float(c * c * variance * v)) for law, v in zip(laws, others, strict=True)]
        of_all: Floats = c * c * variance * np.arange(1, most + 1) * np.array(told)
        return of_all

    first = last = worth(np.full(most, others))
    points, weights = np.polynomial.hermite_e.hermegauss(_POINTS)
    for _ in range(_ROUNDS):
        left = np.zeros(most)
        for share, shift in ((n0 / n, 0.5), (1 - n0 / n, -0.5)):
            seen = math.log(n0 / (n - n0)) + last[:, None] * shift + np.sqrt(last)[:, None] * points
            left += share * (0.25 / np.cosh(np.clip(seen / 2, -300, 300)) ** 2) @ (weights / weights.sum())
        before, last = last, worth(np.maximum(n * left, _LEAST_LEFT))
        if np.allclose(before, last, rtol=0.01):
            break
    return 1 + int(np.lexsort((first, np.minimum(last, _KNOWN)))[-1])


def _information(law: NoiseDistribution, variance: float) -> float:
    """Return the Fisher information about the location of a number observed with noise and a Gaussian spread."""
    r = (math.sqrt(variance) + law.median_abs()) * _GRID
    log, slope, _ = smeared(law, r, np.full(r.size, variance))
    density = np.exp(log) * np.gradient(r)
    return float((density * slope**2).sum() / density.sum())


def hunch(inputs: StrategyInputs) -> Callable[[], Floats]:
    """Return log-odds, (n,), of the prior guess at its usual worth; uninformative answers leave it unchanged."""
    return lambda: np.where(inputs.prior() == 0, _HUNCH, -_HUNCH)


def _size_apart(inputs: StrategyInputs) -> Reveal:
    """Buy N0 with the first few rows, and query the others with the rest of epsilon."""
    # Every row has the same share of epsilon. Rows of the first batch have more noise, since N0 is paid from it, too:
    # this is modelled as scores nearer to 1/2 with the later rows' noise.
    later = replace(inputs, terms=replace(inputs.terms, first=False))
    queries = max(fewest(later), _SIZE_ROWS + 1)
    inputs.auditor.give_up(inputs.queries - queries)
    H = coins(inputs.base(), inputs.perturbation, queries, inputs.rng)
    gaps = np.append(inputs.auditor.gaps(H[:_SIZE_ROWS]), inputs.auditor.gaps(H[_SIZE_ROWS:]))
    evidence = settle(later, None, H, gaps)
    own = {"n0": evidence.n0, "n1": evidence.n1, "queries": _SIZE_ROWS}
    law = law_of(inputs.terms, **own, epsilon=inputs.terms.epsilon * _SIZE_ROWS / queries)
    assert law is not None, "counts have noise"
    assert evidence.noise is not None, "likewise"
    nearer = np.where(np.arange(queries) < _SIZE_ROWS, evidence.noise.scale / law.scale, 1.0)
    rows = 0.5 + nearer[:, np.newaxis] * (evidence.rows - 0.5)
    return decide(later, replace(evidence, rows=rows, gaps=nearer * evidence.gaps))


def _either_reading(inputs: StrategyInputs) -> Reveal:
    """Read answers of `recommended`, from noisy counts or randomised response, without knowing which."""
    # The size query, if any, goes into the batch, so that both have one mechanism. Randomised response's answers are
    # the exact gaps of noisy attributes: if some attributes reproduce them, the mechanism is known.
    queries = min(fewest(replace(inputs, terms=replace(inputs.terms, mechanism="counts"))), inputs.queries)
    queries = max(queries, min(inputs.queries, _ENOUGH_PEOPLE * inputs.people // 100))
    inputs.auditor.give_up(inputs.queries - queries)
    H = coins(inputs.base(), inputs.perturbation, queries, inputs.rng)
    if inputs.terms.n0 is None:
        size_answer, gaps = inputs.auditor.sized_gaps(alone(inputs.people, 0), H)
    else:
        size_answer, gaps = None, inputs.auditor.gaps(H)
    for mechanism in ("randomized-response", "counts"):
        own = replace(inputs, terms=replace(inputs.terms, mechanism=mechanism))
        evidence = settle(own, size_answer, H, gaps)
        reveal = decide(own, evidence)
        told = reveal.guess if reveal.from_answers is None else reveal.from_answers
        v = np.where(told == 1, 1 / evidence.n1, -1 / evidence.n0)
        if mechanism == "counts" or np.abs(H @ v - evidence.gaps).max() < _REPLAYS:
            return reveal
    raise AssertionError("the last reading is taken as it is")


def _few_sums(inputs: StrategyInputs) -> Reveal:
    """Choose rows so that the released sums match the strategy's own partition of the people."""
    # Rows of disjoint people do so for cells; for a cube the number of rows is chosen as for one. No size query is
    # sent: a cube's answers reveal the N0 they were computed with, and a ranking of people needs none.
    n, terms = inputs.people, inputs.terms
    cells = terms.noise_on == "cells"
    as_cube = replace(inputs, terms=replace(terms, mechanism="cube"))
    queries = min(inputs.queries, _cells_max(inputs)) if cells else fewest(as_cube)
    inputs.auditor.give_up(inputs.queries - queries + (terms.n0 is None))
    if cells:
        base = inputs.base()
        block = inputs.rng.permutation(np.arange(n) * queries // n)
        low, high = np.maximum(base - inputs.perturbation, 0.0), np.minimum(base + inputs.perturbation, 1.0)
        H = np.where(np.equal.outer(np.arange(queries), block), high, low)
    else:
        H = coins(inputs.base(), inputs.perturbation, queries, inputs.rng)
    if cells and inputs.decode is decoder.decode:
        # Cells share nobody, so there is nothing to decode jointly; and a wrong N0 does no harm.
        inputs = replace(inputs, decode=score.decode)
    gaps = inputs.auditor.gaps(H)
    return decide(inputs, settled(terms, None, H, gaps, size_epsilon=0.0, epsilon=terms.epsilon, rng=inputs.rng))


def _cells_max(inputs: StrategyInputs) -> int:
    """Return the most cells into which a batch may cut the people."""
    n, epsilon, limit = inputs.people, inputs.terms.epsilon, inputs.terms.limit
    return max(1, min(n // least_people_within(epsilon, limit), cells_within(max(2, n), epsilon, limit)))


def _both_signs(inputs: StrategyInputs) -> Reveal:
    """Return a partition from noisy absolute gaps."""
    # Close to a row with gap g, |g + d v| is (g + d v) times the sign of g. The wrong sign exchanges the groups and
    # their sizes; the sign with the larger likelihood is kept.
    near = replace(inputs, perturbation=min(inputs.perturbation, _LEAST_MOVE))
    queries = fewest(near)
    inputs.auditor.give_up(inputs.queries - queries)
    size_answer = inputs.auditor.size(alone(inputs.people, 0)) if inputs.terms.n0 is None else None
    H = coins(inputs.base(), near.perturbation, queries, inputs.rng)
    gaps = inputs.auditor.gaps(H)
    readings = []
    for sign in (1, -1):
        evidence = settle(inputs, size_answer, H, sign * gaps)
        s = 1 / evidence.n1 - (inputs.decode or decoder.decode)(evidence)
        guess = s <= 0.5 * (1 / evidence.n1 + 1 / evidence.n0)
        readings.append((likelihood(evidence, guess.astype(np.uint8)), guess, s, evidence.n0))
    _, guess, s, n0 = max(readings, key=lambda reading: reading[0])
    n, advantaged, public = guess.size, int(guess.sum()), inputs.terms.n0
    if public is None:
        # The smaller part is named disadvantaged, as in `absolute`.
        named, told = (guess if 2 * advantaged >= n else ~guess), 2 * advantaged != n
    else:
        # Noisy counts are read with the N0 of their computation, or in the mirror image with the other size.
        named, told = (guess if abs(n0 - public) <= abs(n - n0 - public) else ~guess), 2 * public != n
    return replace(everyone(named, s), polarity_known=told)
