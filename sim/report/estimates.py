r"""Means and shares over a run's trials, with 95% intervals.

**Fewer than five trials** give no interval: it would say more about the method than about the game.

**A share** of trials has Clopper and Pearson's interval.

**A mean of bounded numbers**, such as leakage, in 0 to 100, has Korn and Graubard's (Survey Methodology 1998): Clopper
and Pearson's, for the number of independent 0-or-1 draws whose mean would be equally uncertain. Scaled to [0, 1], a
mean m of n trials with the squared standard error v = s^2 / n is worth

    n_eff = m (1 - m) / v * (z / t_{n-1})^2

draws, z and t being the 97.5% quantiles of the normal distribution and of Student's with n - 1 degrees of freedom. In
the middle of the range, the interval is slightly wider than the t interval; near an end it is skewed, as such numbers
are, and it never leaves the range. If all trials have the same number c, v is 0 and says nothing about other possible
numbers. Then the interval allows for an unseen share q of other trials, anywhere in the range: from (1 - q) c to (1 -
q) c + q, with q = 1 - 0.025^(1/n).

Measured on samples of 5 to 20 of the leakages of 150 to 200 trials per cell (tests/unit/sim/test_estimates.py), it
misses the cell's mean at most 6% of the time, where the t interval misses up to 38% and leaves the range; for the
leakage that answers add, leakage less leakage without a query, at most 8%.

**A mean of numbers without a range** has the t interval.

No interval can exclude a different kind of trial that did not occur.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fairwall.laws.studies.binomial import lower_limit, upper_limit
from sim.report.notation import MISSING

FEWEST = 5
"""Least number of trials with an interval."""

Range = tuple[float, float]
"""The least and the greatest possible value of a number; infinite if there is none."""

SHARE: Range = (0.0, 1.0)
PERCENT: Range = (0.0, 100.0)
POINTS: Range = (-100.0, 100.0)
"""Range of a difference of two percentages."""

INTERVALS = (
    "A mean's is Korn and Graubard's (1998) at 95%: Clopper and Pearson's for as many yes-or-no draws as would be as "
    "uncertain, so that it stays within what is possible. On leakages as they were measured it missed at most 6% of "
    "the time, on differences of them 8%. Where all came to the same, it allows for others of which none was seen. A "
    f"share's is Clopper and Pearson's. Fewer than {FEWEST} give none."
)
"""A page's description of its intervals."""

_LEVEL = 0.05


@dataclass(frozen=True)
class IntervalEstimate:
    """A number and its 95% interval; None if there are too few trials."""

    mean: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        return self.text(1)

    def text(self, digits: int, unit: str = "", *, ends: int | None = None) -> str:
        """Return the number, its unit, and any interval, with unbreakable spaces; ``ends`` are the ends' decimals."""
        number = f"{self.mean:.{digits}f}{unit}".replace("-", "−")
        return number if self.low is None else f"{number}\u00a0({self.ends(digits if ends is None else ends)})"

    def brief(self, digits: int) -> str:
        """Return the text for a terminal: percentages with whole ends, and shares without their leading 0."""
        if digits < 2:
            return self.text(digits, ends=0)
        numbers = [self.mean] if self.low is None or self.high is None else [self.mean, self.low, self.high]
        mean, *ends = (_share_text(number, digits) for number in numbers)
        return f"{mean} [{','.join(ends)}]" if ends else mean

    def ends(self, digits: int) -> str:
        """Return the interval alone; a dash if there is none."""
        if self.low is None or self.high is None:
            return MISSING
        to = "–" if self.low >= 0 else "\u00a0to\u00a0"
        return f"{self.low:.{digits}f}{to}{self.high:.{digits}f}".replace("-", "−")

    def mapped(self, rising: Callable[[float], float]) -> IntervalEstimate:
        """Return the estimate in another unit, converted by an increasing function."""
        low, high = (None if end is None else rising(end) for end in (self.low, self.high))
        return IntervalEstimate(rising(self.mean), low, high)

    @property
    def sign(self) -> int:
        """1 or -1 if the whole interval is above or below zero, else 0."""
        if self.low is None or self.high is None or self.low <= 0 <= self.high:
            return 0
        return 1 if self.low > 0 else -1


def _share_text(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}".replace("-", "−")
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def estimate(values: Sequence[float], within: Range = (-math.inf, math.inf)) -> IntervalEstimate:
    """Return an estimate of the mean of at least one value, each within a range."""
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return estimate_of(float(np.mean(values)), sd, len(values), within)


def estimate_of(mean: float, sd: float | None, trials: int, within: Range) -> IntervalEstimate:
    """Return an estimate of a mean over trials whose numbers lie ``within`` a range.

    ``sd`` is the standard deviation of a single trial, n - 1 in the denominator; None for one trial.
    """
    if sd is None or trials < FEWEST:
        return IntervalEstimate(mean)
    lowest, highest = within
    if math.isinf(highest - lowest):
        low, high = t_interval(mean, sd / math.sqrt(trials), trials - 1, _LEVEL)
        return IntervalEstimate(mean, max(low, lowest), min(high, highest))
    width = highest - lowest
    low, high = _bounded((mean - lowest) / width, sd / width, trials)
    # A mean of equal numbers may differ from them in its last bits.
    return IntervalEstimate(mean, min(lowest + width * low, mean), max(lowest + width * high, mean))


def share(hits: int, trials: int) -> IntervalEstimate:
    """Return an estimate of a share, in percent."""
    if trials < FEWEST:
        return IntervalEstimate(100 * hits / trials)
    low, high = share_interval(hits, trials)
    return IntervalEstimate(100 * hits / trials, 100 * low, 100 * high)


def share_interval(hits: int, trials: int) -> tuple[float, float]:
    """Return the interval of a share, in [0, 1]; any positive number of trials is enough."""
    return lower_limit(hits, trials, _LEVEL / 2), upper_limit(hits, trials, _LEVEL / 2)


def t_interval(mean: float, error: float, degrees: int, level: float) -> tuple[float, float]:
    """Return Student's interval of a number with this standard error and at least one degree of freedom."""
    half = _t(degrees, level) * error
    return mean - half, mean + half


def _bounded(mean: float, sd: float, trials: int) -> tuple[float, float]:
    """Return the interval of a mean of numbers in [0, 1]."""
    if sd < 1e-9:
        unseen = upper_limit(0, trials, _LEVEL / 2)
        return (1 - unseen) * mean, (1 - unseen) * mean + unseen
    from scipy.special import ndtri

    spread = float(ndtri(1 - _LEVEL / 2)) / _t(trials - 1, _LEVEL)
    draws = trials * mean * (1 - mean) / sd**2 * spread**2
    return lower_limit(draws * mean, draws, _LEVEL / 2), upper_limit(draws * mean, draws, _LEVEL / 2)


def _t(degrees: int, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 1 - level / 2))
