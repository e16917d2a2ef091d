"""Noise of many sessions at once, one row per session; no number may pass from one session into another.

A mechanism that evaluates `if noise:` or `noise[0]` means its own session's noise. Given the rows of many sessions it
would use one session's noise for all, and the sessions would depend on each other. `SessionNoise` raises there, and
allows only arithmetic that treats every row alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

_ELEMENTWISE = (np.where, np.clip, np.nan_to_num, np.zeros_like, np.ones_like, np.full_like)


class MixedSessionsError(TypeError):
    """A mechanism used many sessions' noise in a way that is valid for a single session only."""


class SessionNoise(np.ndarray[Any, Any]):
    """Noise of shape (sessions, ...); numpy operations across the first axis raise `MixedSessionsError`."""

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
