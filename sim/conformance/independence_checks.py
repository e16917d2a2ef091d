r"""Test whether noise depends on anything, among answers to any requests.

Every answer became one number that is uniform if its noise has its distribution (`sim.conformance.promise`,
`sim.conformance.group_law`, `sim.conformance.local_law`), whatever was requested. The numbers of every two
circumstances together ("bob's, of abs_eo"; "the last model, of more than 128") are tested: their size, their sign, and
whether there is noise at all. Noise that is wrong in one corner is wrong in a cell of two.

With c = 2u - 1, size and shape are tested as in `sim.conformance.bounds`; c has mean 0 and lies in [-1, 1] (Bernstein's
bound), |c| > 1 - q with probability q (Chernoff's). In a batch's numbers, neighbours at distances up to eight and
halves are tested; for single answers, the series that they make: products c_i c_{i+k} have mean 0 and variance 1/9, and
those with one parity of i // k share no factor. The sum of a batch's numbers, made normal, over its deviation, is
normal, and its square neither always near 0 nor far above 1. Any two requests that share numbers are found, and so are
more equal numbers than come by chance: to move one of N numbers changes the count of near neighbours by two at most
(McDiarmid). The last bits of each answer are tested too.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairwall.arrays import Ints
from sim.conformance import bounds
from sim.conformance.calls import ProtocolViolation
from sim.conformance.promise import Array

_P = 1e-13
"""Probability that one check accuses a sound server; a survey has some ten thousand checks."""

_LAGS = 8

_TAILS = (0.2, 0.02, 0.002)
"""Probabilities of the tails whose frequencies are tested."""

_BITS = 8
"""Last bits of an answer that are tested."""

_WIDE = 3e-6
"""Largest distance between two numbers of the same draw, on two unlike grids of 2^-20 of the scale."""

_SHOWS_A_GRID = 48
"""Answers that show their grid: they are not all multiples of twice its step, but for once in 2^48 times."""


@dataclass(frozen=True, eq=False)
class AnsweredBatch:
    """A request's circumstances, and each answer's number c, uniform on [-1, 1], its exact gap, and itself.

    `gridded` answers are not rounded, and lie on a grid that is fine beside the noise.
    """

    asked: dict[str, Any]
    centred: Array
    exact: Array
    answers: Array
    gridded: bool = False


def require_nothing_depends(batches: list[AnsweredBatch]) -> None:
    """Demand that the noise of batches has its distribution, whatever was requested, and that no two share any."""
    _require_law(batches)
    _require_independence(batches)
    _require_sums(batches)
    _require_unlike(batches)
    _require_last_bits(batches)


def _require_law(batches: list[AnsweredBatch]) -> None:
    centred = np.concatenate([batch.centred for batch in batches])
    sizes = bounds.sizes(centred)
    # Signs of unfair models' gaps: noise may lean towards them, or away.
    signs = np.sign(np.concatenate([batch.exact for batch in batches]))
    circumstances = _circumstances(batches)
    _require_cell("all answers", centred, sizes, signs)
    for name, (labels, codes) in circumstances.items():
        for code in np.unique(codes):
            here = codes == code
            _require_cell(f"{name} {labels[code]}", centred[here], sizes[here], signs[here])
    for one, other in itertools.combinations(circumstances, 2):
        (labels, codes), (others, other_codes) = circumstances[one], circumstances[other]
        both = codes * len(others) + other_codes
        order = np.argsort(both, kind="stable")
        values, starts = np.unique(both[order], return_index=True)
        for value, here in zip(values, np.split(order, starts[1:]), strict=True):
            place = f"{one} {labels[value // len(others)]}, {other} {others[value % len(others)]}"
            _require_cell(place, centred[here], sizes[here], signs[here])


def _circumstances(batches: list[AnsweredBatch]) -> dict[str, tuple[list[Any], Ints]]:
    """Return the possible circumstances by name: their labels, and the index of each answer's label."""
    found = {}
    lengths = [len(batch.centred) for batch in batches]
    for name in batches[0].asked:
        labels = sorted({batch.asked[name] for batch in batches}, key=str)
        codes = np.repeat([labels.index(batch.asked[name]) for batch in batches], lengths)
        found[name] = (labels, codes)
    places = np.concatenate([np.arange(length) for length in lengths])
    ends = np.concatenate([np.arange(length)[::-1] for length in lengths])
    exact = np.concatenate([batch.exact for batch in batches])
    edges = (0, 1, 2, 3, 4, 5, 8, 16, 64, 100, 128, 256)
    found["place"] = ([f"from {edge}" for edge in edges], np.searchsorted(edges, places, side="right") - 1)
    found["place from the end"] = (["last", "last but one", "before"], np.minimum(ends, 2))
    found["parity"] = (["even", "odd"], places % 2)
    found["sign of the gap"] = (["-", "0", "+"], np.sign(exact).astype(np.int64) + 1)
    levels = (0.0, 1e-9, 0.05, 0.1, 0.2, 0.5)
    found["size of the gap"] = (
        [f"from {level:g}" for level in levels],
        np.searchsorted(levels, np.abs(exact), side="right") - 1,
    )
    return found


def _require_cell(place: str, centred: Array, sizes: Array, signs: Array) -> None:
    size = len(sizes)
    mean = float(sizes.mean())
    if (missing := bounds.chernoff(mean, size)) < _P:
        raise ProtocolViolation(
            f"{place}: {size} answers have noise of {mean:.3g} times the scale that the mechanism promises "
            f"(with a probability of {missing:.1g})"
        )
    if bare := bounds.bare(centred, _P):
        raise ProtocolViolation(f"{place}: {bare} of {size} answers have no noise")
    if bounds.is_unlikely_sum(float(centred.sum()), size / 3, _P):
        raise ProtocolViolation(f"{place}: the noise of {size} answers leans to one side")
    unfair = int(np.count_nonzero(signs))
    if unfair and bounds.is_unlikely_sum(float(centred @ signs), unfair / 3, _P):
        raise ProtocolViolation(
            f"{place}: the noise of {unfair} answers leans to the side of the exact gap, or away from it"
        )
    if size < 100:
        return
    for tail in _TAILS:
        far = int((np.abs(centred) > 1 - tail).sum())
        if size * bounds.divergence(far / size, tail) > math.log(2 / _P):
            raise ProtocolViolation(f"{place}: {far} of {size} answers have noise that one of {1 / tail:g} should have")
    if off := bounds.off_law(centred, _P):
        raise ProtocolViolation(f"{place}: the noise of {size} answers does not have its law: off by {off:.3g}")


def _require_independence(batches: list[AnsweredBatch]) -> None:
    """Demand that neighbours in batches, and successive batches, at the same place too, are independent."""
    several = [batch.centred for batch in batches if len(batch.centred) > 1]
    firsts: dict[str, Array] = {"answers one after another": np.array([batch.centred[0] for batch in batches])}
    for caller in sorted({batch.asked["caller"] for batch in batches}):
        mine = [batch for batch in batches if batch.asked["caller"] == caller]
        firsts[f"{caller}'s answers one after another"] = np.array([batch.centred[0] for batch in mine])
        for one, other in (("first", 0), ("last", -1)):
            firsts[f"the {one} answers of {caller}'s batches"] = np.array([batch.centred[other] for batch in mine])
    for name, series in firsts.items():
        for lag in range(1, _LAGS + 1):
            _require_no_product(f"{name}, {lag} apart", [series], lag)
    for lag in range(1, _LAGS + 1):
        _require_no_product(f"answers of one batch, {lag} apart", several, lag)
    halves = [series[: len(series) // 2] * series[len(series) - len(series) // 2 :] for series in several]
    mirrored = [(series * series[::-1])[: len(series) // 2] for series in several]
    following = [
        one.centred[:common] * other.centred[:common]
        for one, other in itertools.pairwise(batches)
        if (common := min(len(one.centred), len(other.centred)))
    ]
    for name, products in (
        ("the halves of a batch", halves),
        ("a batch and itself backwards", mirrored),
        ("two batches one after another", following[::2]),
        ("two batches one after another", following[1::2]),
    ):
        _require_mean_nought(f"{name}: noise", np.concatenate(products) if products else np.empty(0))
    largest = [np.abs(series) - 0.5 for series in several]
    for lag in (1, 2):
        _require_no_product(f"sizes of noise in one batch, {lag} apart", [2 * series for series in largest], lag)


def _require_no_product(name: str, many: list[Array], lag: int) -> None:
    products = [series[lag:] * series[:-lag] for series in many if len(series) > lag]
    if not products:
        return
    parities = np.concatenate([np.arange(len(each)) // lag % 2 for each in products])
    whole = np.concatenate(products)
    for parity in (0, 1):
        _require_mean_nought(name, whole[parities == parity])


def _require_mean_nought(name: str, products: Array) -> None:
    # Products of two numbers that are uniform on [-1, 1] have variance 1/9.
    if products.size and bounds.is_unlikely_sum(float(products.sum()), products.size / 9, _P):
        raise ProtocolViolation(f"{name}: one depends on the other")


def _require_sums(batches: list[AnsweredBatch]) -> None:
    """Demand that sums of a batch's numbers, made normal, are as wide as sums of independent ones."""
    from scipy.special import ndtri

    scores = [ndtri(np.clip((1 + batch.centred) / 2, 1e-12, 1 - 1e-12)) for batch in batches if len(batch.centred) >= 8]
    for name, sign in (("the sum", 1.0), ("the alternating sum", -1.0)):
        sums = np.array([float(each @ sign ** np.arange(len(each))) / math.sqrt(len(each)) for each in scores])
        if len(sums) < 20:
            continue
        mean = float(np.mean(sums**2))  # of squares of standard normal numbers: Chernoff's bound
        if len(sums) / 2 * (mean - 1 - math.log(mean)) > math.log(1 / _P):
            raise ProtocolViolation(f"{name} of a batch's noise is {math.sqrt(mean):.2g} times as wide as it should be")


def _require_unlike(batches: list[AnsweredBatch]) -> None:
    """Demand that no two batches share numbers, and that none has a number twice."""
    numbers = np.abs(np.concatenate([batch.centred for batch in batches]))
    again = int(np.count_nonzero(np.diff(np.sort(numbers)) < _WIDE))
    if again > bounds.pairs_at_most(len(numbers), _WIDE, _P):
        raise ProtocolViolation(f"{again} of {len(numbers)} noises have been there before")
    owners = np.repeat(np.arange(len(batches)), [len(batch.centred) for batch in batches])
    order = np.argsort(numbers)
    shared: dict[tuple[int, int], int] = {}
    for apart in (1, 2, 3):
        near = np.flatnonzero(numbers[order[apart:]] - numbers[order[:-apart]] < _WIDE)
        for one, other in zip(owners[order[near]].tolist(), owners[order[near + apart]].tolist(), strict=True):
            pair = (min(one, other), max(one, other))
            shared[pair] = shared.get(pair, 0) + 1
    for (one, other), count in shared.items():
        expected = 2 * _WIDE * len(batches[one].centred) * len(batches[other].centred)
        if count >= 2 and bounds.poisson(count, expected) < _P:
            both = "two requests share" if one != other else "answers of one batch share"
            raise ProtocolViolation(f"{both} {count} of their noises")


def _require_last_bits(batches: list[AnsweredBatch]) -> None:
    """Demand that the last bits of answers depend neither on the exact gap nor on the place."""
    found, steps = [], dict[tuple[Any, ...], float]()
    for batch in batches:
        if len(batch.answers) < _SHOWS_A_GRID or not batch.gridded:
            continue
        step = _step_of(batch.answers)
        public = tuple(batch.asked[name] for name in ("deployment", "metric", "models", "epsilon"))
        if steps.setdefault(public, step) != step:
            raise ProtocolViolation("two batches that differ in nothing public lie on unlike grids")
        own = _bits(np.rint(batch.answers / step))
        found.append((own, _bits(np.rint(batch.exact / step)), batch))
    if not found:
        return
    whole = np.concatenate([bits for bits, _, _ in found])
    exact = np.concatenate([bits for _, bits, _ in found])
    same_place = [
        one[0][:common] * other[0][:common]
        for one, other in itertools.pairwise(found)
        for common in [min(len(one[0]), len(other[0]))]
    ]
    looks = {
        "are not even": whole,
        "are those of the exact gap": whole * exact,
        "are those of the answer before": np.concatenate([bits[1:] * bits[:-1] for bits, _, _ in found]),
        "depend on its place": np.concatenate(same_place) if same_place else np.empty((0, _BITS)),
        "depend on one another": whole[:, 1:] * whole[:, :-1],
    }
    for what, signs in looks.items():
        for size, total in ((len(signs), float(total)) for total in np.abs(signs.sum(axis=0))):
            if size and total**2 / (2 * size) > math.log(2 / _P):
                raise ProtocolViolation(f"the last bits of an answer {what}")


def _step_of(answers: Array) -> float:
    """Return the largest power of two of which all answers are multiples."""
    steps = answers[answers != 0]
    mantissas, exponents = np.frexp(steps)
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    return (
        float(np.ldexp(1.0, (exponents - 53 + np.log2(whole & -whole).astype(np.int64)).min())) if len(steps) else 1.0
    )


def _bits(steps: Array) -> Array:
    """Return the last bits of whole numbers as -1 and 1, shape (numbers, bits)."""
    whole = steps.astype(np.int64)
    return np.stack([2.0 * (whole >> bit & 1) - 1 for bit in range(_BITS)], axis=1)
