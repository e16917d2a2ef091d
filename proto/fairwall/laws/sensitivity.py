r"""How far one person's protected attribute can move a fairness metric.

Neighbours are two attribute vectors A that differ in one person and leave nobody's group empty. All counts are those
of the metric's own stratum: everybody for statistical parity, the people with y = 1 for equal opportunity. Somebody
outside the stratum moves nothing. Predictions are scores in [0, 1] and the worst case is taken over all of them.

**One flip, signed.** A person with prediction h leaves a group of s >= 2 people, in which the other s-1 have mean y,
for the group of t = n-s >= 1 people with mean x. The gap, receiving minus leaving group, goes

    from  f = x - ((s-1) y + h) / s   to   f' = (t x + h) / (t+1) - y,

    f' - f = h (1/s + 1/(t+1)) - x / (t+1) - y / s.

The coefficient of h is positive and the other two are negative with the same sum, so the change lies between -g and g,
reached at (h, x, y) = (1, 0, 0) and (0, 1, 1), where

    g(s) = 1/s + 1/(n+1-s) = (n+1) / (s (n+1-s)).

**One flip, absolute value.** We want max |f'| - |f|; the map h -> 1-h turns (f, f') into (-f, -f'), so it is
max f' - |f| = max over h, min over mu in [-1, 1] of f' + mu f. The two can be exchanged (bilinear, compact, convex).
For fixed mu the best vertex gives the sum of the positive coefficients,

    D(mu) = max(0, t/(t+1) + mu) + max(0, 1/(t+1) - mu/s),

whose slope is -1/s left of mu = -t/(t+1) and 1 - 1/s > 0 right of it. Its minimum is there:

    D = 1/(t+1) + t / (s (t+1)) = n / (s (n+1-s)) = g(s) n/(n+1).

The way back, max |f| - |f'|, is the same: max over h of f + mu f' is
1 + mu t/(t+1) + max(0, -(s-1)/s - mu), least at mu = -(s-1)/s with value (s+t) / (s (t+1)). So a flip moves
an absolute gap by g(s) n/(n+1) in either direction.

**Local.** With a = min(n0, n1): g is convex and symmetric about (n+1)/2, so of the flips that are allowed the one that
leaves the smaller group is worst, g(a); where a = 1 that would empty the group, the other flip remains, and
g(n-1) = g(2). Hence g(a') with a' = max(a, 2). **Global.** The largest of these is g(2) = 1/2 + 1/(n-1).

**Smooth** (Nissim, Raskhodnikova, Smith 2007): S = max over k >= 0 of exp(-beta k) times the largest local sensitivity
k flips away, which is g(a'-k) down to g(2). Both 1/s and 1/(n+1-s) are log-convex in s, sums and products of
log-convex functions are log-convex, and so is exp(-beta k) g(a'-k): its maximum lies at an end,
k = 0 or k = a'-2. At a = 1 no step is needed to reach g(2).

m queries move together, and every one of them can be the worst: the l1 sensitivity is m times these values.

**Where the paper differs** (each runs in a test):

* Theorem 6, global 1/2 for the absolute gap: A = (0,0,1,1), h = (1,0,1,0) has gap 0; flipping person 2 gives 2/3.
* Equal opportunity with n people instead of those with y = 1: Y = (1,1,1,0), A = (0,1,1,1), h = (1,1,0,·) moves from
  -1/2 to 1/2 when person 3 flips, by 1 > 5/6.
* Theorem 7's S is not smooth between N0 = 1 and N0 = 2 (the ratio tends to 2) and needs N0 to be the minority.
* The preprint's appendix A.5 proves convexity by calling the term 2 beta (1/(N1+k+1)^2 - 1/(N0-k)^2) positive; it is
  negative. The claim about the ends is true, by the log-convexity above.
* Appendix A.6, 1/(N0-k) for the absolute gap k flips away, is too small by up to 2 near balance.

**What the definition leaves open.** A stratum of fewer than three people has no neighbours and sensitivity 0: the
guarantee is then empty, not strong. Nor is there a promise about a group being empty or not.
"""

import math

from fairwall.laws.metric import find_metric


def flip_sensitivity(metric: str, n: int, leaving: int) -> float:
    """Return the most that a metric moves when one person leaves a group of a given size.

    Parameters
    ----------
    metric
        A key of `fairwall.laws.metric.METRICS`.
    n
        People in the metric's stratum.
    leaving
        Size of the group that the person leaves, in 2 .. n-1.

    Returns
    -------
    float
        In (0, 1]; either direction of the flip, the worst case over predictions in [0, 1].

    Raises
    ------
    ValueError
        For an unknown metric, or a flip that would leave a group empty.
    """
    absolute = find_metric(metric).absolute
    if not 2 <= leaving <= n - 1:
        raise ValueError("both groups must be non-empty before and after the flip")
    return (n if absolute else n + 1) / (leaving * (n + 1 - leaving))


def local_sensitivity(metric: str, n0: int, n1: int) -> float:
    """Return the most that a metric moves between a data set with these counts and its neighbours.

    Parameters
    ----------
    metric
        A key of `fairwall.laws.metric.METRICS`.
    n0, n1
        Disadvantaged and advantaged people in the metric's stratum, each at least 1. Secret: so is the result.

    Returns
    -------
    float
        In [0, 1], per query; 0 for fewer than three people, who have no neighbours.

    Raises
    ------
    ValueError
        For an unknown metric or a count that is not a whole number of at least 1.
    """
    find_metric(metric)
    require_groups(n0, n1)
    n = n0 + n1
    return 0.0 if n < 3 else flip_sensitivity(metric, n, max(min(n0, n1), 2))


def global_sensitivity(metric: str, n: int) -> float:
    """Return the most that a metric moves between any two neighbours.

    Parameters
    ----------
    metric
        A key of `fairwall.laws.metric.METRICS`.
    n
        People in the metric's stratum. Public, since the labels are.

    Returns
    -------
    float
        In [0, 1], per query: 1/2 + 1/(n-1), or n / (2 (n-1)) for an absolute gap; 0 for fewer than three people.

    Raises
    ------
    ValueError
        For an unknown metric or an n that is not a whole number of at least 0.
    """
    find_metric(metric)
    _require_whole(n, 0, "n must be a whole number of at least 0")
    return 0.0 if n < 3 else flip_sensitivity(metric, n, 2)


def smooth_sensitivity(metric: str, n0: int, n1: int, beta: float) -> float:
    """Return the smallest bound on the local sensitivity that changes by at most exp(beta) between neighbours.

    Parameters
    ----------
    metric
        A key of `fairwall.laws.metric.METRICS`.
    n0, n1
        Disadvantaged and advantaged people in the metric's stratum, each at least 1. Secret: so is the result.
    beta
        Smoothness, at least 0 and finite; 0 gives the global sensitivity. Must not depend on n0 and n1.

    Returns
    -------
    float
        In [0, 1], per query; 0 for fewer than three people.

    Raises
    ------
    ValueError
        For an unknown metric, a count that is not a whole number of at least 1, or a beta out of range.
    """
    find_metric(metric)
    require_groups(n0, n1)
    if not 0 <= beta < math.inf:
        raise ValueError("beta must be a finite number of at least 0")
    steps = max(min(n0, n1), 2) - 2
    return max(
        local_sensitivity(metric, n0, n1),
        math.exp(-beta * steps) * global_sensitivity(metric, n0 + n1),
    )


def require_groups(n0: int, n1: int) -> None:
    """Raise ValueError unless both counts are whole numbers of at least 1. The text does not tell the counts."""
    for count in (n0, n1):
        _require_whole(count, 1, "each group must have a whole number of people, at least 1")


def _require_whole(count: int, least: int, refusal: str) -> None:
    # Counts may come as numpy scalars or, from a configuration, as floats; NaN fails the comparison.
    if not (count >= least and float(count).is_integer()):
        raise ValueError(refusal)
