"""Laplace noise on the smooth sensitivity: Theorem 8 of Hamman, Chen, Dutta, FAccT 2023, epsilon below 1.

With beta = epsilon / (4 (m + L)), L = ln(2/delta), and S the beta-smooth sensitivity of one query, noise of scale
2 m S / epsilon is (epsilon, delta)-private (after Nissim, Raskhodnikova, Smith 2007). Why: let s <= s' be the scales of
two neighbours, r = s'/s <= exp(beta), and d <= epsilon s / (2 m) how far each query moves.

* Shifting m coordinates costs at most m d / s <= epsilon/2, surely.
* Dilating costs at most m ln r <= epsilon/4 where the narrower law draws. Where the wider one draws Z, in its own
  units, it costs T (r - 1) - m ln r < T (exp(beta) - 1), with T = sum |Z_i| a Gamma(m, 1) variable. That is at most
  epsilon/2 unless T > t = epsilon / (2 (exp(beta) - 1)) >= 2 (m + L) (1 - 0.6 beta) >= 2 (m + L) - 0.3 epsilon, for
  beta <= 0.15. P(T > t) <= 2^m exp(-t/2) (Chernoff) <= (2/e)^m exp(0.15 epsilon) delta/2 < delta/2.

So the loss exceeds epsilon with a probability below delta/2. The theorem is loose; it is offered as stated.
"""

import math

from fairwall.laws.calibration import require_batch
from fairwall.laws.noise import Laplace
from fairwall.laws.sensitivity import smooth_sensitivity


def conceal_laplace_beta(queries: int, epsilon: float, delta: float) -> float:
    """Return the smoothness of Theorem 8: epsilon / (4 (m + ln(2/delta))), for 0 < delta < 1."""
    require_batch(queries, epsilon)
    if not 0 < delta < 1:
        raise ValueError("delta must be above 0 and below 1")
    return epsilon / (4 * (queries + math.log(2 / delta)))


def conceal_laplace_law(
    metric: str, n0: int, n1: int, queries: int, epsilon: float, delta: float, minimum_group: int = 1
) -> Laplace:
    """Return the noise of one query of a batch, for a metric with one stratum.

    The counts in it, each at least 1, are secret, and so is the scale. The budget is the whole batch's, epsilon in
    (0, 1) for the theorem as stated, delta in (0, 1).
    """
    beta = conceal_laplace_beta(queries, epsilon, delta)
    return Laplace(2 * queries * smooth_sensitivity(metric, n0, n1, beta, minimum_group=minimum_group) / epsilon)
