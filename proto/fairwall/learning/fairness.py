"""Leakage of a model's decisions about which of two distributions it faces, and bounds on this leakage.

Notation: D_0 and D_1 are two distributions of (x, y, a), of index d; A, y and the decision yhat are 0 or 1.

    q(y,a) = P(yhat=1 | y, a)            EO = max over y of |q(y,1) - q(y,0)|     (the paper's Delta_EO)
    pi_d   = P(y=1 | d)                  dpi = |pi_0 - pi_1|
    u_d, f_d = P(yhat=1 | y=1, d), P(yhat=1 | y=0, d), the true and the false positive rate
    W      = sum over y of P(y) |P(A=1|y,D0) - P(A=1|y,D1)|

mean(.) averages over d = 0, 1; P(y) in W is mean(pi), or 1 less it.

The printed Theorem 1, |PPR(D1) - PPR(D0)| <= W EO, assumes pi_0 = pi_1: with yhat = y the EO is 0 and the gap dpi.
Corrected bounds: for any numbers, (*) x_1 z_1 - x_0 z_0 = mean(x) (z_1 - z_0) + (x_1 - x_0) mean(z). Applied to
PPR(d) = pi_d u_d + (1 - pi_d) f_d and to accuracy(d) = pi_d u_d + (1 - pi_d) (1 - f_d), (*) gives exactly

    PPR(D1) - PPR(D0) = mean(pi) (u_1 - u_0) + (1 - mean(pi)) (f_1 - f_0) + (pi_1 - pi_0) (mean(u) - mean(f)),
    acc(D1) - acc(D0) = mean(pi) (u_1 - u_0) - (1 - mean(pi)) (f_1 - f_0) + (pi_1 - pi_0) (mean(u) + mean(f) - 1).

At a label y let p_d = sum over a of P(a|y,d) q(y,a,d). By (*) again, and as P(A=0|.) = 1 - P(A=1|.),

    p_1 - p_0 = sum over a of (P(a|y,1) - P(a|y,0)) mean q(y,a) + sum over a of mean P(a|y) (q(y,a,1) - q(y,a,0))
              = (P(A=1|y,1) - P(A=1|y,0)) (mean q(y,1) - mean q(y,0)) + drift_y.

The first term is the shift of A times the gap at y. The second is 0 if rows of one label and group have one law under
both distributions, as the theorem assumes; in a sample it is the sampling error, and 0 for pure groups: if D_d has no
rows of a cell, the cell's rate is the other distribution's. Hence, for all counts,

    PPR gap      <= W EO + dpi |mean(u) - mean(f)|     + drift
    accuracy gap <= W EO + dpi |mean(u) + mean(f) - 1| + drift,      drift = sum over y of P(y) |drift_y|,

with EO from the cells' rates averaged over the two. A constant predictor has EO 0 and the accuracy gap dpi, where the
last bound holds with equality.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bools, Floats

TAU = 0.05
"""Accuracy gap that the paper takes for undetectable."""


@dataclass(frozen=True, eq=False)
class Leakage:
    """The leakage of M models' decisions, in entries of shape (M,), and the distributions' W and dpi.

    ``accuracy`` and ``positive``, the positive prediction rate, are (2, M), for D_0 and D_1; ``tpr`` and ``fpr`` are
    averaged over both. ``drift``, the bounds' sampling error, ``w`` and ``dpi``, the difference of the base rates, lie
    in [0, 1].
    """

    accuracy: Floats
    positive: Floats
    eo: Floats
    tpr: Floats
    fpr: Floats
    drift: Floats
    w: float
    dpi: float

    @property
    def gap(self) -> Floats:
        """The accuracy gap."""
        return np.asarray(np.abs(self.accuracy[1] - self.accuracy[0]))

    @property
    def ppr_gap(self) -> Floats:
        """The gap of the positive prediction rates."""
        return np.asarray(np.abs(self.positive[1] - self.positive[0]))

    @property
    def printed_bound(self) -> Floats:
        """Theorem 1's W Delta_EO, which need not hold."""
        return np.asarray(self.w * self.eo)

    @property
    def ppr_bound(self) -> Floats:
        """The corrected bound on the PPR gap, without the drift."""
        return np.asarray(self.w * self.eo + self.dpi * np.abs(self.tpr - self.fpr))

    @property
    def accuracy_bound(self) -> Floats:
        """The corrected bound on the accuracy gap, without the drift."""
        return np.asarray(self.w * self.eo + self.dpi * np.abs(self.tpr + self.fpr - 1))


def leakage(
    decisions: Bools | NDArray[np.integer],
    labels: NDArray[np.integer],
    group: NDArray[np.integer],
    side: NDArray[np.integer] | None = None,
) -> Leakage:
    """Measure the decisions on samples of the two distributions; ValueError if a distribution has no row.

    Decisions are (M, rows) or (rows,), labels and groups (rows,), all 0 or 1. ``side``, (rows,), is the distribution
    that a row is a sample of; by default the group: pure groups.
    """
    side = group if side is None else side
    decided = np.atleast_2d(np.asarray(decisions, dtype=np.float64))
    cell = (4 * np.asarray(side, np.intp) + 2 * np.asarray(labels, np.intp) + np.asarray(group, np.intp)).ravel()
    counts: Floats = np.bincount(cell, minlength=8).astype(np.float64).reshape(2, 2, 2)
    if not (counts.sum((1, 2)) > 0).all():
        raise ValueError("both distributions need rows")
    sums = [np.bincount(cell, weights=row, minlength=8) for row in decided]
    ones: Floats = np.array(sums, dtype=np.float64).reshape(-1, 2, 2, 2)
    # From here on: axes (model,) side d, label y, group a.
    rates = _filled(ones, counts)
    within = _composition(counts)
    sizes = counts.sum((1, 2))
    base = counts[:, 1].sum(1) / sizes
    p_label = np.array([1 - base.mean(), base.mean()])
    mean_rate = rates.mean(1)
    # A group without rows at a label has no rate there, and the label no gap.
    paired = counts.sum(0).min(1) > 0
    gaps = np.abs(mean_rate[:, :, 1] - mean_rate[:, :, 0]) * paired
    drift = np.abs((within.mean(0) * (rates[:, 1] - rates[:, 0])).sum(2)) @ p_label
    at_label = (within * rates).sum(3).mean(1)
    right = ones[:, :, 1].sum(2) + counts[:, 0].sum(1) - ones[:, :, 0].sum(2)
    return Leakage(
        accuracy=(right / sizes).T,
        positive=(ones.sum((2, 3)) / sizes).T,
        eo=gaps.max(1),
        tpr=at_label[:, 1],
        fpr=at_label[:, 0],
        drift=drift,
        w=float(shifts(counts / sizes[:, None, None]).sum()),
        dpi=float(abs(base[1] - base[0])),
    )


def shifts(joint: Floats) -> Floats:
    """Return W's terms at labels 0 and 1, P(y) |P(A=1|y,D0) - P(A=1|y,D1)|, shape (2,); ``joint`` has axes d, y, a."""
    joint = joint / joint.sum((1, 2), keepdims=True)
    within = _composition(joint)
    return np.asarray(joint.sum(2).mean(0) * np.abs(within[1, :, 1] - within[0, :, 1]))


def _composition(joint: Floats) -> Floats:
    """Return P(a | y, D_d); if a distribution lacks a label, the other's; if both do, [1, 0]."""
    sizes = joint.sum(2, keepdims=True)
    within = np.divide(joint, sizes, out=np.zeros_like(joint), where=sizes > 0)
    within = np.where(sizes > 0, within, within[::-1])
    nowhere = (sizes[0] == 0) & (sizes[1] == 0)
    return np.where(nowhere, np.array([1.0, 0.0]), within)


def _filled(ones: Floats, counts: Floats) -> Floats:
    """Return q(y, a, d); if a distribution lacks a cell, the other's; if both do, 0."""
    there = np.broadcast_to(counts > 0, ones.shape)
    rates = np.divide(ones, counts, out=np.zeros_like(ones), where=there)
    return np.where(there, rates, rates[:, ::-1])
