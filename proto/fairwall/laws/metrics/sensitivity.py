"""Sensitivity of fairness metrics to one person's protected attribute.

Neighbours are two attribute vectors A that differ in one person, with at least g people of each group in both: g is a
public number, 1 unless a policy says more (`minimum_group`), so that no group is empty. All counts are those of the
metric's own stratum: everybody for statistical parity and accuracy, the people with y = 1 for equal opportunity,
those with y = 0 for the false positive rate. Somebody outside the stratum moves nothing. The worst case is taken over
all predictions, scores in [0, 1] or 0/1, and over labels not fixed by the counts. For the accuracy gap read
"is right" for h: it takes every value that a prediction takes, at any label.

**One flip, signed.** A person with prediction h leaves a group of s >= 2 people, in which the other s-1 have mean y,
for the group of t = n-s >= 1 people with mean x. The gap, receiving minus leaving group, goes

    from  f = x - ((s-1) y + h) / s   to   f' = (t x + h) / (t+1) - y,

    f' - f = h (1/s + 1/(t+1)) - x / (t+1) - y / s.

The coefficient of h is positive and the other two are negative with the same sum, so the change lies between -g and g,
reached at (h, x, y) = (1, 0, 0) and (0, 1, 1), predictions of 0 and 1, where

    g(s) = 1/s + 1/(n+1-s) = (n+1) / (s (n+1-s)).

**One flip, absolute value, scores.** We want max |f'| - |f|; the map h -> 1-h turns (f, f') into (-f, -f'), so it is
max f' - |f| = max over h, min over mu in [-1, 1] of f' + mu f. The two can be exchanged (bilinear, compact, convex).
For fixed mu the best vertex gives the sum of the positive coefficients,

    D(mu) = max(0, t/(t+1) + mu) + max(0, 1/(t+1) - mu/s),

whose slope is -1/s left of mu = -t/(t+1) and 1 - 1/s > 0 right of it. Its minimum is there:

    D = 1/(t+1) + t / (s (t+1)) = n / (s (n+1-s)) = g(s) n/(n+1).

The way back, max |f| - |f'|, is the same: max over h of f + mu f' is 1 + mu t/(t+1) + max(0, -(s-1)/s - mu), least at
mu = -(s-1)/s with value (s+t) / (s (t+1)). So a flip moves an absolute gap by g(s) n/(n+1) in either direction.

**One flip, absolute value, 0/1 predictions.** Let s and u = t+1 be the two groups' sizes, the person counted into
both; s + u = n + 1. Reversing the flip swaps s and u, and h -> 1-h turns the signs, so let h = 1. X of the receiving
group's t others have h = 1 and Y of the leaving group's s-1, so that

    f = X/t - (Y+1)/s,   f' = (X+1)/u - Y/(s-1),   d = f' - f = g - X/(u(u-1)) - Y/(s(s-1)) >= 0.

Where f >= 0, the absolute gap rises by d. That needs X/t >= (Y+1)/s, and the cheapest way is Y = 0, X = c = ceil(t/s).
Where f' <= 0 it falls by d, and the cheapest way is X = 0, Y = ceil((s-1)/u). Hence the change is at least

    g - min( ceil((u-1)/s) / (u(u-1)),  ceil((s-1)/u) / (s(s-1)) ),

and the remaining case, f < 0 < f', does not exceed it: the rise there is f + f' (a fall is a rise of the reversed
flip), and f + f' = d + 2f < d. If X >= c, then d is at most the first way's. If X <= c-1, then f + f', which grows with
X and falls with Y, is at most its value at X = c-1, Y = 0. For c = 1 that is 1/u - 1/s, below the second way's, since
ceil((s-1)/u) <= s-1. For c >= 2 we have t > s and c-1 <= (t-1)/s, and the first way's value exceeds it by 2/s -
2(c-1)/t - 1/(tu) >= 2/(st) - 1/(tu) > 0. Without the ceilings the bracket would be g - 1/(su), the value for scores.

**Groups of at least g.** A flip between two such tables leaves a group of s = g+1 .. n-g: g others stay behind, and the
group joined, u = n+1-s, is as large. None is left where n <= 2g: there are no neighbours then.

**Local.** A flip leaves a group of n0 or of n1, where that is at least g+1; the larger of the two is the local
sensitivity. For signed gaps and for scores g decides: it is convex and symmetric about (n+1)/2, so the flip that leaves
the smaller group is worst, a = min(n0, n1); where a = g that would leave too few, the other flip remains, and
g(n-g) = g(g+1) (the function, of the number). Hence g(a') with a' = max(a, g+1). With 0/1 predictions an absolute gap
can move further in the larger group, if both are nearly equal, so that both flips are looked at.

**Global.** The largest of these is the one at s = g+1: 1/(g+1) + 1/(n-g), and for absolute gaps and scores n /
((g+1)(n-g)). So a larger g divides it by about (g+1)/2. For absolute gaps and 0/1 predictions another s may be worse,
because of the ceilings; it is searched as below, with beta = 0. For g = 1 it is 1/2 + 1/(n-1), and n/(2(n-1)) for
absolute gaps and scores. For absolute gaps and 0/1 predictions: n/(2(n-1)) again if n is even, 1/2 + 1/(n-1) -
1/(2(n-2)) if n is odd; this is at least 1/2, and every other s gives at most the scores' n/(3(n-2)), which is no more
if n >= 6 (n <= 5: see the tests).

**Smooth** (Nissim, Raskhodnikova, Smith 2007): S = max over k >= 0 of exp(-beta k) times the largest local sensitivity
k flips away. Where n > 2g there is a path between any two tables that keeps to groups of at least g and has no more
flips than they differ in: whoever joins the group that is short goes first. So k counts flips as it does without g, S
is smooth between neighbours, and tables of other counts are as far away as the counts are. In other words, over both
groups and all s in g+1 .. n-g: exp(-beta |s - size of the group|) times what a flip moves that leaves a group of s.
Both 1/s and 1/(n+1-s) are log-convex in s, sums and products of log-convex functions are log-convex, and so is
exp(-beta k) g on either side of the group's size: its maximum over an interval lies at an end. Hence for signed gaps
and for scores S = max(g(a'), exp(-beta (a'-g-1)) g(g+1)), for absolute ones times n/(n+1). For absolute gaps with 0/1
predictions the ceilings break the convexity; the scores' value, which is log-convex and not smaller, then bounds a
whole interval by its ends, and the search stops where no better value can remain.

**Equalized odds** looks at two strata and a flip touches one. The other one's gap can be 0 (predict the same for
everybody), so that its presence neither hides nor adds anything, for the maximum as for the sum: local, global and
smooth are each the larger of the two strata's values for an absolute gap. A stratum without people counts as gap 0.

**Predictive parity**, 0/1 predictions. Neighbours where a group has nobody with h = 1, before or after, are left out.
Somebody with y = 1 leaves P >= 2 people with h = 1, F of them with y = 0, for P' >= 1, F' of them with y = 0. The two
precisions move apart by F/(P(P-1)) + F'/(P'(P'+1)). Each term is at most 1/2: F <= P-1, and at P = 2, F = 1 and P' = F'
= 1 there is equality. It does not matter how large the groups are: 1, from three people on. y = 0 is the mirror image.
Where the four counts fix the labels, the first term needs somebody with y = 0 in the group left, the second one in the
other. Let there be three people, both labels among them. If a group has both labels, the other has one of them, and
somebody with the other label makes the change 1. If neither has both, the groups differ by label, the first term is 0
and the change 1/2; one flip further on a group has both, S = max(1/2, exp(-beta)). With one label only, both precisions
are equal for ever: 0. Where the smaller group has g people, nobody leaves it, and the change is 1/2 if all of the
larger one have one label and somebody in the smaller one has the other; one flip further it is 1. So g does not make
the global sensitivity less. The gap that `compliance.records.metrics` reports where a precision is undefined is 0, so
that a flip into or out of that case moves it by at most 1 as well: noise on it needs the 1 of the group sizes, not the
smaller value of the four counts. An undefined precision of 0, as in Fairlearn, would allow a change of 2: if h = 1 for
one person only, with y = 1, their flip takes the gap from 1 to -1.

**Disparate impact** is a ratio whose denominator one person can empty: infinite, for every n and every kind of
prediction.

**If a group may be empty**, and a gap is 0 there: the flip of a lone person can move a gap of 1 to 0, also an absolute
one, and the flip into an empty group back. Hence 1 where a <= 1 (from two people on); nothing changes where a >= 2, but
the smooth sensitivity also sees the value 1 that is a - 1 flips away. Predictive parity: 1 from two people on, if
both labels are there.

m queries move together, and every one of them can be the worst: the l1 sensitivity is m times these values.

**Where the paper differs** (each runs in a test):

* Theorem 6, global 1/2 for the absolute gap: A = (0,0,1,1), h = (1,0,1,0) has gap 0; flipping person 2 gives 2/3.
* Equal opportunity with n people instead of those with y = 1: Y = (1,1,1,0), A = (0,1,1,1), h = (1,1,0,·) moves from
  -1/2 to 1/2 when person 3 flips, by 1 > 5/6.
* Theorem 7's S is not smooth between N0 = 1 and N0 = 2 (the ratio tends to 2) and needs N0 to be the minority.
* The preprint's appendix A.5 proves convexity by calling the term 2 beta (1/(N1+k+1)^2 - 1/(N0-k)^2) positive; it is
  negative. The claim about the ends is true, by the log-convexity above.
* Appendix A.6, 1/(N0-k) for the absolute gap k flips away, is too small by up to 2 near balance.

**Limits of the definition.** A stratum of fewer than 2g+1 people has no neighbours and sensitivity 0: the
guarantee is then empty, not strong (no service starts with it). Nor is there a promise about a group having g people or
fewer: that both have at least g is public. With ``may_be_empty`` there is one about groups being empty.
"""

import math
from dataclasses import dataclass

from fairwall.laws.metrics.metric import Metric, find_metric


@dataclass(frozen=True)
class LabelGroupCounts:
    """People by label and group: ``nya`` have label y and protected attribute a. Secret.

    ValueError for a count that is not a whole number of at least 0.
    """

    n00: int
    n01: int
    n10: int
    n11: int

    def __post_init__(self) -> None:
        for count in (self.n00, self.n01, self.n10, self.n11):
            _require_whole(count, 0, "each count must be a whole number of at least 0")

    def groups(self, label: int | None) -> tuple[int, int]:
        """Return the numbers of disadvantaged and advantaged people, (n0, n1), with this label; None for everybody."""
        if label is None:
            return self.n00 + self.n10, self.n01 + self.n11
        return (self.n10, self.n11) if label else (self.n00, self.n01)


@dataclass(frozen=True)
class Sensitivities:
    """A metric's sensitivities for one data set, per query; infinite where unbounded.

    Parameters
    ----------
    local : the most that the metric moves between this data set and a neighbour. Secret.
    overall : the global sensitivity: the most that it moves between any two neighbours with these labels.
    smooth : the smooth sensitivity. Secret. None where no beta was given.
    """

    local: float
    overall: float
    smooth: float | None


def sensitivities(
    metric: str,
    counts: LabelGroupCounts | tuple[int, int],
    beta: float | None = None,
    *,
    scores: bool = True,
    may_be_empty: bool = False,
    minimum_group: int = 1,
) -> Sensitivities:
    """Return all sensitivities of any metric, including those of two strata or dependent on the labels.

    ValueError for an unknown metric, a beta out of range, a count that is not a whole number of at least g (or 0), or
    (n0, n1) for two strata.

    Parameters
    ----------
    counts : the four counts, or (n0, n1) of the metric's own stratum. Equalized odds needs the four.
    beta : smoothness, at least 0 and finite; None for no smooth sensitivity.
    scores : whether predictions are scores in [0, 1] rather than 0 or 1. Of no effect on a metric that needs 0 or 1.
    may_be_empty : whether a group may be empty, the gap then being 0, rather than neither data set having an empty
        group.
    minimum_group : g, the least people of each group in neighbours, in each of the metric's strata; at least 1. Public.
    """
    found = find_metric(metric)
    if beta is not None:
        _require_beta(beta)
    if isinstance(counts, LabelGroupCounts):
        strata = [counts.groups(label) for label in found.strata]
        if len(strata) > 1:
            strata = [groups for groups in strata if sum(groups)] or [(0, 0)]
    elif len(found.strata) > 1:
        raise ValueError(_two_strata(found))
    else:
        strata = [counts]
    least = _least(minimum_group, may_be_empty)
    for groups in strata:
        require_groups(*groups, least=least)
    if found.bounded and found.binary and isinstance(counts, LabelGroupCounts):
        return _predictive_parity(counts, beta, least)
    return Sensitivities(
        max(_local(found, *groups, scores, least) for groups in strata),
        max(_global(found, sum(groups), scores, least) for groups in strata),
        None if beta is None else max(_smooth(found, *groups, beta, scores, least) for groups in strata),
    )


def flip_sensitivity(metric: str, n: int, leaving: int, *, scores: bool = True) -> float:
    """Return the most that a metric moves when one person leaves a group of a given size, over all predictions.

    In (0, 1], infinite for disparate impact; for either direction of the flip.

    `n`: people in the metric's stratum; for equalized odds, in the person's. `leaving`: size of the group left, in 2 ..
    n-1: ValueError where the flip would leave a group empty. `scores`: whether predictions are scores in [0, 1] rather
    than 0 or 1.
    """
    found = find_metric(metric)
    if not 2 <= leaving <= n - 1:
        raise ValueError("both groups must be non-empty before and after the flip")
    return _flip(found, n, leaving, scores)


def local_sensitivity(
    metric: str, n0: int, n1: int, *, scores: bool = True, may_be_empty: bool = False, minimum_group: int = 1
) -> float:
    """Return the most that a metric moves between a data set with these counts and its neighbours.

    `Sensitivities.local`, of a metric with one stratum and (n0, n1) people in it: the arguments and errors are those of
    `sensitivities`. In [0, 1], infinite for disparate impact; 0 for fewer than 2g+1 people, who have no neighbours.
    """
    found = _one_stratum(metric)
    least = _least(minimum_group, may_be_empty)
    require_groups(n0, n1, least=least)
    return _local(found, n0, n1, scores, least)


def global_sensitivity(
    metric: str, n: int, *, scores: bool = True, may_be_empty: bool = False, minimum_group: int = 1
) -> float:
    """Return the most that a metric moves between any two neighbours.

    `Sensitivities.overall`, of a metric with one stratum and n people in it, which is public since the labels are; the
    other arguments and errors are those of `sensitivities`. In [0, 1], infinite for disparate impact: 1/(g+1) +
    1/(n-g), or n / ((g+1)(n-g)) for an absolute gap and scores; 0 for fewer than 2g+1 people.
    """
    found = _one_stratum(metric)
    _require_whole(n, 0, "n must be a whole number of at least 0")
    return _global(found, n, scores, _least(minimum_group, may_be_empty))


def smooth_sensitivity(
    metric: str,
    n0: int,
    n1: int,
    beta: float,
    *,
    scores: bool = True,
    may_be_empty: bool = False,
    minimum_group: int = 1,
) -> float:
    """Return the smallest bound on the local sensitivity that changes by at most exp(beta) between neighbours.

    `Sensitivities.smooth`, of a metric with one stratum and (n0, n1) people in it: the arguments and errors are those
    of `sensitivities`. A beta of 0 gives the global sensitivity; it must not depend on n0 and n1. In [0, 1], infinite
    for disparate impact; 0 for fewer than 2g+1 people.
    """
    found = _one_stratum(metric)
    least = _least(minimum_group, may_be_empty)
    require_groups(n0, n1, least=least)
    _require_beta(beta)
    return _smooth(found, n0, n1, beta, scores, least)


def least_stratum(minimum_group: int) -> int:
    """Return the least people of a stratum with neighbours: 2g+1."""
    return 2 * minimum_group + 1


def require_groups(n0: int, n1: int, *, least: int = 1) -> None:
    """Raise ValueError unless both counts are whole numbers of at least `least`. The text does not tell the counts."""
    for count in (n0, n1):
        _require_whole(count, least, f"each group must have a whole number of people, at least {least}")


def _flip(metric: Metric, n: int, leaving: int, scores: bool) -> float:
    s, u = leaving, n + 1 - leaving
    if not metric.bounded:
        return math.inf
    if metric.binary:
        return 1.0
    if not metric.absolute:
        return (n + 1) / (s * u)
    if scores:
        return n / (s * u)
    # -(-x // y) is x / y rounded up.
    return (n + 1) / (s * u) - min(-(-(u - 1) // s) / (u * (u - 1)), -(-(s - 1) // u) / (s * (s - 1)))


def _least(minimum_group: int, may_be_empty: bool) -> int:
    """Return the least people of a group; 0 where it may be empty."""
    _require_whole(minimum_group, 1, "minimum_group must be a whole number of at least 1")
    if may_be_empty and minimum_group > 1:
        raise ValueError("minimum_group: a group that may be empty has no minimum")
    return 0 if may_be_empty else minimum_group


def _leaving(n: int, least: int) -> tuple[int, int]:
    """Return the smallest and the largest group that a flip may leave; there is none where they cross."""
    floor = max(least, 1)
    return floor + 1, n - floor


def _local(metric: Metric, n0: int, n1: int, scores: bool, least: int) -> float:
    n = n0 + n1
    if not metric.bounded:
        return math.inf
    if not least and n >= 2 and min(n0, n1) <= 1:
        return 1.0
    low, high = _leaving(n, least)
    return max((_flip(metric, n, leaving, scores) for leaving in (n0, n1) if low <= leaving <= high), default=0.0)


def _global(metric: Metric, n: int, scores: bool, least: int) -> float:
    # From the most uneven groups; where n is too small for two groups there are no neighbours.
    n0 = min(n, least)
    return _smooth(metric, n0, n - n0, 0.0, scores, least)


def _smooth(metric: Metric, n0: int, n1: int, beta: float, scores: bool, least: int) -> float:
    n = n0 + n1
    best = _local(metric, n0, n1, scores, least)
    if not least and n >= 2:
        best = max(best, math.exp(-beta * max(min(n0, n1) - 1, 0)))
    first, last = _leaving(n, least)
    for size in (n0, n1):
        for low, high in ((first, min(size, last)), (max(size, first), last)):
            # From both ends of the interval inwards, until the log-convex bound excludes the inside.
            while low <= high:
                ends = [(math.exp(-beta * abs(leaving - size)), leaving) for leaving in (low, high)]
                if max(discount * _flip(metric, n, leaving, True) for discount, leaving in ends) <= best:
                    break
                best = max(best, *(discount * _flip(metric, n, leaving, scores) for discount, leaving in ends))
                low, high = low + 1, high - 1
    return best


def _predictive_parity(counts: LabelGroupCounts, beta: float | None, least: int) -> Sensitivities:
    """Return the sensitivities of predictive parity, with the labels fixed by the counts."""
    n0, n1 = counts.groups(None)
    mixed = sum(counts.groups(0)) > 0 and sum(counts.groups(1)) > 0
    low, _ = _leaving(n0 + n1, least)
    if not mixed or (n0 + n1 < 2 * low - 1 and least):
        local = overall = 0.0
    else:
        by_group = (counts.n00, counts.n10), (counts.n01, counts.n11)
        groups = by_group, by_group[::-1]
        flips = (_precision_flip(*pair) for pair in groups if sum(pair[0]) >= low)
        local, overall = (max(flips) if least else 1.0), 1.0
    return Sensitivities(local, overall, None if beta is None else max(local, math.exp(-beta) * overall))


def _precision_flip(former: tuple[int, int], joined: tuple[int, int]) -> float:
    """Return the effect of a flip on predictive parity, for groups with these numbers of people of label 0 and 1."""
    return max(((former[1 - y] > 0) + (joined[1 - y] > 0)) / 2 for y in (0, 1) if former[y])


def _one_stratum(metric: str) -> Metric:
    found = find_metric(metric)
    if len(found.strata) > 1:
        raise ValueError(_two_strata(found))
    return found


def _two_strata(metric: Metric) -> str:
    return f"metric {metric.name} looks at two strata: it needs the counts of each"


def _require_beta(beta: float) -> None:
    if not 0 <= beta < math.inf:
        raise ValueError("beta must be a finite number of at least 0")


def _require_whole(count: int, least: int, refusal: str) -> None:
    # Counts may come as numpy scalars or, from a configuration, as floats; NaN fails the comparison.
    if not (count >= least and float(count).is_integer()):
        raise ValueError(refusal)
