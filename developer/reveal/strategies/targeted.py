r"""Spend all queries on one person.

The row that accepts the target alone has the gap ``1/N1`` if the target is advantaged and ``-1/N0`` if not: no row in
[0, 1] makes the two differ by more than c = 1/N0 + 1/N1, and this row depends on nobody else. The reading depends on
the mechanism:

* Noise on gaps: the m answers are independent. With f the density of the error, which depends on the sizes for some
  mechanisms, and w the weights of N0 below, the target is called disadvantaged if

      ln sum_N0 w N0 prod f(y_i + 1/N0) - ln sum_N0 w N1 prod f(y_i - 1/N1) + (the features' log-likelihood ratio) > 0,

  which is right most often about a random person. Where N0 is public the odds N0/N1 are left out: at even odds the
  guess is equally good about either group. (Conceal at epsilon 100, one answer, N0 = 10 of 100, 1,500 trials: 94.3%
  right about random people and 95.4% with half of them from each group; with N0 public 95.9 and 96.8%.) The sign of y,
  as in `single`, would be wrong about many advantaged people: 1/N1 is small, -1/N0 is not, and the best threshold lies
  between.
* Noisy counts: the noisy sum over the disadvantaged is near 1 or near 0. An answer is 1/n1 - (1/n0 + 1/n1) s with s the
  noisy sum, kept in [0, 1], and n0 as released: s = 0 or 1 determines n0, and s is above 1/2 where the answer is nearer
  to -1/n0. The sums for all sizes are averaged, with weights, over the sizes for which they are possible.
* Randomised response: the answer has the sign of the noisy attribute, in m answers as in one.
"""

import math

import numpy as np

from developer.reveal.decode.likelihood import law_of, size_prior
from developer.reveal.strategies.sizes import alone
from developer.reveal.strategies.strategy import PublicTerms, Reveal, StrategyInputs, aimed
from fairwall.arrays import Floats

_BY_SIGN = ("nothing", "attributes", "any", "choices")
"""Noise types whose answers are read by their sign alone; choices, for example, tell nothing about the target."""


def play(inputs: StrategyInputs) -> Reveal:
    """Query the target alone, m times in one batch, and weigh the answers."""
    gaps = inputs.auditor.gaps(np.tile(alone(inputs.people, inputs.target), (inputs.queries, 1)))
    own = 0.0 if inputs.llr is None else float(inputs.llr()[inputs.target])
    return aimed(inputs, ratio(gaps, inputs.people, inputs.terms) + own <= 0)


def ratio(gaps: Floats, n: int, terms: PublicTerms) -> float:
    """Return the log-odds that the target, one of n people, is disadvantaged, from the answers and the sizes alone.

    The gaps, (m,), are m answers in one batch, which spent all of epsilon, about the row that accepts the target alone.
    """
    if terms.noise_on in _BY_SIGN or math.isinf(terms.epsilon):
        return -math.inf if np.median(gaps) > 0 else math.inf
    weights = _size_weights(n) if terms.n0 is None else (np.arange(1, n) == terms.n0).astype(np.float64)
    if terms.noise_on in ("sums", "cube"):
        return _from_sums(gaps, n, weights)
    found = []
    for n0 in (np.flatnonzero(weights) + 1).tolist():
        n1, weight = n - n0, weights[n0 - 1]
        law = law_of(terms, n0=n0, n1=n1, queries=len(gaps), epsilon=terms.epsilon)
        assert law is not None
        found.append(
            (
                math.log(weight * (1 if terms.n0 else n0)) + float(law.log_density(gaps + 1 / n0).sum()),
                math.log(weight * (1 if terms.n0 else n1)) + float(law.log_density(gaps - 1 / n1).sum()),
            )
        )
    disadvantaged, advantaged = np.logaddexp.reduce(np.array(found), axis=0)
    # Answers that fit neither are no evidence.
    return float(disadvantaged - advantaged) if np.isfinite(disadvantaged) or np.isfinite(advantaged) else 0.0


def _size_weights(n: int) -> Floats:
    """Return weights of N0, (n-1,), uniform in 1/N0, the size of the gap, over the public range of shares."""
    # Uniform weights of N0 would favour large N0, whose -1/N0 is hardly below 0, and mistake many an advantaged person
    # for a member of a large disadvantaged group. Against Conceal at epsilon 100 (N0 = 10 of 100, 12,000 trials) 95.2%
    # are right with these weights, and 93.9% with those of `size_prior`.
    weights: Floats = size_prior(n) / np.arange(1, n)
    weights /= weights.sum()
    return weights


def _from_sums(gaps: Floats, n: int, weights: Floats) -> float:
    """Return the mean noisy sum behind the answers, less 1/2, over the sizes for which all of the sums are possible."""
    n0 = np.arange(1, n)[:, None]
    sums = (1 / (n - n0) - gaps) / (1 / n0 + 1 / (n - n0))
    possible = np.all((sums >= -1e-9) & (sums <= 1 + 1e-9), axis=1)
    # N0 as released may lie outside the public range.
    weight = np.where(possible, weights + 1e-6, 0.0)
    return float(weight @ (sums.mean(axis=1) - 0.5)) if possible.any() else float(-np.median(gaps))
