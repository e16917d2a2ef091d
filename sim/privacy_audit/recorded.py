"""A noise source that records its calls, and can repeat the outputs of another run.

If a second run gets the noisy numbers of the first one, everything it does with them must be the same: only the values
passed to the noise may differ. The likelihood ratio of the same numbers then follows, draw by draw, from these values
and the scale; the cost of a batch of draws follows by composition.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partialmethod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compliance.noise.sampling import STEPS_MAX, Noise
from fairwall.arrays import Bools, Floats, Ints
from fairwall.laws.mechanisms.calibration import cauchy_loss
from fairwall.laws.noise.gaussian import gaussian_epsilon

Place: TypeAlias = tuple[str, int]
"""A file name and a line number."""

NUMBERS = ("laplace", "gaussian", "cauchy", "cube")
"""Kinds of calls that add noise to numbers; their outputs may be any number on the grid."""

_XOR = (np.bitwise_xor, np.logical_xor, np.not_equal)


@dataclass(frozen=True, eq=False)
class NoiseCall:
    """One call of the noise source.

    Parameters
    ----------
    kind : the noise method; ``turned`` for attributes flipped by coins, ``balanced`` and ``ball`` for counts by group.
    public : inputs that must not depend on the secret: the shape and the grid.
    scale : the scale, the probability or the rate.
    values, output : the secret input, and the noisy output.
    site : lines of the callers, innermost first.
    """

    kind: str
    public: tuple[Any, ...]
    scale: float
    values: NDArray[Any]
    output: NDArray[Any]
    site: tuple[Place, ...]

    @property
    def is_rounding(self) -> bool:
        """Whether the call adds no noise: the output is as secret as the input."""
        return self.scale == 0 and self.kind in NUMBERS

    def is_alike(self, other: NoiseCall) -> bool:
        """Return whether another call is the same, up to secret values and a secret scale."""
        return (self.kind, self.public) == (other.kind, other.public)

    def noise(self) -> Floats:
        """Return the added noise, in steps of the grid if values are rounded to the grid first."""
        step = self.public[1]
        if self.kind == "cauchy":
            return np.asarray(self.output - self.values, np.float64)
        return np.asarray(np.rint(self.output / step) - np.rint(self.values / step), np.float64)


Choose: TypeAlias = Callable[[int, NoiseCall], "NDArray[Any] | None"]
"""Function from a call's number, and the call as drawn, to its output; None keeps the drawn output."""


@dataclass(eq=False)
class NoiseRecorder:
    """A noise source that records its calls to another one. See `compliance.noise.sampling.Noise`."""

    source: Noise
    choose: Choose = lambda _, __: None
    calls: list[NoiseCall] = field(default_factory=list)

    def _added(self, kind: str, values: Floats, scale: float, step: float, *least: int) -> NDArray[Any]:
        drawn = getattr(self.source, kind)(values, scale, step, *least)
        return self.kept(kind, (values.shape, step, *least), scale, values, drawn)

    laplace = partialmethod(_added, "laplace")
    gaussian = partialmethod(_added, "gaussian")
    cauchy = partialmethod(_added, "cauchy")
    cube = partialmethod(_added, "cube")

    def bernoulli(self, probability: float, size: int) -> Bools:
        """See `Noise.bernoulli`."""
        drawn = self.source.bernoulli(probability, size)
        coins = self.kept("bernoulli", (size,), probability, np.empty(0), drawn).view(Coins)
        coins.turn, coins.used = lambda secret, drawn: self.kept("turned", (size,), probability, secret, drawn), []
        return coins

    def bernoulli_exp(self, exponents: Floats) -> Bools:
        """See `Noise.bernoulli_exp`."""
        drawn = self.source.bernoulli_exp(exponents)
        return self.kept("bernoulli_exp", (exponents.shape,), 1.0, exponents, drawn)

    def integers(self, high: int, size: int) -> Ints:
        """See `Noise.integers`."""
        return self.kept("integers", (size, high), 1.0, np.empty(0), self.source.integers(high, size))

    def permutation(self, n: int) -> Ints:
        """See `Noise.permutation`."""
        return self.kept("permutation", (n,), 1.0, np.empty(0), self.source.permutation(n))

    def kept(
        self, kind: str, public: tuple[Any, ...], scale: float, values: NDArray[Any], drawn: NDArray[Any]
    ) -> NDArray[Any]:
        """Record a call, and return its output."""
        call = NoiseCall(kind, public, float(scale), np.array(values), np.array(drawn), _site())
        if not call.is_rounding and (chosen := self.choose(len(self.calls), call)) is not None:
            call = NoiseCall(kind, public, call.scale, call.values, np.array(chosen, drawn.dtype), call.site)
        self.calls.append(call)
        return call.output.copy()


class Coins(np.ndarray[Any, np.dtype[Any]]):
    """Coins that flip attributes; the first attributes they flip count as a noisy number."""

    turn: Any = None
    used: list[bool]

    def __array_finalize__(self, of: Any) -> None:
        """Keep the coins' state in views and other types."""
        self.turn, self.used = getattr(of, "turn", None), getattr(of, "used", [])

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **how: Any) -> Any:
        """Record a flip where coins are combined with values that they may hide."""
        plain = [np.asarray(each) for each in inputs]
        found = getattr(ufunc, method)(*plain, **how)
        if ufunc in _XOR and method == "__call__" and len({each.shape for each in plain}) == 1:
            return self._turned(next(each for each, own in zip(plain, inputs, strict=True) if own is not self), found)
        return found

    def __array_function__(self, function: Any, types: Any, inputs: Any, how: Any, /) -> Any:
        """See `__array_ufunc__`."""
        plain = [np.asarray(each) if isinstance(each, Coins) else each for each in inputs]
        found = function(*plain, **how)
        if function is np.where and len(plain) == 3 and inputs[0] is self:
            other, secret = map(np.asarray, plain[1:])
            if secret.shape == self.shape and np.isin(secret, (0, 1)).all() and np.array_equal(other, 1 - secret):
                return self._turned(secret, found)
        return found

    def _turned(self, secret: NDArray[Any], flipped: NDArray[Any]) -> NDArray[Any]:
        if self.turn is None or self.used:
            return flipped
        self.used.append(True)
        told: NDArray[Any] = self.turn(secret, flipped)
        self[...] = told.astype(np.bool_) ^ secret.astype(np.bool_)  # the coins this implies: they may be released too
        return told


def replayed(tape: Sequence[NoiseCall]) -> Choose:
    """Return a chooser that repeats the outputs of another run at the same calls."""
    return lambda at, call: tape[at].output if at < len(tape) and tape[at].is_alike(call) else None


def steered(between: Floats, *, far: bool) -> Choose:
    """Return a chooser of possible but rare outputs: numbers near exact gaps, or far off, and one side of coins.

    Only the first `_STEERED` calls are steered, so that a mechanism which draws until something fits can end.
    """

    def choose(at: int, call: NoiseCall) -> NDArray[Any] | None:
        if at >= _STEERED:
            return None
        if call.kind in ("bernoulli", "bernoulli_exp"):
            chances = call.scale if call.kind == "bernoulli" else np.exp(-call.values)
            return np.broadcast_to(np.asarray(chances == 1 if far else chances > 0), call.output.shape)
        if call.kind not in NUMBERS:
            return None
        step = call.public[1]
        if far:
            signs = np.where(np.arange(call.values.size) % 2, -1, 1)
            steps = np.rint((call.values + signs * _FAR * call.scale) / step)
        elif call.values.size in (1, between.size):
            steps = np.rint(between[: call.values.size] / step)
        else:
            return None
        told: Floats = np.clip(steps, -STEPS_MAX, STEPS_MAX) * step + 0.0
        return told

    return choose


_STEERED, _FAR = 8, 40.0


def costs(first: Sequence[NoiseCall], second: Sequence[NoiseCall], delta: float) -> Floats:
    """Return the epsilon cost of each call, for two runs whose outputs are the same up to a public shift.

    The calls must be alike up to secret values and scales. A cost is infinite if no epsilon is enough. Laplace noise of
    two scales and Gaussian noise need a delta; it is divided evenly among the calls of two scales and, as one more, all
    Gaussian noise, whose total cost is entered for its first call.
    """
    found = np.zeros(len(first))
    pairs = list(zip(first, second, strict=True))
    dilated = sum(one.kind in ("laplace", "gaussian") and one.scale != other.scale for one, other in pairs)
    gaussian = [at for at, (one, _) in enumerate(pairs) if one.kind == "gaussian" and not one.is_rounding]
    share = delta / max(1, dilated + bool(gaussian))
    square = 0.0
    for at, (one, other) in enumerate(pairs):
        if one.kind == "gaussian" and one.scale == other.scale > 0:
            square += float(np.sum(((one.noise() - other.noise()) * one.public[1] / one.scale) ** 2))
        else:
            follows = first[at + 1] if at + 1 < len(first) else None
            found[at] = _cost(one, other, share, follows)
    if square:
        found[gaussian[0]] += gaussian_epsilon(1 / math.sqrt(square), share) if share else math.inf
    return found


def _cost(one: NoiseCall, other: NoiseCall, delta: float, follows: NoiseCall | None) -> float:
    scales = sorted((one.scale, other.scale))
    moved = scales[0] != scales[1] or not np.array_equal(one.values, other.values)
    if (one.is_rounding and other.is_rounding) or (not moved and np.array_equal(one.output, other.output)):
        return 0.0
    if one.kind == "turned":
        return int(np.sum(one.values != other.values)) * _logs(one.scale, 1 - one.scale)
    if one.kind == "bernoulli":
        worst = max(_logs(*scales), _logs(1 - scales[0], 1 - scales[1]))
        return float(one.public[0] * worst) if worst else 0.0
    if one.kind == "bernoulli_exp":
        return _cost_of_coins(one, other, follows)
    if scales[0] == 0 or (scales[0] != scales[1] and one.kind not in ("laplace", "cauchy")):
        return math.inf
    if one.kind in ("balanced", "ball"):
        apart = np.abs(one.values - other.values).sum(axis=1)
        return float(
            one.scale * (apart.sum() if one.kind == "balanced" else np.ceil((apart / 2 / one.public[1]).max()))
        )
    shift = np.abs(one.noise() - other.noise())
    if one.kind == "cauchy":
        return sum(cauchy_loss(each, one.scale, other.scale) for each in shift.tolist())
    step, *least = one.public[1:]
    if one.kind == "cube":
        farthest = float(shift.max()) * step
        return float(math.ceil(farthest) if any(least) else farthest) / one.scale
    return float(shift.sum() * step / scales[0]) + _dilation(scales[1] / scales[0], shift.size, delta)


def _logs(one: float, other: float) -> float:
    if one == other:
        return 0.0
    return abs(math.log(one / other)) if min(one, other) > 0 else math.inf


def _dilation(ratio: float, size: int, delta: float) -> float:
    """Return the cost of Laplace noise of two scales: see `fairwall.laws.mechanisms.calibration`."""
    if ratio == 1:
        return 0.0
    if not delta:
        return math.inf
    from scipy.special import gammainccinv

    # A draw from the wider law loses T (r - 1) - size ln r, where T is above its quantile with probability delta.
    narrow = size * math.log(ratio)
    return max(narrow, float(gammainccinv(size, delta)) * (ratio - 1) - narrow)


def _cost_of_coins(one: NoiseCall, other: NoiseCall, follows: NoiseCall | None) -> float:
    x, y = one.values, other.values
    if (
        follows is not None
        and follows.kind == "permutation"
        and follows.public == (x.size,)
        and x.min() == y.min() == 0
    ):
        # Permute and flip: scores of 2 a/epsilon, moved by at most a once a common number is subtracted.
        return float(np.ptp(x - y))
    with np.errstate(divide="ignore"):
        tails = np.log(-np.expm1(-x[x != y])) - np.log(-np.expm1(-y[x != y]))
    return float(np.maximum(np.abs(x - y)[x != y], np.abs(tails)).sum())


def _site() -> tuple[Place, ...]:
    frame, found = sys._getframe(1), list[Place]()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back  # type: ignore[assignment]
    while frame is not None and not frame.f_code.co_filename.endswith(("greybox.py", "<string>")):
        found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(found)
