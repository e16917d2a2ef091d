"""Bound how far a model can be fitted to the rows on which it is audited, through answers about their groups.

Let X be the developer's knowledge of the audited rows before any request, A their groups, R the answers, and T the
patches made from X, R and independent coins. Write g_t(A) for the audited gap of the model with patches t, and mu_t =
E[g_t(A) | X]. The effect of X alone on the gap is in mu_T: no answer is needed for it, and no noise on answers changes
it. The rest, mu_T - g_T(A), comes from answers. By Donsker and Varadhan, for each value of X and R and every lambda >
0,

    lambda E[mu_T - g_T(A) | R] <= KL(P(A | R) || P(A)) + ln E exp(lambda (mu_T - g_T(A))),

where on the right A is drawn afresh and T fixed. If mu_t - g_t is sub-Gaussian with sigma for each t, the last term is
at most lambda^2 sigma^2 / 2; averaged over R, where the divergence comes to the mutual information I = I(A; R | X) in
nats, and at the best lambda,

    E[mu_T - g_T(A)] <= sigma sqrt(2 I)

(Russo and Zou, AISTATS 2016; Xu and Raginsky, NeurIPS 2017). Over trials that differ in X, root mean squares of sigma
and means of I take their places, by Cauchy and Schwarz.

**Sigma** is no standard deviation: a row that is hardly ever disadvantaged moves the gap seldom, and then far, and its
sub-Gaussian constant is larger. A coin of probability p that moves something by c has (Kearns and Saul, UAI 1998)

    sigma^2 = c^2 (1 - 2p) / (2 ln((1 - p) / p)),

c^2 / 4 at p = 1/2, and never less than its variance c^2 p (1-p). Constants of independent rows add up, and so do those
of rows drawn without replacement (Hoeffding 1963, theorem 4). How far a row moves the gap depends on the other
rows' groups: by (d - r_1)/N1 + (d - r_0)/N0 for a decision d, where r are the groups' shares of accepted rows. Its mean
square over draws of all groups counts, as if the gap were linear: nearly exact but for a handful of the disadvantaged.

**I, from above.** Given X rows' groups are independent, as those of a few rows of many are; row i is disadvantaged with
probability p_i. Each of these bounds I:

* the entropy of A, sum h(p_i), for any answers;
* for answers that are epsilon-private for a flip of one A: I = sum I(A_i; R | A_1 .. A_{i-1}), and given these A_i goes
  through a channel of two inputs whose likelihood ratio is at most e^epsilon. Each such channel is randomised response,
  which tells the truth with probability q = 1 / (1 + e^-epsilon), and something made of its answer (Kairouz, Oh,
  Viswanath, ICML 2015). So I <= sum [h(p_i q + (1 - p_i)(1 - q)) - h(q)];
* for numbers S_j of A with independent Laplace noise of scale b_j: I <= sum I(S_j; S_j + Z_j), since the noise's
  entropy adds up and that of all sums is at most the sum of theirs. A term is at most Var(S_j) / (2 b_j^2), the mean
  divergence of the sum's law from the one around the mean, since of two Laplace laws d apart it is d/b + e^(-d/b) - 1
  <= d^2 / (2 b^2); and at most ln(2 pi e (Var(S_j) + 2 b_j^2)) / 2 - ln(2 e b_j), for no law of a variance has more
  entropy than the Gaussian. That the service rounds such a sum to a fine grid tells nothing more: noise and sum are on
  the grid, too.

**The effect of X, exactly.** Rows of a table that look the same to a developer before any request are a *cell*.
Audited rows are drawn from the table without replacement, so that given the number of them in each cell, the number of
disadvantaged ones is hypergeometric with the cell's numbers in the table. Everything else the developer does depends on
answers and on independent coins. So mu_T and sigma are those of A drawn again within cells, with the patches that were
made, and no model of A is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bytes, Floats, Ints
from fairwall.laws.noise.count_noise import laplace_scales

_DRAWS = 1000


def entropy(shares: Floats) -> Floats:
    """Return h(p) in nats, element by element: 0 at 0 and 1."""
    inside = np.clip(shares, 1e-300, 1 - 1e-16)
    found: Floats = -inside * np.log(inside) - (1 - inside) * np.log1p(-inside)
    return np.where((shares <= 0) | (shares >= 1), 0.0, found)


def told_by_private(shares: Floats, epsilon: float) -> float:
    """Return the most nats that epsilon-private answers tell about A; `shares` are each row's P(disadvantaged)."""
    true = 1 / (1 + math.exp(-epsilon))
    told = entropy(shares * true + (1 - shares) * (1 - true)) - entropy(np.array(true))
    return float(np.maximum(told, 0.0).sum())


def told_by_laplace(variance: float, scale: float) -> float:
    """Return the most nats that a number of this variance with Laplace noise tells about its inputs."""
    wide = 0.5 * math.log(2 * math.pi * math.e * (variance + 2 * scale * scale)) - math.log(2 * math.e * scale)
    return max(0.0, min(variance / (2 * scale * scale), wide))


def told_by_counts(shares: Floats, batches: Iterable[tuple[int, float]]) -> float:
    """Return the most nats that the mechanism `counts` tells in batches, each (number of models, epsilon).

    For rows that do not depend on earlier answers. The first batch sells N0, too. A centred sum, to which a row
    contributes at most 1/2, has at most a quarter of N0's variance.
    """
    variance, told = float((shares * (1 - shares)).sum()), 0.0
    for number, (models, epsilon) in enumerate(batches):
        scales = laplace_scales(models, epsilon, size_known=number > 0)
        told += models * told_by_laplace(variance / 4, scales.sums)
        if not number:
            told += told_by_laplace(variance, scales.size)
    return told


def expected_gap(
    decisions: Bytes, cells: NDArray[np.intp], sizes: Ints, few: Ints, rng: np.random.Generator
) -> tuple[float, float]:
    """Return mean and sub-Gaussian constant of the gap, mu_T and sigma, from 1,000 draws of A within cells.

    `decisions`, `cells`: (rows,), of the audited rows, patched. `sizes`, `few`: (cells,), the number of the table's
    rows in each cell, and of disadvantaged ones among them.
    """
    accepted = np.bincount(cells[decisions == 1], minlength=len(sizes))
    rows = np.bincount(cells, minlength=len(sizes))
    there = np.flatnonzero(rows)
    accepted, rows, sizes, few = accepted[there], rows[there], sizes[there], few[there]
    drawn = rng.hypergeometric(few, sizes - few, rows, (_DRAWS, len(there)))
    taken = rng.hypergeometric(drawn, rows - drawn, accepted).sum(axis=1)
    n0 = drawn.sum(axis=1)
    both = (n0 > 0) & (n0 < rows.sum())  # compliance loads no other rows
    taken, n0 = taken[both], n0[both]
    n1, most = rows.sum() - n0, accepted.sum()
    rates = (most - taken) / n1, taken / n0
    coins = _of_coins(few / sizes)
    moved = [(decision - rates[0]) / n1 + (decision - rates[1]) / n0 for decision in (0, 1)]
    squares = moved[0] ** 2 * ((rows - accepted) @ coins) + moved[1] ** 2 * (accepted @ coins)
    return float((rates[0] - rates[1]).mean()), math.sqrt(squares.mean())


def _of_coins(p: Floats) -> Floats:
    """Return the squared sub-Gaussian constants of coins less their means (Kearns and Saul, see the module)."""
    inside = np.clip(p, 1e-300, 1 - 1e-16)
    odds = np.log1p(-inside) - np.log(inside)
    # Near 1/2 both go to 0: 1 - 2p = tanh(odds / 2).
    found = np.where(np.abs(odds) < 1e-4, 0.25, np.tanh(odds / 2) / (2 * np.where(odds == 0, 1.0, odds)))
    return np.where((p <= 0) | (p >= 1), 0.0, found)


def bound(deviation: float, nats: float) -> float:
    """Return sigma sqrt(2 I): the most that answers with so much information add to the overfit, in expectation."""
    return deviation * math.sqrt(2 * nats)
