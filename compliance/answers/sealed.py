"""Models that developers upload as ONNX files, scored on rows that the developers do not have.

They run in processes that know the rows' features and no protected attribute: `compliance.answers.scorer`. Scores enter
an answer as predictions would, and are shown to nobody: epsilon hides protected attributes in the answer. It does not
hide the features: a group's gap is a number about its rows, and a developer with many requests learns about them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

import numpy as np

from compliance.answers import scorer
from fairwall.arrays import Bools, Floats
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

_PROCESSES_MAX = 8

_LOOK_SECONDS = 0.2
"""Seconds between checks that the caller still waits."""

_ENVIRONMENT = frozenset({"LD_LIBRARY_PATH", "PATH", "SYSTEMROOT"})

MEMORY = 2 << 30
"""Most bytes of memory for a batch of models, besides rows."""


class SealedError(UserError):
    """Models cannot be scored here. Its text is one line."""


def check_libraries() -> None:
    """Raise SealedError if a library that runs models is missing."""
    if any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxruntime")):
        raise SealedError("sealed: needs onnxruntime: pip install 'fairwall[sealed]'")


class ScorerProcess:
    """The scoring processes; start them before this process is confined, and while it knows nothing protected.

    Each process scores one batch at a time, and each developer has at most one process: a developer with many models
    delays only itself. A batch ends with its call. SealedError if a library is missing, or a process does not start.
    """

    def __init__(self, processes: int = 0) -> None:
        check_libraries()
        self._processes = [_started() for _ in range(processes or min(max(2, os.cpu_count() or 1), _PROCESSES_MAX))]
        self._free, self._changed = list(self._processes), threading.Condition()
        self._waiting: list[str] = []
        self._served: set[str] = set()
        try:
            (self.confined,) = {_said(each).decode() for each in self._processes}
        except _EndedError:
            raise SealedError("sealed: the process that scores models did not start") from None

    def scores(
        self,
        features: Floats,
        models: Sequence[bytes],
        seconds: float,
        *,
        binary: bool = False,
        developer: str = "",
        goes_on: Callable[[], bool] = lambda: True,
    ) -> Floats:
        """Return each model's scores in [0, 1], shape (models, people); 0 where a model fails on these rows only.

        Refusal for the first unfit model; MODEL_UNAVAILABLE once a process is gone, or the call has ended.

        Parameters
        ----------
        features : shape (people, columns).
        seconds : most processor time of each.
        binary : whether scores will be cut at one half.
        developer : whose models they are.
        goes_on : returns whether the call still waits.
        """
        people, columns = features.shape
        sizes = b"".join(scorer.SIZE.pack(len(model)) for model in models)
        head = scorer.HEAD.pack(people, columns, len(models), seconds, MEMORY, binary)
        with self._turn(developer, goes_on) as process:
            try:
                assert process.stdin is not None, "a pipe"
                for part in (scorer.BATCH, head, sizes, features.tobytes(), *models):
                    process.stdin.write(part)
                process.stdin.flush()
                ended = threading.Event()
                with _watched(process, goes_on, ended):
                    said = _said(process)
            except (_EndedError, OSError):
                LOG.error("the process that scores models has ended: start the service again")
                raise Refusal(error_pb2.REASON_MODEL_UNAVAILABLE) from None
        if ended.is_set():
            raise Refusal(error_pb2.REASON_MODEL_UNAVAILABLE)
        if said[0] != scorer.SOUND:
            raise Refusal(_REASONS.get(said[0], error_pb2.REASON_MODEL_MALFORMED))
        found = np.zeros((len(models), people))
        came = min((len(said) - 1) // (8 * people), len(models)) * people
        found.reshape(-1)[:came] = np.frombuffer(said, np.float64, came, 1)
        return found

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            with contextlib.suppress(OSError), process:
                assert process.stdin is not None, "a pipe"
                process.stdin.close()

    @contextmanager
    def _turn(self, developer: str, goes_on: Callable[[], bool]) -> Iterator[subprocess.Popen[bytes]]:
        """Yield a process once one is free and this developer has none, first come first served."""

        def is_next() -> bool:
            others = (each for each in self._waiting if each not in self._served)
            return bool(self._free) and next(others, None) == developer

        with self._changed:
            self._waiting.append(developer)
            try:
                while not is_next():
                    self._changed.wait(_LOOK_SECONDS)
                    if not goes_on() or all(each.poll() is not None for each in self._processes):
                        raise Refusal(error_pb2.REASON_MODEL_UNAVAILABLE)
                process = self._free.pop()
                self._served.add(developer)
            finally:
                self._waiting.remove(developer)
                self._changed.notify_all()
        try:
            yield process
        finally:
            with self._changed:
                self._served.remove(developer)
                if process.poll() is None:
                    self._free.append(process)
                self._changed.notify_all()


def _started() -> subprocess.Popen[bytes]:
    # The child gets no environment, which may hold passwords, except the paths of libraries.
    kept = {name: value for name, value in os.environ.items() if name in _ENVIRONMENT}
    return subprocess.Popen(  # noqa: S603 - this interpreter
        [sys.executable, "-I", "-m", scorer.__name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=kept,
    )


@contextmanager
def _watched(process: subprocess.Popen[bytes], goes_on: Callable[[], bool], ended: threading.Event) -> Iterator[None]:
    """End the batch that a process scores once the call has ended, and set `ended`."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
            if not goes_on():
                ended.set()
                with contextlib.suppress(OSError):
                    assert process.stdin is not None, "a pipe"
                    process.stdin.write(scorer.GIVE_UP)
                    process.stdin.flush()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _said(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None, "a pipe"
    (size,) = scorer.SIZE.unpack(_read(process.stdout, scorer.SIZE.size))
    return _read(process.stdout, size)


class _EndedError(Exception):
    """The scoring process has ended."""


def _read(source: IO[bytes], size: int) -> bytes:
    found = source.read(size)
    if len(found) < size:
        raise _EndedError
    return found


@dataclass(frozen=True, eq=False)
class SealedModels:
    """Scoring of a data set by uploaded models.

    `names`: of the features, in the models' input order. `features`: of every row of the file, in its order, shape
    (people, features); NaN where a value is missing. `bytes_max`: most bytes of one batch's models together. `seconds`:
    most processor time of each model.
    """

    names: tuple[str, ...]
    features: Floats = field(repr=False)
    bytes_max: int
    seconds: float
    scorer: ScorerProcess = field(repr=False)

    def check(self, sizes: Sequence[int]) -> None:
        """Refuse empty models, or too many bytes together, before any is sent."""
        if min(sizes) < 1 or sum(sizes) > self.bytes_max:
            raise Refusal(error_pb2.REASON_MODEL_TOO_LARGE)

    def scores(
        self, models: Sequence[bytes], *, binary: bool, developer: str, goes_on: Callable[[], bool]
    ) -> Floats | Bools:
        """Return each row's score by each model, shape (models, people); decisions at one half if `binary`."""
        found = self.scorer.scores(
            self.features, models, self.seconds, binary=binary, developer=developer, goes_on=goes_on
        )
        return found >= 0.5 if binary else found
