"""Run many sessions of a mechanism at once, through the mechanism's own code.

A mechanism draws its noise from a `compliance.noise.sampling.Noise`. `Many` is a noise source whose draws have one row
per session, so a mechanism that treats its noise elementwise answers all sessions in one call. A mechanism that
branches on its noise, or indexes it, cannot: noise comes as `SessionNoise`, which raise there, however rarely the
mechanism does it. The shortcut is also tested first: sessions from known noise must come out the same, bit for bit,
drawn together and one by one. If they differ, or if rows raise, all sessions are drawn one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partialmethod
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms.mechanism import BatchQuestion, Mechanism, MechanismAnswer
from compliance.noise.sampling import Noise, Seeded
from fairwall.arrays import Bools, Floats, Ints

_ELEMENTWISE = (np.where, np.clip, np.nan_to_num, np.zeros_like, np.ones_like, np.full_like)


class MixedSessionsError(TypeError):
    """A mechanism used many sessions' noise in a way that is valid for a single session only."""


class SessionNoise(np.ndarray[Any, Any]):
    """Noise of shape (sessions, ...); numpy operations across the first axis raise `MixedSessionsError`.

    A mechanism that evaluates `if noise:` or `noise[0]` means its own session's noise. Given the rows of many sessions
    it would use one session's noise for all, and the sessions would depend on each other. `SessionNoise` raises there,
    and allows only arithmetic that treats every row alike.
    """

    @classmethod
    def of(cls, values: NDArray[Any]) -> Self:
        """Return values of shape (sessions, ...) as rows."""
        return np.ascontiguousarray(values).view(cls)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **how: Any) -> Any:
        """Allow operations that work element by element, or along an axis other than the first."""
        if method in ("reduce", "accumulate"):
            _require_inner(inputs[0], how.get("axis", 0))
        elif method != "__call__":
            raise MixedSessionsError(f"{ufunc.__name__}.{method}")
        return self._alike(getattr(ufunc, method), inputs, how)

    def __array_function__(self, function: Any, types: Any, inputs: Any, how: Any, /) -> Any:
        """See `__array_ufunc__`."""
        if function not in _ELEMENTWISE:
            _require_inner(self, how.get("axis"))
        return self._alike(function, inputs, how)

    def _alike(self, function: Callable[..., Any], inputs: Sequence[Any], how: Mapping[str, Any]) -> Any:
        found = function(*map(_plain, inputs), **{key: _plain(value) for key, value in how.items()})
        if how.get("out") is not None:
            return how["out"][0]
        rows = [one for one in _all(inputs) if isinstance(one, SessionNoise)]
        whole = isinstance(found, np.ndarray) and found.shape[:1] == self.shape[:1]
        # Numpy lines shapes up at their ends: unless all have one number of axes, a row could meet another's number.
        if not whole or len({row.ndim for row in rows}) > 1 or any(found.ndim > row.ndim for row in rows):
            raise MixedSessionsError("of another shape")
        return found.view(SessionNoise)

    def __getitem__(self, key: Any) -> Any:
        """Return the same numbers of every session; the first of several indices must be `...` or `:`."""
        first = key[0] if isinstance(key, tuple) and key else key
        if first is not Ellipsis and first != slice(None):
            raise MixedSessionsError("an index of sessions")
        found = self.view(np.ndarray)[key]
        if found.shape[:1] != self.shape[:1]:
            raise MixedSessionsError("an index of sessions")
        return found.view(SessionNoise)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise MixedSessionsError("one session's number")

    __bool__ = __int__ = __float__ = __complex__ = __index__ = __iter__ = __len__ = _refuse
    item = tolist = ravel = flatten = reshape = nonzero = _refuse
    sort = cumsum = argmax = argmin = argsort = take = squeeze = transpose = _refuse


def _require_inner(values: Any, axis: Any) -> None:
    if not isinstance(axis, int) or not isinstance(values, np.ndarray) or axis % values.ndim == 0:
        raise MixedSessionsError("along the sessions")


def _plain(value: Any) -> Any:
    if isinstance(value, SessionNoise):
        return value.view(np.ndarray)
    if isinstance(value, (tuple, list)) and any(isinstance(one, SessionNoise) for one in value):
        return type(value)(_plain(one) for one in value)
    return value


def _all(values: Sequence[Any]) -> list[Any]:
    return [one for value in values for one in (value if isinstance(value, (tuple, list)) else (value,))]


_TRIED_TOGETHER = 16
NO_ANSWER = -(2.0**60)
"""Number in a transcript for the answer "none" (NaN); finite, so that event learning can compute with it."""

_AT_ONCE = 2**21
"""Answers drawn in one call, over all its sessions: 16 MiB."""


def releases(
    mechanism: Mechanism,
    question: BatchQuestion,
    epsilon: float,
    delta: float,
    sessions: int,
    generator: np.random.Generator,
    batches: int = 1,
) -> Floats:
    """Return the releases of independent sessions, shape (sessions, numbers): answers, then purchased facts by name.

    A session asks the question `batches` times; each time the mechanism receives the facts that it has sold before.
    """

    def release(noise: Noise) -> MechanismAnswer:
        values: list[Floats] = []
        facts: dict[str, Floats] = {}
        for _ in range(batches):
            answer = mechanism.release(question, facts, epsilon, delta, noise)
            values.append(answer.values)
            facts = {**facts, **answer.facts}
        return MechanismAnswer(np.concatenate(values, axis=-1), facts)

    if _works_together(release):
        most = max(_TRIED_TOGETHER, _AT_ONCE // len(question.predictions))
        chunks = [min(most, sessions - start) for start in range(0, sessions, most)]
        try:
            return np.concatenate([_flat(release(Many(generator, rows)), (rows,)) for rows in chunks])
        except MixedSessionsError:
            pass
    return np.array([_flat(release(Seeded(generator)), ()) for _ in range(sessions)])


def _works_together(release: Callable[[Noise], MechanismAnswer]) -> bool:
    def noises() -> list[Noise]:
        return [Seeded(np.random.default_rng(seed)) for seed in range(_TRIED_TOGETHER)]

    apart = np.array([_flat(release(noise), ()) for noise in noises()])
    try:
        together = _flat(release(Stacked(noises())), (_TRIED_TOGETHER,))
    except (TypeError, ValueError, IndexError, AttributeError, NotImplementedError):
        return False  # numpy's errors for one dimension too many
    return np.array_equal(apart, together)


def _flat(release: MechanismAnswer, sessions: tuple[int, ...]) -> Floats:
    parts = [np.asarray(release.values), *(np.asarray(release.facts[name]) for name in sorted(release.facts))]
    flat = np.concatenate([np.reshape(part, (*sessions, -1)) for part in parts], axis=-1, dtype=np.float64)
    return np.nan_to_num(flat, copy=False, nan=NO_ANSWER, posinf=2.0**61, neginf=-(2.0**61))


@dataclass(frozen=True, eq=False)
class Many:
    """Noise with one row per session: like `compliance.noise.sampling.Noise`, but every shape begins with the sessions.

    Inputs may be shared by all sessions, shape (size,), or differ by session, shape (sessions, size).
    """

    generator: np.random.Generator
    sessions: int

    def _independent(self, draw: str, values: Floats, scale: float, step: float) -> SessionNoise:
        rows = self._rows(values)
        return SessionNoise.of(getattr(self._one, draw)(rows.ravel(), scale, step).reshape(rows.shape))

    laplace = partialmethod(_independent, "laplace")
    gaussian = partialmethod(_independent, "gaussian")
    cauchy = partialmethod(_independent, "cauchy")

    def cube(self, values: Floats, scale: float, step: float, least: int = 0) -> Floats:
        """See `Noise.cube`."""
        return SessionNoise.of(self._one.cubes(np.asarray(self._rows(values)), scale, step, least))

    def bernoulli(self, probability: float, size: int) -> Bools:
        """See `Noise.bernoulli`."""
        return SessionNoise.of(self._one.bernoulli(probability, self.sessions * size).reshape(self.sessions, size))

    def bernoulli_exp(self, exponents: Floats) -> Bools:
        """See `Noise.bernoulli_exp`."""
        return SessionNoise.of(self._one.bernoulli_exp(self._rows(exponents)))

    def integers(self, high: int, size: int) -> Ints:
        """See `Noise.integers`."""
        return SessionNoise.of(self._one.integers(high, self.sessions * size).reshape(self.sessions, size))

    def permutation(self, n: int) -> Ints:
        """See `Noise.permutation`."""
        return SessionNoise.of(self.generator.permuted(np.tile(np.arange(n), (self.sessions, 1)), axis=1))

    @property
    def _one(self) -> Seeded:
        return Seeded(self.generator)

    def _rows(self, values: Floats) -> Floats:
        values = np.asarray(values)
        return np.broadcast_to(values, (self.sessions, values.shape[-1]))


@dataclass(frozen=True, eq=False)
class Stacked:
    """Noise with one row per session, like `Many`, each from its own source: slow, but known row by row."""

    noises: list[Noise] = field(repr=False)

    def _of_rows(self, draw: str, values: Floats, *how: float) -> SessionNoise:
        values = np.asarray(values)
        rows = np.broadcast_to(values, (len(self.noises), values.shape[-1]))
        drawn = [getattr(noise, draw)(row, *how) for noise, row in zip(self.noises, rows, strict=True)]
        return SessionNoise.of(np.stack(drawn))

    def _of_size(self, draw: str, *how: float) -> SessionNoise:
        return SessionNoise.of(np.stack([getattr(noise, draw)(*how) for noise in self.noises]))

    laplace = partialmethod(_of_rows, "laplace")
    gaussian = partialmethod(_of_rows, "gaussian")
    cauchy = partialmethod(_of_rows, "cauchy")
    cube = partialmethod(_of_rows, "cube")
    bernoulli_exp = partialmethod(_of_rows, "bernoulli_exp")
    bernoulli = partialmethod(_of_size, "bernoulli")
    integers = partialmethod(_of_size, "integers")
    permutation = partialmethod(_of_size, "permutation")
