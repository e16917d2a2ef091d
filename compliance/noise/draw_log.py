"""The log of compliance's own draws: with it, a game whose noise came from the operating system replays.

One line per draw: the deal, the request, the draw's number within its answer, its law, and its values. The log is for
compliance alone: whoever has it can remove the noise from every answer. A draw that is in the log already is taken from
there, so a game that is played again with its log gets the same noise. The ledger ensures that an answer is made from
one request alone, so each draw protects one answer.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compliance.noise.sampling import Noise, System
from fairwall.arrays import Bools, Floats, Ints


class DrawLog:
    """The draws of a game, in a file; OSError if the file cannot be read, or is no log, or holds half a line.

    `path`: made at the first draw; draws that it holds already are repeated.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._drawn: dict[tuple[str, str, int], tuple[str, list[Any]]] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            try:
                entry = json.loads(line)
                key = entry["deal"], entry["request"], entry["draw"]
                self._drawn[key] = entry["law"], entry["values"]
            except (ValueError, KeyError, TypeError):
                raise OSError(f"{path}: no log of draws") from None

    def noise(self, deal: str, request_id: str) -> Noise:
        """Return the noise of one answer."""
        return _Logged(self, deal, request_id, System())

    def draw(self, key: tuple[str, str, int], law: str, draw: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return a draw from the log, or draw it and log it before it is used.

        OSError if the log holds a draw from another law, being another game's, or cannot be written.
        """
        with self._lock:
            if key not in self._drawn:
                values = draw()
                deal, request, number = key
                entry = {"deal": deal, "request": request, "draw": number, "law": law, "values": values.tolist()}
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
                self._drawn[key] = law, values.tolist()
            logged, kept = self._drawn[key]
            if logged != law:
                raise OSError(f"{self._path}: has a draw of {logged} where this game draws {law}")
            return np.array(kept)


@dataclass(eq=False)
class _Logged:
    """The noise of one answer, read from the log or added to it."""

    log: DrawLog
    deal: str
    request_id: str
    source: Noise
    draws: int = 0

    def laplace(self, values: Floats, scale: float, step: float) -> Floats:
        """See `Noise.laplace`."""
        return self._draw("laplace", lambda: self.source.laplace(values, scale, step))

    def gaussian(self, values: Floats, sigma: float, step: float) -> Floats:
        """See `Noise.gaussian`."""
        return self._draw("gaussian", lambda: self.source.gaussian(values, sigma, step))

    def cauchy(self, values: Floats, scale: float, step: float) -> Floats:
        """See `Noise.cauchy`."""
        return self._draw("cauchy", lambda: self.source.cauchy(values, scale, step))

    def cube(self, values: Floats, scale: float, step: float, least: int = 0) -> Floats:
        """See `Noise.cube`."""
        return self._draw("cube", lambda: self.source.cube(values, scale, step, least))

    def bernoulli(self, probability: float, size: int) -> Bools:
        """See `Noise.bernoulli`."""
        return self._draw("bernoulli", lambda: self.source.bernoulli(probability, size)).astype(np.bool_)

    def bernoulli_exp(self, exponents: Floats) -> Bools:
        """See `Noise.bernoulli_exp`."""
        return self._draw("bernoulli_exp", lambda: self.source.bernoulli_exp(exponents)).astype(np.bool_)

    def integers(self, high: int, size: int) -> Ints:
        """See `Noise.integers`."""
        return self._draw("integers", lambda: self.source.integers(high, size)).astype(np.int64)

    def permutation(self, n: int) -> Ints:
        """See `Noise.permutation`."""
        return self._draw("permutation", lambda: self.source.permutation(n)).astype(np.int64)

    def _draw(self, law: str, draw: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        key = self.deal, self.request_id, self.draws
        self.draws += 1
        return self.log.draw(key, law, draw)
