"""The joint posterior of all gaps of a batch, where answers have intervals and no posterior of their own.

Answers whose noise has a known law are y = g + noise, with the gaps g. Models that agree have gaps that agree: the
prior of `fairwall.laws.posterior`. With X the centred predictions a gap is -u n / (N0 N1), u = X z. So -n s (1-s) y is
a noisy sum of X, for the share s that is assumed there, and the joint posterior is that of these sums. Noise is taken
to be normal with the interval's half-width, and independent for each model.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compliance.intervals.interval import Ends
from fairwall.laws.batch import Stratum
from fairwall.laws.bounding import metric_range
from fairwall.laws.mechanisms import MECHANISM_LAWS
from fairwall.laws.metric import find_metric
from fairwall.laws.posterior import SHARE, NoisyObservations, posterior
from fairwall.laws.quantiles import LEVEL, noise_reach


def draws_of_answers(
    metric: str, mechanism: str, stratum: Stratum, ends: Ends, count: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Draw gaps jointly, shape (count, m), by intervals of each that hold whatever the attributes.

    NaN where nothing is known, as for absolute gaps, whose signs are lost.

    `stratum`: the people the metric reads. `ends`: the guaranteed intervals, before any bounding.
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
    seen = NoisyObservations(told, np.zeros(len(told)), stratum.gram, stratum.gram, (per_gap * deviations) ** 2)
    drawn = posterior(stratum.gram, seen, SHARE, stratum.people).draws(count, generator) / per_gap
    return np.clip(drawn, *metric_range(metric))
