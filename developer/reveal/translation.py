r"""Translation between a strategy and each metric: from weights to predictions, and from answers to gaps.

A strategy gives each of some people a weight in [0, 1] and works with the statistical parity gap of the weights: their
mean over the advantaged minus their mean over the disadvantaged. One `Play` is such a game on the people of one
stratum. The metric determines which predictions have this gap:

* ``sp``, ``eo``, ``fpr`` and their absolute values: the weights themselves, in the metric's stratum.
* ``oad``, ``abs_oad``: a person's averaged value is 1 - abs(y - h), see `fairwall.laws.metrics.metric`. The query is h
  = w where
  y = 1 and h = 1 - w where y = 0, so that w is averaged. There compliance takes 1 - (1 - w), which is w *bit for bit*
  exactly for whole multiples of 2^-53: a float 1 - w in (1/2, 1] is one, so no other w can come back; and of such a w
  both differences are floats. Weights are therefore rounded to 2^-53 first, on both sides of the label. Those of packed
  rows, which are whole multiples of 2^-52 or more, stay as they are; others move by 2^-54 at most.
* ``eodds_max``, ``eodds_sum``: two plays of an absolute gap, first among the people with y = 1 and then among those
  with y = 0. The other stratum gets one constant prediction, a whole multiple of 1/8, whose sums and means are exact:
  its gap is 0 and the answer is this stratum's absolute gap, bit for bit.

  *Polarity.* Exchanging the two groups within one stratum turns the sign of that stratum's gap alone, to which both
  metrics are blind. So each play finds a partition of its stratum, and no answer to any query can match the parts of
  one stratum to the parts of the other: four worlds give the same answers.

  *Near the base model* a constant may be too far away. Then the other stratum keeps the base model's scores, and its
  gap g, unknown, is the same in all queries. For ``eodds_sum`` one more query that rejects the whole stratum reveals
  g, and the absolute gap is the answer minus g: no longer bit for bit, but within 2^-52, since an answer is at most
  2 and rounded by 2^-53 at most, and the difference is rounded once more. ``eodds_max`` is refused: every gap of at
  most g answers g.
* ``di``: with N0, N1 known and T the sum of the weights, r = (x/N0) / ((T - x)/N1) gives

      mean over the advantaged = (T - x)/N1 = T / (N1 + r N0),      SP = (1 - r) T / (N1 + r N0),

  from x = r (T - x) N0/N1. Where the advantaged add up to 0, r is infinite, x = T, and SP = -T/N0. Where T = 0 it is
  NaN, and SP = 0.

  *Precision.* r is three roundings away from the truth where the groups' sums are exact, a relative error e of 3 *
  2^-53. Since dx/dr = x (1 - x/T)/r, x moves by at most e T/4. SP moves by e n u0 u1 / T with u0, u1 the groups'
  means, which is e times a weighted harmonic mean of the two, at most 3 * 2^-53, and by a few roundings of its own
  size.

  *Sizes.* The row that accepts one person only has ratio 0 or infinity, which reveals the person's group and no size.
  The row that accepts everybody else has N1/(N1 - 1) or (N0 - 1)/N0, which reveals both.
* ``ppv``: individual weights do not exist; its strategy uses decisions and the metric's own gaps, which pass unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairwall.arrays import Bools, Bytes, Floats
from fairwall.laws.metrics.answer_precision import Precision
from fairwall.laws.metrics.metric import find_metric, stratum

UNIT = 2.0**-53
"""Weights that are whole multiples of this survive ``1 - (1 - w)`` bit for bit."""

_EIGHTHS = np.arange(9) / 8


@dataclass(frozen=True, eq=False)
class Play:
    """One game on the people of one stratum, in the terms of one metric.

    Attributes
    ----------
    metric : a key of `fairwall.laws.metrics.metric.METRICS`.
    labels : (n,), the public labels, 0 or 1.
    reached : (n,), mask of the people whom the weights are about.
    absolute : whether gaps lack their sign.
    others : everybody else's prediction: a constant; None for the base model's scores.
    """

    metric: str
    labels: Bytes
    reached: Bools
    absolute: bool
    others: float | None

    @property
    def needs_sizes(self) -> bool:
        """Whether `gap` needs both group sizes."""
        return not find_metric(self.metric).bounded

    @property
    def needs_reference(self) -> bool:
        """Whether `gap` needs the answer to `reference`."""
        return find_metric(self.metric).joined == "sum" and self.others is None

    def precision(self, precision: Precision | None) -> Precision | None:
        """Return the precision of gaps read from answers of a given precision; None where that is not public.

        The errors of a difference of two answers of at most 2 add up: to 2^-52 or less for float64, 2^-23 for float32,
        and a whole last decimal for decimals. A gap that is read from a ratio r moves by (n/N1)^2 times the mean weight
        for one unit of r, which is at most ten decimals' worth down to a tenth of advantaged people.
        """
        if not (self.needs_reference or self.needs_sizes) or precision is None:
            return precision
        if isinstance(precision, int):
            return max(precision - (2 if self.needs_sizes else 1), 0)
        return 14 if precision == "float64" else 5

    def base_weights(self, base: Floats) -> Floats:
        """Return the base model's weights, shape (people,), from its scores, shape (n,)."""
        return self._turned(base)[self.reached]

    def predictions(self, weights: Floats, base: Floats) -> Floats:
        """Return everybody's predictions, (m, n), from weights, (m, people) in [0, 1], and the base model's scores."""
        predictions = np.tile(
            base if self.others is None else np.full(len(self.labels), self.others), (len(weights), 1)
        )
        predictions[:, self.reached] = weights
        if find_metric(self.metric).parts[0].value == "correct":
            # Everybody is reached.
            return self._turned(np.round(predictions / UNIT) * UNIT)
        return predictions

    def reference(self, base: Floats) -> Floats:
        """Return the row, (1, n), whose answer is the gap of everybody else; used if `needs_reference`."""
        return self.predictions(np.zeros((1, int(self.reached.sum()))), base)

    def gap(
        self, answers: Floats, weights: Floats, n0: int | None = None, n1: int | None = None, reference: float = 0.0
    ) -> Floats:
        """Return the statistical parity gaps of the weights, or their absolute values, from the metric's answers.

        answers, weights : (m,) and (m, people).
        n0, n1 : the group sizes among the people reached; required if `needs_sizes`.
        reference : the answer to `reference`, if `needs_reference`.
        """
        if self.needs_sizes:
            if n0 is None or n1 is None:
                raise ValueError("a ratio of means tells a gap only where both group sizes are known")
            return _gap_of_ratio(answers, weights.sum(axis=1), n0, n1)
        return answers - reference if self.needs_reference else answers

    def size_row(self, row: Floats, base: Callable[[], Floats]) -> Floats:
        """Return the predictions, (1, n), of the size query: a row, (people,), that accepts one person only.

        The base model's scores are used only if `needs_reference`: then the other stratum's gap must be that of the
        reference. Elsewhere everybody else is rejected, and the base model may still be in training.
        """
        weights = (1 - row if self.needs_sizes else row)[np.newaxis]
        return self.predictions(weights, base() if self.needs_reference else np.zeros(len(self.labels)))

    def size_gap(self, answer: float, reference: float = 0.0) -> float:
        """Return the gap of the one person, 1/N1 or -1/N0, or its absolute value, from the answer to `size_row`."""
        if not self.needs_sizes:
            return answer - reference if self.needs_reference else answer
        # N1/(N1 - 1), infinite for N1 = 1; or (N0 - 1)/N0.
        return 1 - 1 / answer if answer > 1 else answer - 1

    def _turned(self, scores: Floats) -> Floats:
        if find_metric(self.metric).parts[0].value != "correct":
            return scores
        return np.where(self.labels == 1, scores, 1 - scores)


def plays(metric: str, labels: Bytes, perturbation: float = 1.0, base: Floats | None = None) -> tuple[Play, ...]:
    """Return the games that a metric allows: two for equalized odds, the people with y = 1 first; else one.

    perturbation : largest distance of a prediction from the base model's; 1 leaves predictions free.
    base : (n,), the base model's scores; required for equalized odds where the perturbation is below 1.
    """
    found = find_metric(metric)
    if len(found.strata) == 1:
        return (Play(metric, labels, stratum(metric, labels), found.absolute, None),)
    strata = [labels == label for label in found.strata]
    return tuple(
        Play(metric, labels, reached, True, _constant(metric, ~reached, perturbation, base)) for reached in strata
    )


def _constant(metric: str, people: Bools, perturbation: float, base: Floats | None) -> float | None:
    """Return the prediction of the stratum not played in; None where only the base model's scores are allowed."""
    if perturbation >= 1 or not people.any():
        return 0.0
    if base is None:
        raise ValueError(f"{metric} near the base model needs the base model's scores")
    reach = np.maximum(base[people].max() - _EIGHTHS, _EIGHTHS - base[people].min())
    if reach.min() <= perturbation:
        return float(_EIGHTHS[np.argmin(reach)])
    if find_metric(metric).joined == "max":
        raise ValueError(
            f"{metric}: within {perturbation:g} of the base model one stratum's gap hides smaller ones of the other; "
            "it can be read from free predictions only, or from eodds_sum"
        )
    return None


def _gap_of_ratio(ratios: Floats, totals: Floats, n0: int, n1: int) -> Floats:
    finite = np.isfinite(ratios)
    r = np.where(finite, ratios, 0.0)
    gaps = np.where(finite, (1 - r) * totals / (n1 + r * n0), -totals / n0)
    return np.where(totals > 0, gaps, 0.0)
