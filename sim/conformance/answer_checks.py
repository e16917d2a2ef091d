"""Checks that everything in an answer follows from its noisy gaps and from public numbers.

Anybody with an answer can recompute its intervals and probabilities: the noise distribution, the precision and the
metric's range are public. Different ones were made from something that is not public.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from fairwall.arrays import Floats
from fairwall.laws.mechanisms.calibration import metric_range
from fairwall.laws.mechanisms.table import MECHANISM_LAWS
from fairwall.laws.metrics.answer_precision import spacing, written_down
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.metrics.values import part_values
from fairwall.laws.noise.distributions import Gaussian, Laplace
from sim.conformance.calls import ProtocolViolation
from sim.conformance.promise import Array, Known, promise_of, quantile
from sim.conformance.target import DescribedDeployment, KnownPeople

_LEVEL_MISSED = 0.05
"""Probability that an interval misses the exact gap."""

_ALLOWANCE = 1e-3
"""Relative tolerance by which an interval may be too wide."""

_GRID_ALLOWANCE = 2.0**-18
"""Further tolerance per unit of queries over epsilon: noise on a coarse grid is larger, because rounding moves gaps."""

_PROBABILITY_ERROR = 5e-4
"""Tolerance of a probability: for two ways to integrate, and for distributions that differ by `_ALLOWANCE`."""

_SHARES = (0.125, 0.275, 0.425)
"""Shares of a group for which the sampling error is computed, equally likely."""

_PRIOR = ((0.85, 0.1), (0.15, 0.4))
"""The prior on the population's gap, 0.85 N(0, 0.1^2) + 0.15 N(0, 0.4^2): weights and standard deviations."""

_FLOAT32_AND_A_HALF = 27
"""Bits of a float32 and half of its last one, also if that is the last one of a number twice as large."""

_FINEST = 2.0**-36
"""Finest grid that answers may lie on, relative to the noise's scale; float64 noise would lie on none."""

_POINT = 1e-9
"""Width below any interval made by noise."""

_ALIKE, _FARTHER = 1e-3, 16.0
"""Least relative difference of two distributions' widths; largest ratio of a likely interval to all possible gaps."""

INTERVALS = (("low", "high"), ("likely_low", "likely_high"))
"""Fields with the ends of guaranteed intervals, and of likely ones: equal if the noise has a known distribution."""

Ends: TypeAlias = tuple[Array, Array]
"""The low and the high ends of intervals."""

Joint: TypeAlias = Callable[[Array, float, float], Array]
"""Function from gaps of the test set to their density with a population's gap between two numbers."""


@dataclass(frozen=True, eq=False)
class AnswerFields:
    """An answer's numbers for each model, shape (models,); `above` is P(gap > threshold), if there is a threshold."""

    gaps: Array
    low: Array
    high: Array
    above: Array | None


def _blank(answer: Any) -> Any:
    """Return counts by group, or a part of a release, with zeros for noisy numbers."""
    kept = type(answer)()
    kept.CopyFrom(answer)
    if kept.DESCRIPTOR.name == "ByGroupResponse":
        arrays = [each.counts for each in (*kept.release.tables, *kept.release.rows)]
        for array in [*arrays, *([kept.release.sums.sums] if kept.release.HasField("sums") else [])]:
            array.data = bytes(len(array.data))
    elif kept.encoded_chunk:
        kept.encoded_chunk = bytes(len(kept.encoded_chunk))
    return kept


def require_plain(name: str, values: Array) -> None:
    """Demand that numbers have a single form: gaps of 0 have no sign, and all NaNs have the same bits."""
    bits = values.view(np.uint64)
    if name == "gaps" and (bits == np.float64(-0.0).view(np.uint64)).any():
        raise ProtocolViolation(f"{name}: a zero has a sign")
    unknown = bits[np.isnan(values)] & np.uint64(2**63 - 1)
    if (unknown != np.float64(np.nan).view(np.uint64)).any() or len(np.unique(bits[np.isnan(values)])) > 1:
        raise ProtocolViolation(f"{name}: a NaN has bits of its own")


def require_written_down(gaps: Array, about: DescribedDeployment) -> None:
    """Demand that answers are no more precise than the policy says."""
    known = gaps[~np.isnan(gaps)]
    if not np.array_equal(written_down(known, about.precision), known):
        raise ProtocolViolation(f"answers are written down more precisely than {about.precision!r}")


def require_ends_written_down(low: Array, high: Array, about: DescribedDeployment, metric: str) -> None:
    """Demand that intervals' ends are no more precise than answers, or half of a last digit more."""
    if about.precision == "float64":
        return
    ends = np.concatenate([low, high])
    ends = ends[~np.isnan(ends) & ~np.isin(ends, metric_range(metric))]
    if about.precision == "float32":
        mantissas = np.frexp(ends)[0] * 2.0**_FLOAT32_AND_A_HALF
        plain = np.array_equal(mantissas, np.rint(mantissas))
    else:
        halves = ends * 2 * 10.0**about.precision
        plain = np.allclose(halves, np.rint(halves), rtol=0, atol=1e-12 * 10.0**about.precision)
    if not plain:
        raise ProtocolViolation(f"the ends of intervals are written down more precisely than {about.precision!r}")


def require_recomputed(
    answers: AnswerFields,
    about: DescribedDeployment,
    people: KnownPeople,
    metric: str,
    predictions: Array,
    epsilon: float,
    threshold: float | None,
) -> None:
    """Demand that intervals and probabilities follow from what was released."""
    public = MECHANISM_LAWS.get(about.mechanism)
    has_none = public is not None and public.interval is None and public.noise_on != "any"
    if has_none or about.bounding == "truncate":
        if not (np.isnan(answers.low).all() and np.isnan(answers.high).all()):
            raise ProtocolViolation(f"an answer of {about.mechanism} has an interval, of which it cannot know")
        if answers.above is not None and not np.isnan(answers.above).all():
            raise ProtocolViolation(f"an answer of {about.mechanism} has a probability, of which it cannot know")
        return
    is_added = public is not None and public.interval is not None and public.interval.is_added
    promised = promise_of(about, people, metric, len(answers.gaps), epsilon) if is_added else None
    if promised is None or np.isnan(answers.gaps).any():
        return
    law = promised.law
    _require_grid(answers.gaps, about, law)
    if np.isnan(answers.low).all() and np.isnan(answers.high).all():
        return
    allowance = _ALLOWANCE + _GRID_ALLOWANCE * len(answers.gaps) / epsilon
    reach = _reach(answers, about, metric, quantile(law, _LEVEL_MISSED), allowance)
    if answers.above is not None and about.bounding == "none" and isinstance(law, Laplace | Gaussian):
        found = find_metric(metric)
        if len(found.parts) != 1:
            if not np.isnan(answers.above).all():
                raise ProtocolViolation(f"P(gap > threshold) is told of {metric}, whose sampling error is not known")
            return
        assert threshold is not None
        ((members, values),) = part_values(metric, predictions, people.labels)
        scaled = type(law)(law.scale * reach / quantile(law, _LEVEL_MISSED))
        expected = probabilities(answers.gaps, scaled, values[:, members], threshold, found.absolute)
        worst = float(np.max(np.abs(answers.above - expected)))
        if not worst <= _PROBABILITY_ERROR:
            raise ProtocolViolation(f"P(gap > threshold) is {worst:.2g} away from what follows from the answer")


def require_possible(
    gaps: Array,
    ends: Sequence[Ends],
    about: DescribedDeployment,
    people: KnownPeople,
    metric: str,
    predictions: Array,
    by: str,
) -> None:
    """Demand that intervals exist where they may, contain their answers, and contain no impossible gap.

    `ends` are those of the guaranteed intervals, then of the likely ones; `by` is the mechanism that answered.
    """
    law, ((low, high), (likely_low, likely_high)) = MECHANISM_LAWS.get(by), ends
    if law is None or about.bounding == "truncate":
        return
    if law.interval is None or law.interval.is_posterior:
        if not np.isnan([low, high]).all():
            raise ProtocolViolation(f"answers of {by} have a guaranteed interval, and nothing is guaranteed of them")
    elif np.isnan([low, high])[:, ~np.isnan(gaps)].any():
        raise ProtocolViolation(f"answers of {by} have no guaranteed interval")
    near = np.clip(gaps, *metric_range(metric))
    off = _POINT + 2 * spacing(np.maximum(np.abs(near), 1.0), about.precision)
    for least, most in ends:
        if (((near < least - off) | (near > most + off)) & (most - least > _POINT)).any():
            raise ProtocolViolation("an answer lies outside of its interval")
    if law.noise_on != "attributes" and ((likely_low < low - off) | (likely_high > high + off)).any():
        raise ProtocolViolation("a likely interval reaches beyond the guaranteed one")
    if law.noise_on in ("gaps", "blocks", "nothing", "choices") or not find_metric(metric).of_means:
        return
    inside = [
        np.sort(values[:, members], axis=1) for members, values in part_values(metric, predictions, people.labels)
    ]
    # No gap is larger than the range of its predictions; a sum of two, than both ranges.
    farthest, likely, sure = off + sum(np.ptp(each, axis=1) for each in inside), likely_high - likely_low, high - low
    if law.noise_on == "attributes":
        # Chernoff's bound differs from a normal distribution's reach, unless both are cut to the possible gaps, which
        # are at least as wide as halves of the people may differ.
        halves = sum(each[:, -(each.shape[1] // 2) :].mean(axis=1) - each.mean(axis=1) for each in inside)
        far = (np.abs(sure / likely - 1) < _ALIKE) & (sure < halves) & (likely > _POINT)
    elif law.interval is not None and law.interval.is_posterior:
        far = likely > _FARTHER * farthest
    else:
        far = np.maximum(-low, high) > farthest
    if far.any():
        raise ProtocolViolation(
            "an interval is wider than its model's predictions have it, or guaranteed where it is likely"
        )


def _require_grid(gaps: Array, about: DescribedDeployment, law: Known) -> None:
    if about.precision != "float64":
        return
    step = law.scale * _FINEST
    if step < np.finfo(np.float64).eps:
        return
    steps = gaps / 2.0 ** math.floor(math.log2(step))
    # An answer at the end of the metric's range is that end.
    if not np.array_equal(np.rint(steps), steps):
        raise ProtocolViolation("answers do not lie on a grid: their last bits tell what the noise was to hide")


def _reach(
    answers: AnswerFields, about: DescribedDeployment, metric: str, least_reach: float, allowance: float
) -> float:
    """Return how far intervals reach on either side, the same for all answers of a batch."""
    least, most = metric_range(metric)
    if not ((answers.low <= answers.high) & (answers.low >= least) & (answers.high <= most)).all():
        raise ProtocolViolation("an interval is upside down, or leaves the metric's range")
    loose = 2 * spacing(np.abs(answers.gaps) + least_reach, about.precision)
    if about.bounding != "none":
        # Where answers were moved to the range's ends, the middles of their intervals were not.
        inside = (answers.gaps > least) & (answers.gaps < most)
    else:
        inside = np.ones(answers.gaps.shape, np.bool_)
    reaches = [
        side[inside & whole]
        for side, whole in (
            (answers.gaps - answers.low, (answers.low > least) & (answers.low < most)),
            (answers.high - answers.gaps, (answers.high > least) & (answers.high < most)),
        )
    ]
    known, worst = np.concatenate(reaches), float(np.max(loose))
    reach = float(np.median(known)) if known.size else least_reach
    if not least_reach * (1 - 1e-9) - worst <= reach <= least_reach * (1 + allowance) + 2 * worst:
        raise ProtocolViolation(f"an interval reaches {reach:.6g} from its answer; 95% needs {least_reach:.6g}")
    # If every end was cut off, their reach cannot be seen.
    slack = 2 * worst if known.size else 2 * worst + least_reach * allowance
    for end, side in ((answers.low, -1.0), (answers.high, 1.0)):
        nearest, farthest = (np.clip(answers.gaps + side * (reach + off), least, most) for off in (-slack, slack))
        if ((end < np.minimum(nearest, farthest)) | (end > np.maximum(nearest, farthest)))[inside].any():
            raise ProtocolViolation("an interval does not lie around its answer: it tells what the noise was to hide")
    return reach


def probabilities(answers: Array, law: Laplace | Gaussian, values: Array, threshold: float, absolute: bool) -> Array:
    """Return P(the population's gap > threshold) for each answer, as docs/mechanisms.md defines it.

    `law` is the noise distribution. `values`, shape (models, people), are what the metric averages over its stratum;
    with `absolute` gaps have lost their sign.
    """
    people = values.shape[1]
    variances = (people * values.var(axis=1) + 0.25) / (people + 1)
    found = []
    for answer, variance in zip(answers.tolist(), variances.tolist(), strict=True):
        sigmas = [math.sqrt(variance / (people * share * (1 - share))) for share in _SHARES]

        def joint(gaps: Array, low: float, high: float, sigmas: list[float] = sigmas) -> Array:
            return sum(
                (
                    weight * _normal(gaps / math.hypot(of_prior, sigma)) / math.hypot(of_prior, sigma)
                    * _between(gaps / (1 + (sigma / of_prior) ** 2), sigma / math.hypot(1, sigma / of_prior), low, high)
                    for weight, of_prior in _PRIOR
                    for sigma in sigmas
                ),
                np.zeros(gaps.shape),
            )  # fmt: skip

        found.append(_probability(answer, law, min(sigmas), threshold, absolute, joint))
    return np.array(found)


def _probability(
    answer: float, law: Laplace | Gaussian, sigma: float, threshold: float, absolute: bool, joint: Joint
) -> float:
    """Return the probability for one answer, integrated over the test set's gap with `joint` as its density."""
    least = 0.0 if absolute else -1.0
    at = min(max(threshold, least), 1.0)
    nodes, weights = _nodes()
    near = 2.0 ** np.arange(-6, 8)
    turns = ((answer, law.scale), (at, sigma), (-at, sigma), (0.0, sigma))
    around = [place + side * width * near for place, width in turns for side in (-1, 1)]
    cuts = np.unique(np.clip(np.concatenate([*around, [answer, at, -at, 0.0, least, 1.0]]), least, 1.0))
    half, middle = np.diff(cuts) / 2, (cuts[1:] + cuts[:-1]) / 2
    gaps = (middle[:, None] + half[:, None] * nodes).ravel()
    logs = law.log_density(answer - gaps)
    mass = np.exp(logs - logs.max()) * (half[:, None] * weights).ravel()
    above = joint(gaps, at, 1.0) + (joint(gaps, -1.0, -at) if absolute else 0.0)
    return float(mass @ above) / float(mass @ joint(gaps, -1.0, 1.0))


@lru_cache(maxsize=1)
def _nodes() -> tuple[Array, Array]:
    return np.polynomial.legendre.leggauss(12)


def _normal(numbers: Array) -> Array:
    return np.exp(-0.5 * numbers**2)


def _between(middles: Array, deviation: float, low: float, high: float) -> Array:
    from scipy.special import ndtr

    between: Array = ndtr((high - middles) / deviation) - ndtr((low - middles) / deviation)
    return between


def without_noise(answer: Any, about: DescribedDeployment) -> Any:
    """Return an answer with noisy numbers set to 0; their number, type and, unless it is noisy too, NaN stay."""
    if answer.DESCRIPTOR.name != "AuditResponse":
        return _blank(answer)
    public = MECHANISM_LAWS.get(about.mechanism)
    may_be_nan = public is not None and public.may_be_nan
    kept = type(answer)()
    kept.CopyFrom(answer)
    for name in ("gaps", *itertools.chain(*INTERVALS), "probability_above"):
        if not kept.HasField(name):
            continue
        array = getattr(kept, name)
        values: Floats = np.frombuffer(array.data, "<f8")
        silent = np.isnan(values) & (not may_be_nan)
        array.data = np.where(silent, np.nan, 0.0).tobytes()
    return kept
