"""What is believed of all gaps of a batch together, where answers have intervals and no posterior of their own.

Answers whose noise has a known law say y = g + noise of the gaps g by themselves. Models that agree have gaps that
agree, which is the prior of `fairwall.laws.posterior`: with X the centred predictions a gap is -u n / (N0 N1), u = X z.
So -n s (1-s) y is a noisy sum of X, for the share s that is taken there beforehand, and the joint posterior is that
of these sums. Noise is taken to be normal with the interval's half-width, and each model's to be its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compliance.intervals.interval import Ends
from fairwall.laws.batch import Stratum
from fairwall.laws.bounding import metric_range
from fairwall.laws.mechanisms import MECHANISM_LAWS
from fairwall.laws.metric import find_metric
from fairwall.laws.posterior import SHARE, Seen, posterior
from fairwall.laws.quantiles import LEVEL, noise_reach


def draws_of_answers(
    metric: str, mechanism: str, stratum: Stratum, ends: Ends, count: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Draw gaps jointly, by intervals of each that hold whoever is who.

    Parameters
    ----------
    metric, mechanism : what was asked for, and what answered.
    stratum : whom the metric looks at.
    ends : the guaranteed intervals, before any bounding.

    Returns
    -------
    NDArray[np.float64]
        Shape (count, m): NaN where nothing is known, as of absolute gaps, whose signs are lost.
    """
    low, high = ends
    law, found = MECHANISM_LAWS[mechanism].interval, find_metric(metric)
    if law is None or found.absolute or not found.of_means or len(found.parts) > 1 or not np.isfinite(low + high).all():
        return np.full((count, len(low)), np.nan)
    noise = law.noise(1.0)
    deviations = (high - low) / 2 / noise_reach(noise, LEVEL) * np.sqrt(noise.variance())
    if not deviations.any():
        return np.tile(low, (count, 1))
    per_gap = -stratum.people * SHARE * (1 - SHARE)
    told = per_gap * (low + high) / 2
    seen = Seen(told, np.zeros(len(told)), stratum.gram, stratum.gram, (per_gap * deviations) ** 2)
    drawn = posterior(stratum.gram, seen, SHARE, stratum.people).draws(count, generator) / per_gap
    return np.clip(drawn, *metric_range(metric))
