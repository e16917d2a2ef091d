"""Reveal from compressed sensing (Hamman, Chen, Dutta, FAccT 2023, Theorem 2), from three kinds of rows."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from developer.reveal.decode import STATISTICAL, Decoder, DecoderInputs, l1
from developer.reveal.decode.ep import settled
from developer.reveal.decode.likelihood import likelihood
from developer.reveal.strategies.sizes import alone, group_sizes
from developer.reveal.strategies.strategy import Reveal, StrategyInputs, everyone
from fairwall.arrays import Floats
from fairwall.laws.privacy.exposure import one_person


def near_base(inputs: StrategyInputs) -> Floats:
    """Return h0's scores plus Unif(-b, b), clipped to [0, 1]; (m, n).

    Attribute-Reveal with m << n (Algorithm 2): with small bounded noise, as Theorem 3 allows, rows are models that
    anybody might have trained. The algorithm's line ``eta = SP - H r`` has the wrong sign; see decode/l1.py.
    """
    b = inputs.perturbation
    return np.clip(inputs.base() + inputs.rng.uniform(-b, b, (inputs.queries, inputs.people)), 0, 1)


def binary(inputs: StrategyInputs) -> Floats:
    """Return fair coin tosses, (m, n) of 0 and 1: the best of sensing matrices, and the worst of models."""
    return inputs.rng.integers(0, 2, (inputs.queries, inputs.people)).astype(np.float64)


def gaussian(inputs: StrategyInputs) -> Floats:
    """Return scores drawn from N(1/2, 1/m), clipped to [0, 1]; (m, n).

    Zero-mean entries of variance 1/m are the usual sensing matrix (sections 3.2.1 and 3.2.2), but not scores. Shifted
    by 1/2 most are in [0, 1], and the constant changes no gap: it adds ``sum v / 2 = 0``.
    """
    m = inputs.queries
    return np.clip(inputs.rng.normal(0.5, m**-0.5, (m, inputs.people)), 0, 1)


def reveal_from_rows(inputs: StrategyInputs, rows: Callable[[StrategyInputs], Floats]) -> Reveal:
    """Query the sizes, unless they are public, and the gaps of the rows; decode; return the disadvantaged.

    ``s = r - v`` is ``1/N0 + 1/N1`` at the disadvantaged and 0 elsewhere; the threshold is in the middle.
    """
    decode = inputs.decode or l1.decode
    # First, because the rows may have to wait for h0, and meanwhile this answer can be on its way.
    n0 = inputs.terms.n0
    size_answer = inputs.auditor.size(alone(inputs.people, 0)) if n0 is None else None
    H = rows(inputs)
    gaps = inputs.auditor.gaps(H)
    if decode in STATISTICAL:
        evidence = settle(inputs, size_answer, H, gaps)
    else:
        # As in the paper: the sizes nearest to the answer.
        if size_answer is not None:
            n0 = group_sizes(size_answer, inputs.people)[0]
        assert n0 is not None, "public or asked for"
        evidence = DecoderInputs(H, gaps, n0, inputs.people - n0, rng=inputs.rng)
    return decide(replace(inputs, decode=decode), evidence)


def decide(inputs: StrategyInputs, evidence: DecoderInputs) -> Reveal:
    """Decode with ``inputs.decode``, and once more with the features' likelihood ratios where there are any."""
    decode = inputs.decode or l1.decode
    alone_guess = _split(evidence, decode)
    if decode in STATISTICAL:
        alone_guess = replace(alone_guess, confidence=_confidence(inputs, evidence, alone_guess))
    if inputs.llr is None:
        return alone_guess
    if inputs.terms.noise_on == "attributes":
        # Each decoded attribute is the true one with odds e^epsilon.
        told = np.where(alone_guess.guess == 0, inputs.terms.epsilon, -inputs.terms.epsilon)
        both = everyone(told + inputs.llr() <= 0, alone_guess.reconstruction)
    else:
        both = _split(replace(evidence, llr=inputs.llr()), decode)
        # Where answers alone decide, features can only lead a decoder to a wrong fixed point.
        decided = int((alone_guess.guess == 0).sum()) == evidence.n0
        if decided and likelihood(evidence, alone_guess.guess) > likelihood(evidence, both.guess):
            both = alone_guess
    return replace(both, from_answers=alone_guess.guess, confidence=alone_guess.confidence)


def _confidence(inputs: StrategyInputs, evidence: DecoderInputs, alone_guess: Reveal) -> Floats:
    """Return the decoded probabilities at even odds, where delta is 0 clipped to what epsilon allows."""
    # The limit is e^(2 epsilon), since N0 is known (`fairwall.laws.privacy.exposure`). For noisy attributes the decoded
    # value is the probability that each is true.
    assert alone_guess.reconstruction is not None
    z = np.clip(alone_guess.reconstruction / (1 / evidence.n0 + 1 / evidence.n1), 0.0, 1.0)
    sure = one_person(inputs.terms.epsilon)
    return np.clip(z, 1 - sure, sure) if evidence.noise is None or not inputs.terms.delta else z


def settle(inputs: StrategyInputs, size_answer: float | None, H: Floats, gaps: Floats) -> DecoderInputs:
    """Return the evidence at the sizes that all answers make likeliest: the batch's, and the size query's, if any."""
    size_share, share = inputs.terms.shares(len(H))
    return settled(inputs.terms, size_answer, H, gaps, size_epsilon=size_share, epsilon=share, rng=inputs.rng)


def _split(evidence: DecoderInputs, decode: Decoder) -> Reveal:
    s = 1 / evidence.n1 - decode(evidence)
    return everyone(s <= 0.5 * (1 / evidence.n1 + 1 / evidence.n0), s)
