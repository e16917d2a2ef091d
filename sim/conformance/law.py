r"""Check answers, given the protected attributes.

The exact gaps are computed here by hand, from the definitions in docs/metrics.md: a tester that shares the arithmetic
of the server under test would share its faults.

**Noise** is tested against its distribution F by the numbers c = 2 F(noise) - 1 (`sim.conformance.bounds`): their size,
of one answer or thousands; their shape; and the dependence of neighbours in a batch by Azuma's inequality for the mean
of c_i c_{i+1}, a martingale with steps in [-1, 1].
"""

from __future__ import annotations

import math

import numpy as np

from fairwall.arrays import Bools, Bytes
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.noise.distributions import Cauchy
from sim.conformance import bounds
from sim.conformance.calls import ProtocolViolation
from sim.conformance.promise import Array, Known, cdf, quantile
from sim.conformance.target import KnownPeople
from sim.conformance.world import Result

FALSE_ALARM = 1e-9
"""Largest probability that one case accuses a sound server: a case checks each of its batches several times, and a
suite has some hundred cases."""

_LEAST, _LITTLE, _SPREAD = 1e-4, 0.01, 2.0
"""Noise scales, least and largest, at which draws are as spread as the noise, up to the factor `_SPREAD`; a prior
matters above these, rounding below."""

_LOOKS = 100
_P = FALSE_ALARM / _LOOKS


def exact_gaps(people: KnownPeople, metric: str, predictions: Array) -> Array:
    """Return the gaps without noise, shape (models,), computed by hand."""
    found = find_metric(metric)
    y, a = people.labels, people.protected
    if found.binary:
        gaps = np.array([_precision(row, y, a == 1) - _precision(row, y, a == 0) for row in predictions])
        nobody = [not row[a == 1].any() or not row[a == 0].any() for row in predictions]
        gaps[nobody] = 0
        return gaps
    if not found.bounded:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(predictions[:, a == 0].mean(axis=1) / predictions[:, a == 1].mean(axis=1))
    parts = []
    for part in found.parts:
        values = np.where(y == 1, predictions, 1 - predictions) if part.value == "correct" else predictions
        parts.append(_difference(values, np.ones(len(y), np.bool_) if part.label is None else y == part.label, a))
    if found.joined is not None:
        return np.asarray(np.max(np.abs(parts), axis=0) if found.joined == "max" else np.sum(np.abs(parts), axis=0))
    return np.asarray(np.abs(parts[0]) if found.absolute else parts[0])


def require_close(noise: Array, law: Known) -> None:
    """Demand that answers are the exact gaps up to noise of the distribution."""
    tail = _P / len(noise)
    bound = quantile(law, tail)
    worst = float(np.abs(noise).max())
    if worst > bound + 1e-12:
        raise ProtocolViolation(
            f"an answer is {worst:.3g} away from the exact gap; noise of its law is at most {bound:.3g}"
        )


def require_noise(centred: Array) -> None:
    """Demand that noise has its distribution, and that each answer's noise does not depend on the one before.

    `centred` has one number for each answer, uniform on [-1, 1] if the noise is right.
    """
    size = len(centred)
    mean = float(np.mean(bounds.sizes(centred)))
    if bounds.chernoff(mean, size) < _P:
        why = "promises" if mean < 1 else "needs"
        raise ProtocolViolation(f"{size} answers have noise of {mean:.3g} times the scale that the mechanism {why}")
    if bare := bounds.bare(centred, _P):
        raise ProtocolViolation(f"{bare} of {size} answers have no noise")
    if size < 100:
        return
    # On a grid of 2^-20 of the scale one or two of them are equal, but never a tenth.
    if len(np.unique(np.round(np.abs(centred), 12))) < 0.9 * size:
        raise ProtocolViolation("answers of one batch share their noise")
    if distance := bounds.off_law(centred, _P):
        raise ProtocolViolation(
            f"the noise of {size} answers does not have the law of the mechanism: off by {distance:.3g}"
        )
    dependence = float(np.mean(centred[1:] * centred[:-1]))
    if abs(dependence) > math.sqrt(2 * math.log(2 / _P) / (size - 1)):
        raise ProtocolViolation("the noise of an answer depends on the noise of the one before")


def require_noise_everywhere(centred: Array) -> None:
    """Demand noise of its distribution in many batches, shape (batches, models), together and at each position."""
    require_noise(centred.ravel())
    batches, models = centred.shape
    means = np.mean(bounds.sizes(centred), axis=0)
    for position in np.flatnonzero(means < 1):
        if bounds.chernoff(float(means[position]), batches) < _P / models:
            raise ProtocolViolation(
                f"number {position} of {models} has noise of {means[position]:.3g} times its scale, always"
            )


def require_unrelated(one: Result, other: Result) -> None:
    """Demand that two requests share no noise: neither correlated in the same order, nor equal in any order and sign.

    Whole-number noise is only tested for correlation, because some of it is equal by chance.
    """
    if one.uniform is not None and other.uniform is not None:
        size = min(len(one.uniform), len(other.uniform))
        if bounds.is_unlikely_product(2 * one.uniform[:size] - 1, 2 * other.uniform[:size] - 1, _P):
            raise ProtocolViolation("two requests were answered with the same noise, or with noise that goes together")
    if one.discrete:
        return
    assert one.noise is not None, "the tester knows the table"
    assert other.noise is not None, "the tester knows the table"
    _require_unlike(one.noise, other.noise)


def _require_unlike(one: Array, other: Array) -> None:
    known = np.sort(np.abs(one))
    unit = float(known[-1]) * 1e-10
    place = np.searchsorted(known, np.abs(other) - unit)
    shared = known[np.minimum(place, len(known) - 1)] <= np.abs(other) + unit
    if np.mean(shared & (place < len(known))) > 0.5:
        raise ProtocolViolation("two requests were answered with the same noise")


def require_drawn(draws: Array, exact: Array, law: Known) -> None:
    """Demand draws, shape (draws, models), as far from exact gaps as the noise, at scales where no prior matters."""
    models, mean = draws.shape[1], float(np.mean(bounds.sizes(2 * cdf(draws.mean(axis=0) - exact, law) - 1)))
    if np.isnan(draws).any() or isinstance(law, Cauchy) or not _LEAST <= law.scale <= _LITTLE:
        return
    # Similar models are known better together than each by itself.
    spread = draws.std(axis=0) / math.sqrt(law.variance()) * np.array([[1.0], [math.sqrt(models)]])
    if (mean < 1 and bounds.chernoff(mean, models) < _P) or spread[0].max() > _SPREAD or spread[1].min() < 1 / _SPREAD:
        raise ProtocolViolation("draws do not lie as far from the exact gaps, and from each other, as the noise has it")


def _difference(values: Array, inside: Bools, groups: Bytes) -> Array:
    one, zero = inside & (groups == 1), inside & (groups == 0)
    difference: Array = values[:, one].sum(axis=1) / one.sum() - values[:, zero].sum(axis=1) / zero.sum()
    return difference


def _precision(row: Array, labels: Bytes, group: Bools) -> float:
    chosen = group & (row == 1)
    return float(labels[chosen].mean()) if chosen.any() else 0.0
