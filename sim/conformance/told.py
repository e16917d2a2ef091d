"""What an answer tells beside its noisy gaps: that it is made of them and of public numbers, and of nothing else.

Whoever has an answer can work out its intervals and probabilities again: the law of the noise is public, and so are the
precision and the metric's range. What is other than that was made of something that is not public.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.bounding import metric_range
from fairwall.laws.mechanisms import MECHANISM_LAWS
from fairwall.laws.metric import find_metric
from fairwall.laws.noise import Gaussian, Laplace
from fairwall.laws.precision import spacing, written_down
from fairwall.laws.values import part_values
from sim.conformance.calls import Violation
from sim.conformance.promise import Array, Known, promise_of, quantile
from sim.conformance.target import Deployment, People

_LEVEL_MISSED = 0.05
"""How often an interval may miss the exact gap."""

_ALLOWANCE = 1e-3
"""By how much of itself an interval may reach farther than it must."""

_GRID_ALLOWANCE = 2.0**-18
"""The same for each unit of queries over epsilon: noise on a coarser grid is enlarged, since rounding moves gaps."""

_PROBABILITY_ERROR = 5e-4
"""By how much two ways to integrate may differ, and two laws that differ by that allowance."""

_SHARES = (0.125, 0.275, 0.425)
"""What shares of a group a sampling error is told for, each as likely."""

_PRIOR = ((0.85, 0.1), (0.15, 0.4))
"""The prior on the population's gap, 0.85 N(0, 0.1^2) + 0.15 N(0, 0.4^2): weights and standard deviations."""

_FLOAT32_AND_A_HALF = 27
"""So many bits a float32 has and half of its last one, also where that is the last of a number twice as large."""

_FINEST = 2.0**-36
"""Of the noise's scale, how fine a grid answers may lie on: float64 noise would lie on none."""

_POINT = 1e-9
"""No interval that noise has made is as narrow."""

_ALIKE, _FARTHER = 1e-3, 16.0
"""How near widths of two laws do not come; how many times as wide a believed interval may be as all that can be."""

INTERVALS = (("low", "high"), ("likely_low", "likely_high"))
"""The ends of the guaranteed intervals, and of the likely ones: where noise has a known law these are the same."""

Ends: TypeAlias = tuple[Array, Array]
"""The low and the high ends of intervals."""

Joint: TypeAlias = Callable[[Array, float, float], Array]
"""From gaps of the test set to how likely they come with gaps of the population between two numbers."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What is told of each model, shape (models,) each; `above` where a threshold was given."""

    gaps: Array
    low: Array
    high: Array
    above: Array | None


def _blank(answer: Any) -> Any:
    """Return counts by group, or a part of a release, with zeros for what is noisy."""
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
    """Demand that numbers have one form: 0 has no sign, and what is no number is always the same bits."""
    bits = values.view(np.uint64)
    if name == "gaps" and (bits == np.float64(-0.0).view(np.uint64)).any():
        raise Violation(f"{name}: a zero has a sign")
    unknown = bits[np.isnan(values)] & np.uint64(2**63 - 1)
    if (unknown != np.float64(np.nan).view(np.uint64)).any() or len(np.unique(bits[np.isnan(values)])) > 1:
        raise Violation(f"{name}: a NaN has bits of its own")


def require_written_down(gaps: Array, about: Deployment) -> None:
    """Demand that answers are as precise as the policy has them, and no more precise."""
    known = gaps[~np.isnan(gaps)]
    if not np.array_equal(written_down(known, about.precision), known):
        raise Violation(f"answers are written down more precisely than {about.precision!r}")


def require_ends_written_down(low: Array, high: Array, about: Deployment, metric: str) -> None:
    """Demand that the ends of intervals are no more precise than answers: half of a last digit at most."""
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
        raise Violation(f"the ends of intervals are written down more precisely than {about.precision!r}")


def require_recomputed(
    told: Answers,
    about: Deployment,
    people: People,
    metric: str,
    predictions: Array,
    epsilon: float,
    threshold: float | None,
) -> None:
    """Demand that intervals and probabilities are those that follow from what was released."""
    public = MECHANISM_LAWS.get(about.mechanism)
    has_none = public is not None and public.interval is None and public.noise_on != "any"
    if has_none or about.bounding == "truncate":
        if not (np.isnan(told.low).all() and np.isnan(told.high).all()):
            raise Violation(f"an answer of {about.mechanism} has an interval, of which it cannot know")
        if told.above is not None and not np.isnan(told.above).all():
            raise Violation(f"an answer of {about.mechanism} has a probability, of which it cannot know")
        return
    is_added = public is not None and public.interval is not None and public.interval.is_added
    promised = promise_of(about, people, metric, len(told.gaps), epsilon) if is_added else None
    if promised is None or np.isnan(told.gaps).any():
        return
    law = promised.law
    _require_grid(told.gaps, about, law)
    if np.isnan(told.low).all() and np.isnan(told.high).all():
        return
    allowance = _ALLOWANCE + _GRID_ALLOWANCE * len(told.gaps) / epsilon
    reach = _reach(told, about, metric, quantile(law, _LEVEL_MISSED), allowance)
    if told.above is not None and about.bounding == "none" and isinstance(law, Laplace | Gaussian):
        found = find_metric(metric)
        if len(found.parts) != 1:
            if not np.isnan(told.above).all():
                raise Violation(f"P(gap > threshold) is told of {metric}, whose sampling error is not known")
            return
        assert threshold is not None
        ((members, values),) = part_values(metric, predictions, people.labels)
        scaled = type(law)(law.scale * reach / quantile(law, _LEVEL_MISSED))
        expected = probabilities(told.gaps, scaled, values[:, members], threshold, found.absolute)
        worst = float(np.max(np.abs(told.above - expected)))
        if not worst <= _PROBABILITY_ERROR:
            raise Violation(f"P(gap > threshold) is {worst:.2g} away from what follows from the answer")


def require_possible(
    gaps: Array, ends: Sequence[Ends], about: Deployment, people: People, metric: str, predictions: Array, by: str
) -> None:
    """Demand that intervals are told where they may be, hold their answers, and hold no gap that nobody can have.

    The guaranteed ones first, then the likely ones; answered `by` a mechanism.
    """
    law, ((low, high), (likely_low, likely_high)) = MECHANISM_LAWS.get(by), ends
    if law is None or about.bounding == "truncate":
        return
    if law.interval is None or law.interval.is_posterior:
        if not np.isnan([low, high]).all():
            raise Violation(f"answers of {by} have a guaranteed interval, and nothing is guaranteed of them")
    elif np.isnan([low, high])[:, ~np.isnan(gaps)].any():
        raise Violation(f"answers of {by} have no guaranteed interval")
    near = np.clip(gaps, *metric_range(metric))
    off = _POINT + 2 * spacing(np.maximum(np.abs(near), 1.0), about.precision)
    for least, most in ends:
        if (((near < least - off) | (near > most + off)) & (most - least > _POINT)).any():
            raise Violation("an answer lies outside of its interval")
    if law.noise_on != "attributes" and ((likely_low < low - off) | (likely_high > high + off)).any():
        raise Violation("a likely interval reaches beyond the guaranteed one")
    if law.noise_on in ("gaps", "blocks", "nothing", "choices") or not find_metric(metric).of_means:
        return
    inside = [
        np.sort(values[:, members], axis=1) for members, values in part_values(metric, predictions, people.labels)
    ]
    # No gap is larger than predictions differ: of a sum of two, than both do.
    farthest, likely, sure = off + sum(np.ptp(each, axis=1) for each in inside), likely_high - likely_low, high - low
    if law.noise_on == "attributes":
        # Chernoff's bound is another one than a normal law's reach, but where both are cut to what can be: that is at
        # least as wide as halves of the people may be apart.
        halves = sum(each[:, -(each.shape[1] // 2) :].mean(axis=1) - each.mean(axis=1) for each in inside)
        far = (np.abs(sure / likely - 1) < _ALIKE) & (sure < halves) & (likely > _POINT)
    elif law.interval is not None and law.interval.is_posterior:
        far = likely > _FARTHER * farthest
    else:
        far = np.maximum(-low, high) > farthest
    if far.any():
        raise Violation("an interval is wider than its model's predictions have it, or guaranteed where it is likely")


def _require_grid(gaps: Array, about: Deployment, law: Known) -> None:
    if about.precision != "float64":
        return
    step = law.scale * _FINEST
    if step < np.finfo(np.float64).eps:
        return
    steps = gaps / 2.0 ** math.floor(math.log2(step))
    # An answer at the end of the metric's range is that end.
    if not np.array_equal(np.rint(steps), steps):
        raise Violation("answers do not lie on a grid: their last bits tell what the noise was to hide")


def _reach(told: Answers, about: Deployment, metric: str, least_reach: float, allowance: float) -> float:
    """Return how far intervals reach on either side; the same for every answer of a batch."""
    least, most = metric_range(metric)
    if not ((told.low <= told.high) & (told.low >= least) & (told.high <= most)).all():
        raise Violation("an interval is upside down, or leaves the metric's range")
    loose = 2 * spacing(np.abs(told.gaps) + least_reach, about.precision)
    if about.bounding != "none":
        # Where answers were moved to the range's ends, the middles of their intervals were not.
        inside = (told.gaps > least) & (told.gaps < most)
    else:
        inside = np.ones(told.gaps.shape, np.bool_)
    reaches = [
        side[inside & whole]
        for side, whole in (
            (told.gaps - told.low, (told.low > least) & (told.low < most)),
            (told.high - told.gaps, (told.high > least) & (told.high < most)),
        )
    ]
    known, worst = np.concatenate(reaches), float(np.max(loose))
    reach = float(np.median(known)) if known.size else least_reach
    if not least_reach * (1 - 1e-9) - worst <= reach <= least_reach * (1 + allowance) + 2 * worst:
        raise Violation(f"an interval reaches {reach:.6g} from its answer; 95% needs {least_reach:.6g}")
    # Where every end was cut off nobody sees how far they reached.
    slack = 2 * worst if known.size else 2 * worst + least_reach * allowance
    for end, side in ((told.low, -1.0), (told.high, 1.0)):
        nearest, farthest = (np.clip(told.gaps + side * (reach + off), least, most) for off in (-slack, slack))
        if ((end < np.minimum(nearest, farthest)) | (end > np.maximum(nearest, farthest)))[inside].any():
            raise Violation("an interval does not lie around its answer: it tells what the noise was to hide")
    return reach


def probabilities(answers: Array, law: Laplace | Gaussian, values: Array, threshold: float, absolute: bool) -> Array:
    """Return P(the population's gap > threshold) of each answer, as docs/mechanisms.md has it.

    The law is that of the noise. `values`, shape (models, people), are what the metric averages about its stratum; gaps
    of an `absolute` one have lost their sign.
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
    """Integrate over the test set's gap; `joint` is its density with the population's between two numbers."""
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


def without_noise(answer: Any, about: Deployment) -> Any:
    """Return an answer with only what may not depend on who the people are: all but the noisy numbers.

    Of those, how many there are, of which type, and which of them are no numbers, where that is not noisy as well.
    """
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
        values: NDArray[np.float64] = np.frombuffer(array.data, "<f8")
        silent = np.isnan(values) & (not may_be_nan)
        array.data = np.where(silent, np.nan, 0.0).tobytes()
    return kept
