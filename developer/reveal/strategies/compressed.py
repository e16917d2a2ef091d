"""Reveal from compressed sensing (Hamman, Chen, Dutta, FAccT 2023, Theorem 2), from three kinds of rows."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from developer.reveal.decode import STATISTICAL, Decoder, Evidence, l1
from developer.reveal.decode.ep import settled
from developer.reveal.decode.likelihood import likelihood
from developer.reveal.strategies.sizes import alone, group_sizes
from developer.reveal.strategies.strategy import Hand, Reveal, everyone
from fairwall.laws.exposure import one_person


def near_base(hand: Hand) -> NDArray[np.float64]:
    """Add Unif(-b, b) to every score of h0, and clip to [0, 1]; (m, n).

    Attribute-Reveal with m << n (Algorithm 2): with small bounded noise, as Theorem 3 allows, rows are models that
    anybody might have trained. The algorithm's line ``eta = SP - H r`` has the wrong sign; see decode/l1.py.
    """
    b = hand.perturbation
    return np.clip(hand.base() + hand.rng.uniform(-b, b, (hand.queries, hand.people)), 0, 1)


def binary(hand: Hand) -> NDArray[np.float64]:
    """Toss a coin for every entry; (m, n) of 0 and 1. The best of sensing matrices, and the worst of models."""
    return hand.rng.integers(0, 2, (hand.queries, hand.people)).astype(np.float64)


def gaussian(hand: Hand) -> NDArray[np.float64]:
    """Draw every score from N(1/2, 1/m), and clip to [0, 1]; (m, n).

    Zero-mean entries of variance 1/m are the usual sensing matrix (sections 3.2.1 and 3.2.2), but no scores. Around 1/2
    most of them are, and the constant changes no gap: it adds ``sum v / 2 = 0``.
    """
    m = hand.queries
    return np.clip(hand.rng.normal(0.5, m**-0.5, (m, hand.people)), 0, 1)


def reveal_from_rows(hand: Hand, rows: Callable[[Hand], NDArray[np.float64]]) -> Reveal:
    """Ask for the sizes, unless they are public, and for the gaps of the rows; decode; find the disadvantaged.

    ``s = r - v`` is ``1/N0 + 1/N1`` at the disadvantaged and 0 elsewhere; we split in the middle. The rows, (m, n), are
    made when their time has come.
    """
    decode = hand.decode or l1.decode
    # First, because the rows may have to wait for h0, and meanwhile this answer can be on its way.
    n0 = hand.terms.n0
    size_answer = hand.auditor.size(alone(hand.people, 0)) if n0 is None else None
    H = rows(hand)
    gaps = hand.auditor.gaps(H)
    if decode in STATISTICAL:
        evidence = settle(hand, size_answer, H, gaps)
    else:
        # As the paper has it: the sizes nearest to the answer.
        if size_answer is not None:
            n0 = group_sizes(size_answer, hand.people)[0]
        assert n0 is not None, "public or asked for"
        evidence = Evidence(H, gaps, n0, hand.people - n0, rng=hand.rng)
    return decide(replace(hand, decode=decode), evidence)


def decide(hand: Hand, evidence: Evidence) -> Reveal:
    """Decode with the hand's decoder, and once more with what features say, where anything does."""
    decode = hand.decode or l1.decode
    alone_guess = _split(evidence, decode)
    if decode in STATISTICAL:
        alone_guess = replace(alone_guess, confidence=_confidence(hand, evidence, alone_guess))
    if hand.llr is None:
        return alone_guess
    if hand.terms.noise_on == "attributes":
        # What was decoded are attributes of which each tells the true one with odds e^epsilon.
        told = np.where(alone_guess.guess == 0, hand.terms.epsilon, -hand.terms.epsilon)
        both = everyone(told + hand.llr() <= 0, alone_guess.reconstruction)
    else:
        both = _split(replace(evidence, llr=hand.llr()), decode)
        # Where answers alone decide, features can but lead a decoder into a corner from which it does not find back.
        decided = int((alone_guess.guess == 0).sum()) == evidence.n0
        if decided and likelihood(evidence, alone_guess.guess) > likelihood(evidence, both.guess):
            both = alone_guess
    return replace(both, from_answers=alone_guess.guess, confidence=alone_guess.confidence)


def _confidence(hand: Hand, evidence: Evidence, alone_guess: Reveal) -> NDArray[np.float64]:
    """Give the probabilities at even odds that were decoded, where delta is 0 none beyond what epsilon allows.

    That is e^(2 epsilon), since N0 is known (`fairwall.laws.exposure`). Decoded is also how probable it is of each of
    noisy attributes that it is true.
    """
    assert alone_guess.reconstruction is not None
    z = np.clip(alone_guess.reconstruction / (1 / evidence.n0 + 1 / evidence.n1), 0.0, 1.0)
    sure = one_person(hand.terms.epsilon)
    return np.clip(z, 1 - sure, sure) if evidence.noise is None or not hand.terms.delta else z


def settle(hand: Hand, size_answer: float | None, H: NDArray[np.float64], gaps: NDArray[np.float64]) -> Evidence:
    """Weigh the sizes by what the law of the noise makes of all answers: a batch's, and the size query's, if any."""
    size_share, share = hand.terms.shares(len(H))
    return settled(hand.terms, size_answer, H, gaps, size_epsilon=size_share, epsilon=share, rng=hand.rng)


def _split(evidence: Evidence, decode: Decoder) -> Reveal:
    s = 1 / evidence.n1 - decode(evidence)
    return everyone(s <= 0.5 * (1 / evidence.n1 + 1 / evidence.n0), s)
