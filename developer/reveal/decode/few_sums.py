r"""Decode answers that are functions of a few noisy sums, those of `cells`.

**Inversion.** The developer's own predictions determine which sums are released, y = S z + noise: S and the noise
distribution are computed as compliance does. Answers are posterior means of u (`fairwall.laws.choice.posterior`),
nearly linear in y: were gaps by chance alone what is expected,

    u = G (y - s S 1),    G = s(1-s) X S' (s(1-s) S S' + R)^-1,    u = -gap N0 N1 / n.

So with as many answers as sums, least squares gives back y, less its value without any gap, up to a common factor: from
the structure read into the batch, and from N0, for which a share of `_USUAL_SHARE` is assumed where it is not public.
The factor changes no ranking of people. Clipped answers are read unchanged, which shrinks them but keeps their sign.

**Result**: gaps of rows S with independent noise, which any decoder takes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from developer.reveal.decode.decoder import DecoderInputs
from fairwall.arrays import Floats
from fairwall.laws.choice.cell_partition import cut, discrete_variance, narrowed
from fairwall.laws.choice.cell_purchases import plan_among
from fairwall.laws.choice.posterior import centred_values
from fairwall.laws.noise.distributions import Laplace, NoiseDistribution
from fairwall.laws.privacy.exposure import NO_LIMIT, Limit, least_people_within

_Scaled = Callable[[float], NoiseDistribution]

_USUAL_SHARE = 0.2

_RANK = 1e-6


def usual_size(n: int) -> int:
    """Return the N0 assumed where it is not public."""
    return min(max(1, round(_USUAL_SHARE * n)), n - 1)


def behind(rows: Floats, gaps: Floats, epsilon: float, n0: int | None, limit: Limit = NO_LIMIT) -> DecoderInputs:
    """Return the released sums as rows, gaps and their noise distribution.

    rows, gaps : the batch, (m, n) and (m,).
    epsilon : of the batch; finite.
    n0 : number of disadvantaged people, where public.
    limit : limit on what a batch may reveal; it determines the cells.
    """
    n = rows.shape[1]
    n0 = usual_size(n) if n0 is None else n0
    c, share = 1 / n0 + 1 / (n - n0), n0 / n
    sums, law, variance = _cells(rows, epsilon, limit)
    people = sums.sum(axis=1)
    _, variances = narrowed(people, people, np.full(len(people), variance), share)
    centred = centred_values(rows)
    spread = share * (1 - share)
    covariance = spread * sums @ sums.T + np.diag(variances)
    gain = spread * np.linalg.solve(covariance, sums @ centred.T).T
    released = np.linalg.lstsq(gain, -np.clip(gaps, -1, 1) / c, rcond=_RANK)[0]
    # Rescaled to rows in [0, 1].
    low = min(0.0, float(sums.min(initial=0.0)))
    width = 1 - low
    return DecoderInputs((sums - low) / width, -c * released / width, n0, n - n0, law(c / width))


def _cells(rows: Floats, epsilon: float, limit: Limit) -> tuple[Floats, _Scaled, float]:
    cuts = cut(rows, least_people_within(epsilon, limit))
    bought = plan_among(rows, np.arange(rows.shape[1]), cuts, epsilon, 0.0, limit)
    indicators = np.equal.outer(np.arange(bought.count), cuts.cell_of(bought.count)).astype(np.float64)
    # A sum that is measured in addition has other noise and is hardly informative: it is left out.
    return indicators, lambda factor: Laplace(factor * bought.scale), discrete_variance(bought.scale)
