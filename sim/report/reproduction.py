"""Whether a run reproduces a printed figure: one rule, by intervals, for every figure that is a number.

A printed number stands for a region: what the paper's own seeds and a stated margin make of it. Ours is an interval, of
95%. It is reproduced if the interval lies wholly inside the region, not reproduced if wholly outside, and undecided if
it has points on both sides, or there is no interval: more trials may decide that. A paper that leaves out what it takes
to do the same again is not reproducible as described, whatever was measured.
"""

from __future__ import annotations

from sim.report.estimates import Estimate, Range

REPRODUCED, NOT_REPRODUCED, UNDECIDED = "reproduced", "not reproduced", "undecided"
NOT_AS_DESCRIBED = "not reproducible as described"


def region(printed: float, sd: float | None, margin: float) -> Range:
    """Give what counts as the printed number: from so much below it to so much above, both included.

    Parameters
    ----------
    printed : float
    sd : float or None
        The standard deviation that is printed beside it, if one is.
    margin : float
        Of what a paper cannot print, in the same unit.
    """
    around = (sd or 0.0) + margin
    return printed - around, printed + around


def judged(measured: Estimate, printed: Range, missing: str | None = None) -> str:
    """Judge a printed figure by the interval of a measured one.

    Parameters
    ----------
    measured : Estimate
    printed : (float, float)
        See `region`.
    missing : str, optional
        What the paper leaves out.
    """
    if missing:
        return NOT_AS_DESCRIBED
    if measured.low is None or measured.high is None:
        return UNDECIDED
    low, high = printed
    if low <= measured.low and measured.high <= high:
        return REPRODUCED
    return NOT_REPRODUCED if measured.high < low or high < measured.low else UNDECIDED
