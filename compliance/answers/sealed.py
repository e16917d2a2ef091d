"""Models that developers hand over as ONNX files, scored on rows that the developers do not have.

They run in a process that knows the rows' features and no protected attribute: `compliance.answers.scorer`. What a
model says of a row goes into an answer, as predictions would, and is told nobody: epsilon hides protected attributes in
it. The features themselves it does not hide: a gap of a group is a number about its rows, and who asks often learns of
them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO

import numpy as np
from numpy.typing import NDArray

from compliance.answers import scorer
from fairwall.errors import UserError
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

LOG = logging.getLogger(__name__)

_REASONS = {
    scorer.MALFORMED: error_pb2.REASON_MODEL_MALFORMED,
    scorer.OPERATOR: error_pb2.REASON_MODEL_OPERATOR,
    scorer.SHAPE: error_pb2.REASON_MODEL_SHAPE,
    scorer.SLOW: error_pb2.REASON_MODEL_SLOW,
}

MEMORY = 2 << 30
"""How many bytes of memory a batch of models may take, besides rows."""


class SealedError(UserError):
    """Models cannot be scored here. Its text is one line."""


def check_libraries() -> None:
    """Refuse to do without what models run by; SealedError."""
    if any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxruntime")):
        raise SealedError("sealed: needs onnxruntime: pip install 'fairwall[sealed]'")


class Scorer:
    """The process that scores; to be started before this one is confined, and while it knows nothing protected.

    SealedError if a library is missing that it needs, or it does not start.
    """

    def __init__(self) -> None:
        check_libraries()
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter
            [sys.executable, "-I", "-m", scorer.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._turn = threading.Lock()
        try:
            self.confined = self._said().decode()
        except _EndedError:
            raise SealedError("sealed: the process that scores models did not start") from None

    def scores(self, features: NDArray[np.float64], models: Sequence[bytes], seconds: float) -> NDArray[np.float64]:
        """Score rows with each model.

        Refusal for the first model that does not do; MODEL_UNAVAILABLE once the process is gone.

        Parameters
        ----------
        features : ndarray of float64, shape (people, columns)
        models : sequence of bytes
            ONNX models.
        seconds : float
            For how long each may run.

        Returns
        -------
        ndarray of float64, shape (models, people)
            In [0, 1]; 0 of a model that fails on these rows and did not on made-up ones.
        """
        people, columns = features.shape
        sizes = b"".join(scorer.SIZE.pack(len(model)) for model in models)
        head = scorer.HEAD.pack(people, columns, len(models), seconds, MEMORY)
        try:
            with self._turn:
                assert self._process.stdin is not None, "a pipe"
                for part in (head, sizes, features.tobytes(), *models):
                    self._process.stdin.write(part)
                self._process.stdin.flush()
                said = self._said()
        except (_EndedError, OSError):
            LOG.error("the process that scores models has ended: start the service again")
            raise Refusal(error_pb2.REASON_MODEL_UNAVAILABLE) from None
        if said[0] != scorer.SOUND:
            raise Refusal(_REASONS.get(said[0], error_pb2.REASON_MODEL_MALFORMED))
        found = np.zeros((len(models), people))
        came = min((len(said) - 1) // (8 * people), len(models)) * people
        found.reshape(-1)[:came] = np.frombuffer(said, np.float64, came, 1)
        return found

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError), self._process:
            assert self._process.stdin is not None, "a pipe"
            self._process.stdin.close()

    def _said(self) -> bytes:
        assert self._process.stdout is not None, "a pipe"
        (size,) = scorer.SIZE.unpack(_read(self._process.stdout, scorer.SIZE.size))
        return _read(self._process.stdout, size)


class _EndedError(Exception):
    """The process that scores has ended."""


def _read(source: IO[bytes], size: int) -> bytes:
    found = source.read(size)
    if len(found) < size:
        raise _EndedError
    return found


@dataclass(frozen=True, eq=False)
class Sealed:
    """How models that are handed over are asked about a data set.

    Parameters
    ----------
    names : tuple of str
        The features, in the order in which models get them.
    features : ndarray of float64, shape (people, features)
        Of every row of the file, in its order; NaN where a value is missing.
    bytes_max : int
        The most that the models of one batch have together.
    seconds : float
        For how long of a processor each may run.
    """

    names: tuple[str, ...]
    features: NDArray[np.float64] = field(repr=False)
    bytes_max: int
    seconds: float
    scorer: Scorer = field(repr=False)

    def check(self, sizes: Sequence[int]) -> None:
        """Refuse models that have no bytes, or too many together, before any comes."""
        if min(sizes) < 1 or sum(sizes) > self.bytes_max:
            raise Refusal(error_pb2.REASON_MODEL_TOO_LARGE)

    def scores(self, models: Sequence[bytes], *, binary: bool) -> NDArray[np.float64] | NDArray[np.bool_]:
        """Score every row with each model, shape (models, people); `binary`: decide, from one half up."""
        found = self.scorer.scores(self.features, models, self.seconds)
        return found >= 0.5 if binary else found
