r"""Logistic regression with a perturbed objective, and its privacy guarantee.

The objective, minimised over w of d + 1 entries, the intercept among them, is

    J(w) = sum_i l(y_i, w r_i) + Lambda |w|^2 / 2 + (u w + c)^2 / 2 + b w,    l the logistic loss, r_i = (x_i, 1).

Private regressions scale every row to |x_i| <= 1, so that |r_i|^2 <= 2 = L^2, and draw b at random. The source is
Chaudhuri, Monteleoni and Sarwate (JMLR 2011, Algorithm 2) for pure epsilon and Kifer, Smith and Thakurta (COLT 2012)
for Gaussian b; the constants below are those of the derivation, which for generalised linear models gives the same as
Redberg, Koskela and Wang (NeurIPS 2023, Theorem 3.1). u and c are public or have been paid for.

**Derivation.** Let D' be D with one record (x, y) more, r = (x, 1). J is strictly convex, so b and the minimum w
determine each other: b = -G(w; D), G being the gradient of the rest. The density of w is that of b at -G(w; D) times
det H(w; D), H the Hessian of the rest. Between D and D' change

* the determinant, by 1 + l'' r H^-1 r, which lies between 1 and 1 + (1/4) L^2 / Lambda: |l''| <= 1/4 and
  H >= Lambda I. The logarithm is at most kappa = ln(1 + L^2 / (4 Lambda)) either way;
* b, by l' r, which is L long at most, |l'| being at most 1, and lies *along r*, whatever w is.

**Pure epsilon.** With density of b proportional to exp(-beta |b|) the logarithm of the densities' ratio is at most beta
L + kappa: beta = (epsilon - kappa) / L. Such a b has a uniform direction and a Gamma(d + 1, 1 / beta) norm.

**(epsilon, delta).** With b ~ N(0, (s L)^2) per coordinate the logarithm of the densities' ratio is (2 |l' b r| + |l'
r|^2) / (2 s^2 L^2) at most. Since b r is N(0, (s L |r|)^2) whatever w is, the privacy loss is at most |Z| / s + 1 / (2
s^2) + kappa, Z being standard normal. Where that exceeds epsilon for no Z below some z >= 0,

    delta <= E[(1 - exp(epsilon - loss))_+] <= 2 delta_G(epsilon - kappa; s),

twice the delta of Gaussian noise with multiplier s (`fairwall.laws.noise.gaussian`): |Z| has two tails, Z has one. The
condition is z / s = epsilon - kappa - 1 / (2 s^2) >= 0.

The guarantee is that of the exact minimum. Newton's method stops where the gradient is about as small as rounding
allows; neither the remainder nor floating-point noise is accounted for: for studying, not for releasing models of real
people's data.
"""

from __future__ import annotations

import math

import numpy as np

from fairwall.arrays import Bytes, Floats
from fairwall.laws.noise.gaussian import gaussian_multiplier

ROW_NORM = math.sqrt(2)
"""L: the largest norm of a row, scaled to the unit ball, with its 1 for the intercept."""

_STEPS_MAX, _HALVINGS_MAX = 100, 40
_FLAT = 1e-9


def ridge(kappa: float) -> float:
    """Return the Lambda whose determinant costs kappa, above 0, of epsilon."""
    return ROW_NORM**2 / 4 / math.expm1(kappa)


def perturbation(dimension: int, epsilon: float, delta: float, kappa: float, rng: np.random.Generator) -> Floats:
    """Return a draw of b, (dimension,), that makes the minimum (epsilon, delta)-private; kappa is below epsilon.

    `delta` 0 is pure epsilon; `dimension` is that of w, the intercept included.
    """
    left = epsilon - kappa
    if delta > 0:
        multiplier = gaussian_multiplier(left, delta / 2)
        if left < 1 / (2 * multiplier**2):
            raise ValueError("the derivation does not hold for so large a delta")
        return np.asarray(ROW_NORM * multiplier * rng.standard_normal(dimension))
    return ROW_NORM / left * exponential_vector(dimension, rng)


def exponential_vector(dimension: int, rng: np.random.Generator) -> Floats:
    """Return a draw from the density proportional to exp(-|b|): pure epsilon = 1 for an l2 sensitivity of 1."""
    direction = rng.standard_normal(dimension)
    return np.asarray(rng.gamma(dimension) * direction / np.linalg.norm(direction))


def minimum(
    rows: Floats, labels: Bytes, ridge: float, tilt: Floats, across: Floats | None = None, beyond: float = 0.0
) -> Floats:
    """Return the w, (d + 1,), that minimises J, by Newton's method with halved steps.

    rows : (n, d + 1), r_i, the last column 1.
    ridge, tilt : Lambda, above 0, and b, (d + 1,); zeros for none.
    across, beyond : u, (d + 1,), and c.
    """
    towards = tilt - labels @ rows
    across = np.zeros(rows.shape[1]) if across is None else across

    def value(w: Floats) -> float:
        return float(np.logaddexp(0, rows @ w).sum() + towards @ w + ridge / 2 * w @ w + (across @ w + beyond) ** 2 / 2)

    w = np.zeros(rows.shape[1])
    for _ in range(_STEPS_MAX):
        scores = 0.5 + 0.5 * np.tanh(0.5 * (rows @ w))
        gradient = scores @ rows + towards + ridge * w + (across @ w + beyond) * across
        if np.abs(gradient).max() <= _FLAT * len(rows):
            break
        scaled = rows * np.sqrt(scores * (1 - scores))[:, None]
        hessian = scaled.T @ scaled + np.outer(across, across)
        hessian[np.diag_indices_from(hessian)] += ridge
        step, now = np.linalg.solve(hessian, gradient), value(w)
        # Where no part of the step descends, only rounding is left.
        w = next((tried for size in 0.5 ** np.arange(_HALVINGS_MAX) if value(tried := w - size * step) < now), w - step)
    return w
