r"""The strongest attack there is here on what is public: metric, mechanism, precision, how many answers there may be.

* **Exact answers** are packed, by `splitting`: no other strategy needs fewer. One ordinary answer about few people
  whose number is public is met in the middle. Where answers are so coarse that a person's weight can hide below their
  last digit, c b < 2 10^-d with c = 1/N0 + 1/N1 >= 4/n and b the most that a score may move, they are statistics.
* **Verdicts** and **predictive parity** have strategies of their own.
* **Few sums**, of which `cells` make all answers: rows that make these sums our own.
* **Statistics**, all other answers: rows that toss a coin for every score, between the two ends of what it may be, and
  the decoder that suits the law of the noise. Of the absolute value of a gap we ask close to a row whose own gap keeps
  the sign, and read the answers both ways.

**How many noisy answers.** Noise grows with their number m, so more are not always better. To one person's score test
the m answers are worth d^2 = m (c s)^2 / (c^2 s^2 n V + S(m)^2): s is the standard deviation of a row's scores, S(m)
the noise, and n V what the other people add, V = p (1-p) at first, p = N0/n. (Where noise is not Gaussian, in place of
the fraction stands the Fisher information of both together.) But what d^2 tells of them leaves a V that is smaller, the
mean variance of a coin of odds p/(1-p) seen through noise at d^2, and so on to a fixed point: state evolution (Donoho,
Maleki, Montanari 2009), by which a decoder that finds all out together ends. We take the m that makes that d^2 largest,
and where all are known by it the one that makes the first largest: it need not be larger than about three times what
exact answers would take, log2 C(n, N0) / log2 sqrt(2 pi e n p (1-p) s^2).

**A public N0 that is sold all the same.** The first batch of `counts` buys N0, at a share of the batch's epsilon that
falls with its size. Who knows N0 asks few rows first, and leaves the rest to the sums that follow: `_size_apart`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from developer.reveal.decode import best as decoder
from developer.reveal.decode import few_sums, score
from developer.reveal.decode.ep import settled
from developer.reveal.decode.likelihood import law_of, likelihood, smeared
from developer.reveal.decode.meet import is_listable
from developer.reveal.strategies import meet, predictive_parity, splitting, verdicts
from developer.reveal.strategies.compressed import decide, reveal_from_rows, settle
from developer.reveal.strategies.sizes import alone
from developer.reveal.strategies.strategy import ABSOLUTE, ODDS, PLAIN, PRECISION, Hand, Reveal, everyone
from fairwall.laws.exposure import cells_within, least_people_within
from fairwall.laws.noise import Gaussian, Law
from fairwall.laws.precision import DECIMALS

_HUNCH = math.log(0.6 / 0.4)
"""What is made of a guess by h0's scores: that of Adult is right for 60% of either group."""

_ENOUGH = 3.0
"""How many times the information bound random rows take."""

_ENOUGH_PEOPLE = 45
"""How many answers for 100 people randomised response is asked for: they cost nothing more than the first."""

_REPLAYS = 1e-7
"""What gaps of noisy attributes may be off by, after they were scaled back."""

_LEAST_MOVE = 0.1
"""How far from a row whose gap keeps its sign absolute gaps are asked for."""

_KNOWN, _LEAST_LEFT = 50.0, 1e-3
"""The d^2 at which of 10,000 people two are not known, and the least that others may add, in people."""

_ROUNDS, _POINTS, _GRID = 20, 31, np.sinh(np.linspace(-7, 7, 141))
"""How often state evolution is iterated, and where integrals are evaluated."""

_SIZE_ROWS = 3
"""How many rows N0 is sold with where it is public: with fewer its noise moves more of the sums to an end."""


def play(hand: Hand) -> Reveal:
    """Play the strategy that suits what is public."""
    terms = hand.terms
    if terms.mechanism == "pass-fail":
        return verdicts.play(hand)
    exact = math.isinf(terms.epsilon)
    if terms.metric in PRECISION:
        if not exact:
            raise ValueError("predictive parity can be read from exact answers only")
        return predictive_parity.play(hand)
    if terms.mechanism == "round":
        kept = min(terms.precision, DECIMALS) if isinstance(terms.precision, int) else DECIMALS
        terms = replace(terms, precision=kept)
        hand = replace(hand, terms=terms)
    if exact and readable(hand):
        ordinary = hand.queries == 1 and terms.n0 is not None and is_listable(hand.people, terms.n0)
        plain = terms.metric in PLAIN and terms.precision == "float64"
        return meet.play(hand) if ordinary and plain else splitting.play(hand)
    hand = replace(hand, decode=hand.decode or decoder.decode, llr=hand.llr or hunch(hand))
    if terms.metric in ABSOLUTE | ODDS:
        return _both_signs(hand)
    if terms.noise_on in ("cube", "cells", "directions"):
        return _few_sums(hand)
    if terms.noise_on == "any":
        return _either_reading(hand)
    if terms.noise_on == "sums" and terms.first and hand.queries > _SIZE_ROWS:
        return _size_apart(hand)
    queries = fewest(hand)
    hand.auditor.give_up(hand.queries - queries)
    return reveal_from_rows(
        replace(hand, queries=queries), lambda own: coins(own.base(), own.perturbation, own.queries, own.rng)
    )


def readable(hand: Hand) -> bool:
    """Say whether exact answers are precise enough to be packed."""
    precision = hand.terms.precision
    if not isinstance(precision, int):
        return True
    return min(hand.perturbation, 1.0) * 4 / hand.people >= 2 * 10.0**-precision


def coins(base: NDArray[np.float64], reach: float, queries: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Toss a coin for every score, between the ends of what it may be, so far from h0's, (n,); (m, n) in [0, 1]."""
    low, high = np.maximum(base - reach, 0.0), np.minimum(base + reach, 1.0)
    return np.where(rng.integers(0, 2, (queries, base.size)) == 1, high, low)


def fewest(hand: Hand) -> int:
    """Choose how many noisy answers to ask for, at least 1 and at most the hand's queries."""
    n, terms = hand.people, hand.terms
    if terms.noise_on == "attributes":
        return min(hand.queries, n)  # the first is paid for, the others are free
    n0 = few_sums.usual_size(n) if terms.n0 is None else terms.n0
    c, others = 1 / n0 + 1 / (n - n0), n0 * (n - n0) / n
    variance = 0.25 if hand.perturbation >= 1 else hand.perturbation**2
    told = 0.5 * math.log2(max(2 * math.pi * math.e * others * variance, 4.0))
    most = min(hand.queries, max(1, math.ceil(_ENOUGH * math.log2(math.comb(n, n0)) / told)))

    laws = [
        law_of(terms, n0=n0, n1=n - n0, queries=m, epsilon=terms.shares(m)[1]) or Gaussian(0.0)
        for m in range(1, most + 1)
    ]

    def worth(others: NDArray[np.float64]) -> NDArray[np.float64]:
        told = [_information(law, float(c * c * variance * v)) for law, v in zip(laws, others, strict=True)]
        of_all: NDArray[np.float64] = c * c * variance * np.arange(1, most + 1) * np.array(told)
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


def _information(law: Law, variance: float) -> float:
    """Return the Fisher information that a number has of where it is, seen through a law and a Gaussian spread."""
    r = (math.sqrt(variance) + law.median_abs()) * _GRID
    log, slope, _ = smeared(law, r, np.full(r.size, variance))
    density = np.exp(log) * np.gradient(r)
    return float((density * slope**2).sum() / density.sum())


def hunch(hand: Hand) -> Callable[[], NDArray[np.float64]]:
    """Take the guess made without asking for what it usually is worth: answers that say nothing leave it as it is."""
    return lambda: np.where(hand.prior() == 0, _HUNCH, -_HUNCH)


def _size_apart(hand: Hand) -> Reveal:
    """Have N0 sold with the first few rows, and ask the others with all that is left of epsilon.

    Every row has the same share of it, and more noise where N0 is paid from that, too: as if its scores were nearer to
    1/2, and its noise that of the others.
    """
    later = replace(hand, terms=replace(hand.terms, first=False))
    queries = max(fewest(later), _SIZE_ROWS + 1)
    hand.auditor.give_up(hand.queries - queries)
    H = coins(hand.base(), hand.perturbation, queries, hand.rng)
    gaps = np.append(hand.auditor.gaps(H[:_SIZE_ROWS]), hand.auditor.gaps(H[_SIZE_ROWS:]))
    evidence = settle(later, None, H, gaps)
    own = {"n0": evidence.n0, "n1": evidence.n1, "queries": _SIZE_ROWS}
    law = law_of(hand.terms, **own, epsilon=hand.terms.epsilon * _SIZE_ROWS / queries)
    assert law is not None, "counts have noise"
    assert evidence.noise is not None, "likewise"
    nearer = np.where(np.arange(queries) < _SIZE_ROWS, evidence.noise.scale / law.scale, 1.0)
    rows = 0.5 + nearer[:, np.newaxis] * (evidence.rows - 0.5)
    return decide(later, replace(evidence, rows=rows, gaps=nearer * evidence.gaps))


def _either_reading(hand: Hand) -> Reveal:
    """Read answers of `recommended`, which are noisy counts' or randomised response's: which is public, but not here.

    The size query, if there is one, goes into the batch, so that one choice answers both. Randomised response's answers
    are the gaps of noisy attributes, exactly: if some attributes replay them, that is what they are.
    """
    queries = min(fewest(replace(hand, terms=replace(hand.terms, mechanism="counts"))), hand.queries)
    queries = max(queries, min(hand.queries, _ENOUGH_PEOPLE * hand.people // 100))
    hand.auditor.give_up(hand.queries - queries)
    H = coins(hand.base(), hand.perturbation, queries, hand.rng)
    if hand.terms.n0 is None:
        size_answer, gaps = hand.auditor.sized_gaps(alone(hand.people, 0), H)
    else:
        size_answer, gaps = None, hand.auditor.gaps(H)
    for mechanism in ("randomized-response", "counts"):
        own = replace(hand, terms=replace(hand.terms, mechanism=mechanism))
        evidence = settle(own, size_answer, H, gaps)
        reveal = decide(own, evidence)
        told = reveal.guess if reveal.from_answers is None else reveal.from_answers
        v = np.where(told == 1, 1 / evidence.n1, -1 / evidence.n0)
        if mechanism == "counts" or np.abs(H @ v - evidence.gaps).max() < _REPLAYS:
            return reveal
    raise AssertionError("the last reading is taken as it is")


def _few_sums(hand: Hand) -> Reveal:
    """Choose rows so that the sums that are released match our own partition of the people.

    Rows of disjoint people do so for cells; of cubes as few rows serve as of one. Nothing is spent on sizes: a cube's
    answers say what they were computed with, and who is likelier than others needs none.
    """
    n, terms = hand.people, hand.terms
    cells = terms.noise_on == "cells"
    as_cube = replace(hand, terms=replace(terms, mechanism="cube"))
    queries = min(hand.queries, _cells_max(hand)) if cells else fewest(as_cube)
    hand.auditor.give_up(hand.queries - queries + (terms.n0 is None))
    if cells:
        base = hand.base()
        block = hand.rng.permutation(np.arange(n) * queries // n)
        low, high = np.maximum(base - hand.perturbation, 0.0), np.minimum(base + hand.perturbation, 1.0)
        H = np.where(np.equal.outer(np.arange(queries), block), high, low)
    else:
        H = coins(hand.base(), hand.perturbation, queries, hand.rng)
    if cells and hand.decode is decoder.decode:
        # Cells share nobody, so that nothing is left to be found out together; and a wrong N0 does no harm.
        hand = replace(hand, decode=score.decode)
    gaps = hand.auditor.gaps(H)
    return decide(hand, settled(terms, None, H, gaps, size_epsilon=0.0, epsilon=terms.epsilon, rng=hand.rng))


def _cells_max(hand: Hand) -> int:
    """Return into how many cells a batch may cut the people."""
    n, epsilon, limit = hand.people, hand.terms.epsilon, hand.terms.limit
    return max(1, min(n // least_people_within(epsilon, limit), cells_within(max(2, n), epsilon, limit)))


def _both_signs(hand: Hand) -> Reveal:
    """Find a partition from noisy absolute gaps.

    Close to a row with gap g, |g + d v| is (g + d v) times the sign of g. The wrong sign exchanges the groups, and
    their sizes; of the two readings the one stands that makes the answers likelier.
    """
    near = replace(hand, perturbation=min(hand.perturbation, _LEAST_MOVE))
    queries = fewest(near)
    hand.auditor.give_up(hand.queries - queries)
    size_answer = hand.auditor.size(alone(hand.people, 0)) if hand.terms.n0 is None else None
    H = coins(hand.base(), near.perturbation, queries, hand.rng)
    gaps = hand.auditor.gaps(H)
    readings = []
    for sign in (1, -1):
        evidence = settle(hand, size_answer, H, sign * gaps)
        s = 1 / evidence.n1 - (hand.decode or decoder.decode)(evidence)
        guess = s <= 0.5 * (1 / evidence.n1 + 1 / evidence.n0)
        readings.append((likelihood(evidence, guess.astype(np.uint8)), guess, s, evidence.n0))
    _, guess, s, n0 = max(readings, key=lambda reading: reading[0])
    n, advantaged, public = guess.size, int(guess.sum()), hand.terms.n0
    if public is None:
        # The smaller part is named the disadvantaged, as by the strategy `absolute`.
        named, told = (guess if 2 * advantaged >= n else ~guess), 2 * advantaged != n
    else:
        # Noisy counts are read with the N0 that they were computed with, or in the mirror image with the other size.
        named, told = (guess if abs(n0 - public) <= abs(n - n0 - public) else ~guess), 2 * public != n
    return replace(everyone(named, s), polarity_known=told)
