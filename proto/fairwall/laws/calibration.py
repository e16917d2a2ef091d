"""The noise of each mechanism on gaps, and its exact privacy loss.

**Laplace.** For shifts that sum to at most m Delta, the log-ratio of the products of m Laplace densities is at most
m Delta / scale. With Delta the global sensitivity, scale = m Delta / epsilon is epsilon-private.

**Two Cauchy distributions** with locations f, f' and scales s, s'. With z = f + i s in the upper half plane,
the density s / ((x-f)^2 + s^2) is the plane's Poisson kernel at the boundary point x. The supremum over x of the
log-ratio of two Poisson kernels is the hyperbolic distance of their points, so the privacy loss is

    arccosh(1 + ((f-f')^2 + (s-s')^2) / (2 s s')) = 2 arsinh(|z-z'| / (2 sqrt(s s'))),

in both directions. (Directly: an isometry moves z to i and z' to i r with r = exp(distance), where the ratio
(1 + u^2) r / (r^2 + u^2) lies between 1/r and r.) The second form keeps its digits where the loss is small. Coordinates
are independent given the data and all of them can be worst at once, so m queries cost m times this.

**Conceal** is Algorithm 3 of Hamman, Chen, Dutta, FAccT 2023, with the sensitivity corrected: b = epsilon / (6 m),
S1 the b-smooth sensitivity of one query, Cauchy noise of scale 6 m S1 / epsilon = S1 / b. Smoothness gives
|ln(s/s')| <= b; the shift is at most the local sensitivity on either side, hence at most b min(s, s'). So

    cosh(loss of one query) = cosh(ln(s/s')) + shift^2 / (2 s s') <= cosh(b) + b^2 / 2 <= cosh(sqrt(2) b),

the last step term by term in the power series. The batch costs at most m sqrt(2) b = sqrt(2)/6 epsilon: it is private,
and leaves more than three quarters of epsilon unspent.
"""

import math

from fairwall.laws.noise import Cauchy, Laplace
from fairwall.laws.sensitivity import (
    flip_sensitivity,
    global_sensitivity,
    local_sensitivity,
    require_groups,
    smooth_sensitivity,
)


def laplace_law(metric: str, n: int, queries: int, epsilon: float, minimum_group: int = 1) -> Laplace:
    """Return the noise that makes a batch's answers epsilon-private together: scale m * global sensitivity / epsilon.

    From public numbers alone. ValueError for an argument out of range.

    `n`: people in the metric's stratum. `queries`: m, the size of the batch, at least 1. `epsilon`: privacy budget of
    the whole batch, above 0; infinite for no noise. `minimum_group`: g, the least size of both groups in every
    neighbour too, `fairwall.laws.sensitivity`.
    """
    require_batch(queries, epsilon)
    return Laplace(queries * global_sensitivity(metric, n, minimum_group=minimum_group) / epsilon)


def conceal_law(metric: str, n0: int, n1: int, queries: int, epsilon: float, minimum_group: int = 1) -> Cauchy:
    """Return Attribute-Conceal's noise, on the corrected smooth sensitivity. Arguments and errors as of `laplace_law`.

    The scale is 6 m S / epsilon, where S is smooth with beta = epsilon / (6 m). The counts in the metric's stratum,
    each at least 1, are secret, and so is the scale.
    """
    require_batch(queries, epsilon)
    # With no limit on epsilon beta would be infinite too; the scale's limit is 0.
    beta = 0.0 if math.isinf(epsilon) else epsilon / (6 * queries)
    return Cauchy(6 * queries * smooth_sensitivity(metric, n0, n1, beta, minimum_group=minimum_group) / epsilon)


def laplace_loss(metric: str, n0: int, n1: int, queries: int, epsilon: float, minimum_group: int = 1) -> float:
    """Return the exact privacy loss of `laplace_law` for these counts: the worst log-ratio to a neighbour.

    That is m * local sensitivity / scale, at most epsilon; 0 where there are no neighbours.
    """
    scale = laplace_law(metric, n0 + n1, queries, epsilon, minimum_group).scale
    change = local_sensitivity(metric, n0, n1, minimum_group=minimum_group)
    if change == 0:
        return 0.0
    return queries * change / scale if scale else math.inf


def cauchy_loss(shift: float, scale: float, other_scale: float) -> float:
    """Return the largest log-ratio, in either direction, of two Cauchy densities whose locations differ by a shift.

    ValueError for a scale that is not above 0.
    """
    if not (scale > 0 and other_scale > 0):
        raise ValueError("both scales must be above 0")
    return 2 * math.asinh(math.hypot(shift, scale - other_scale) / (2 * math.sqrt(scale) * math.sqrt(other_scale)))


def conceal_loss(metric: str, n0: int, n1: int, queries: int, epsilon: float, minimum_group: int = 1) -> float:
    """Return the exact privacy loss of `conceal_law` for these counts: the worst log-ratio to a neighbour.

    That is at most sqrt(2)/6 * epsilon; 0 where there are no neighbours.
    """
    scale = conceal_law(metric, n0, n1, queries, epsilon, minimum_group).scale
    n = n0 + n1
    losses = [0.0]
    for other_n0, leaving in ((n0 - 1, n0), (n0 + 1, n1)):
        if leaving == minimum_group:  # the flip would leave too few
            continue
        if scale == 0:
            return math.inf
        other_scale = conceal_law(metric, other_n0, n - other_n0, queries, epsilon, minimum_group).scale
        losses.append(queries * cauchy_loss(flip_sensitivity(metric, n, leaving), scale, other_scale))
    return max(losses)


def printed_laplace_scale(n: int, queries: int, epsilon: float) -> float:
    """Return the Laplace scale of Theorem 5 as printed, (m/2 + m/(n-1)) / epsilon, for the report's comparison.

    The paper uses it for statistical parity, where it is right, and with the same n for equal opportunity, where it is
    too small. It protects nobody here. ValueError for fewer than 2 people in the test set, and as of `laplace_law`.
    """
    require_batch(queries, epsilon)
    if not n >= 2:
        raise ValueError("n must be at least 2")
    return (queries / 2 + queries / (n - 1)) / epsilon


def printed_conceal_scale(n0: int, n1: int, queries: int, epsilon: float) -> float:
    """Return the Cauchy scale of Algorithm 3 and Theorem 7 as printed, for the report's comparison.

    It is too small for n0 = 1, and where n0 is not the minority. It protects nobody here. Errors as of `conceal_law`.
    """
    require_batch(queries, epsilon)
    require_groups(n0, n1)
    if math.isinf(epsilon):
        return 0.0
    near = queries / (n1 + 1) + queries / n0
    far = math.exp(-epsilon * (n0 - 2) / (6 * queries)) * (queries / (n0 + n1 - 1) + queries / 2)
    return 6 * max(near, far) / epsilon


def require_epsilon(epsilon: float) -> None:
    """Raise ValueError unless epsilon is above 0; infinite is allowed, NaN is not."""
    if not epsilon > 0:
        raise ValueError("epsilon must be above 0")


def require_batch(queries: int, epsilon: float) -> None:
    """Raise ValueError unless queries is a whole number of at least 1 and epsilon above 0."""
    if not (queries >= 1 and float(queries).is_integer()):
        raise ValueError("queries must be a whole number of at least 1")
    require_epsilon(epsilon)
