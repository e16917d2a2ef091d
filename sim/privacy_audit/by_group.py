"""Counts and sums of scores by group, as `compliance.answers.groups.released` tells them, and broken twins of theirs.

A question's protected attribute tells two groups apart. Every third person from the sixth on is put into a third one,
so that noise sums up to 0 over more than two numbers; whoever changes group in a privacy audit stays in the first two.

Noise by group is drawn by rejection, so that the service's function cannot answer many sessions in one call. It is
called once, without noise, for the exact numbers and their rates; its own `balanced_noise` or `ball_noise` then makes
the noise of all sessions at once. With one session that is what the service releases, bit for bit, which a test looks
at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from compliance.answers.group_noise import balanced_noise, ball_noise
from compliance.answers.groups import released
from compliance.ledger.accountant import Loss, pure
from compliance.mechanisms.mechanism import Guarantee, Question, Release
from compliance.noise.sampling import Noise, Seeded
from compliance.records.groups import Attribute, Grouped
from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.laws.ball import Ball
from fairwall.laws.groups import SUM_STEP, noise_rate
from fairwall.rpc.arrays import from_message
from fairwall.wire.v1.array_pb2 import Array
from sim.privacy_audit.recorded import Recorder
from sim.privacy_audit.subject import Claim, Subject

_ATTRIBUTE = Attribute("group", ("0", "1", "2"))


class _Silent:
    """Noise that is none, and is kept: what is released with it are the exact numbers."""

    def laplace(self, values: NDArray[np.float64], _scale: float, _step: float) -> NDArray[np.float64]:
        return np.zeros_like(values)

    def bernoulli_exp(self, exponents: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.ones(exponents.shape, np.bool_)


_SILENT: Any = _Silent()


@dataclass(frozen=True)
class GroupCounts:
    """A request for how many of each group are selected and for the sums of their scores: a `Subject`.

    Whoever changes group changes two counts and two sums. With ``one-count`` the noise is for one of them: that
    somebody has come is counted, that they are missing elsewhere is not. With ``own-size`` each row of a ball has a
    size T of its own.
    """

    name: str
    epsilon: float
    told: Literal["tables", "rows"]
    fault: Literal["one-count", "own-size"] | None

    @property
    def claim(self) -> Claim:
        """See `Subject.claim`."""
        return Claim(self.epsilon, 0.0)

    def refuses(self, metric: str) -> str | None:
        """See `Subject.refuses`. Labels, as predictions, would only make more strata."""
        return None if metric == "sp" else f"{self.name} does not answer metric {metric}"

    def loss(self, _metric: str, n0: int, n1: int, _people: int, queries: int) -> float:
        """See `Subject.loss`: of some models all tables and sums are moved by the most that can be.

        Tables of models apart cost as much as one of them all, but for the rounding of rates.
        """
        if n0 + n1 < 3:
            return 0.0
        if self.told == "rows":
            rows = 2 * queries + 1 if self.fault else 1  # one of people, and two of each model
            return rows * noise_rate(self._offered, 1.0)
        half = self._offered / 2
        return 2 * noise_rate(half) + queries * noise_rate(half / queries, 1 / SUM_STEP) / SUM_STEP

    def sessions(self, question: Question, count: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """See `Subject.sessions`."""
        noise, drawn = Seeded(generator), []
        for exact, law, unit in self._parts(self.release(question, _SILENT)):
            rows, groups = exact.shape
            if isinstance(law, Ball):
                of_all = ball_noise(noise, law, count)
            else:
                of_all = balanced_noise(noise, law, count * rows, groups).reshape(count, rows, groups)
            drawn.append(((exact / unit + of_all) * unit).reshape(count, -1))
        return np.hstack(drawn)

    def log_ratio(self, first: Question, second: Question, transcripts: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Subject.log_ratio`: each number has the log-density -rate |noise|, but for one constant.

        Of a ball that is -rate T, by the largest of its rows.
        """
        here, there = (self._parts(self.release(question, _SILENT)) for question in (first, second))
        found, at = np.zeros(len(transcripts)), 0
        for (exact, law, unit), (other, _, _) in zip(here, there, strict=True):
            told = transcripts[:, at : at + exact.size].reshape(-1, *exact.shape)
            mine, theirs = (np.abs(told - each).sum(axis=2) / unit for each in (exact, other))
            if isinstance(law, Ball):
                reach = 2 * np.array(law.reaches)
                found += law.rate * (_size(theirs / reach) - _size(mine / reach))
            else:
                found += law * (theirs - mine).sum(axis=1)
            at += exact.size
        return found

    def release(self, question: Question, noise: Noise) -> wire.GroupRelease:
        """Ask the service's own function."""
        records = question.records
        groups = records.turned(np.zeros(records.people, np.bool_))
        groups[5::3] = 2
        people = Grouped((_ATTRIBUTE,), groups[np.newaxis], records.labels)
        measures = [wire.MEASURE_SELECTION_RATE, wire.MEASURE_MEAN_SCORE]
        header = wire.ByGroupHeader(by=[_ATTRIBUTE.name], measures=measures, epsilon=self._offered)
        worth = math.inf if self.told == "rows" else 0.0
        return released(people, header, question.predictions, noise, worth=worth)

    @property
    def _offered(self) -> float:
        # Noise for a distance of 1 at epsilon is noise for one of 2 at twice of it.
        return 2 * self.epsilon if self.fault == "one-count" else self.epsilon

    def _parts(self, told: wire.GroupRelease) -> list[tuple[NDArray[np.float64], float | Ball, float]]:
        """Read the numbers, shape (rows, groups), the rate of their noise or its ball, and its unit."""
        tables = [(_read(table.counts), table.rate, 1.0) for table in told.tables]
        rows = [(_read(part.counts), Ball(part.rate, told.groups, tuple(part.reach)), 1.0) for part in told.rows]
        if self.fault == "own-size":
            rows = [
                (row[np.newaxis], replace(ball, reaches=(reach,)), unit)
                for counts, ball, unit in rows
                for row, reach in zip(counts, ball.reaches, strict=True)
            ]
        sums = [(_read(told.sums.sums), told.sums.rate, SUM_STEP)] if told.HasField("sums") else []
        return [*tables, *rows, *sums]


@dataclass(frozen=True)
class GroupMechanism:
    """What counts by group as a `Mechanism` for the grey-box test: noise is added by its whole tables and rows."""

    subject: GroupCounts

    @property
    def name(self) -> str:
        """See `Mechanism.name`."""
        return self.subject.name

    title = name
    guarantee: Guarantee = "pure"

    @property
    def function(self) -> Callable[..., Any]:
        """Whose lines are named: the service's own function."""
        return released

    def refuses(self, metric: str, _epsilon: float, _delta: float) -> str | None:
        """See `Mechanism.refuses`."""
        return self.subject.refuses(metric)

    def cost(self, epsilon: float, _delta: float) -> Loss:
        """See `Mechanism.cost`."""
        return pure(epsilon)

    def release(self, question: Question, _facts: object, epsilon: float, _delta: float, noise: Any) -> Release:
        """Return all that is told, as bytes. See `Mechanism.release`."""

        def of_table(_: Noise, rate: float, rows: int, groups: int) -> _Added:
            return _Added(noise, "balanced", rate, (), balanced_noise(noise.source, rate, rows, groups))

        def of_ball(_: Noise, ball: Ball) -> list[_Added]:
            return [_Added(noise, "ball", ball.rate, ball.reaches, each) for each in ball_noise(noise.source, ball)]

        with patch.multiple("compliance.answers.groups", balanced_noise=of_table, ball_noise=of_ball):
            told = replace(self.subject, epsilon=epsilon).release(question, noise)
        return Release(np.frombuffer(told.SerializeToString(deterministic=True), np.uint8).astype(np.float64))


@dataclass(frozen=True)
class _Added:
    """Noise by group, which is recorded with the counts that it is added to."""

    recorder: Recorder
    kind: Literal["balanced", "ball"]
    rate: float
    reaches: tuple[int, ...]
    noise: NDArray[np.int64]

    __array_ufunc__ = None  # so that a table of counts leaves adding to this

    def __radd__(self, exact: NDArray[Any]) -> NDArray[Any]:
        return self.recorder.kept(self.kind, (exact.shape, self.reaches), self.rate, exact, exact + self.noise)


def _read(message: Array) -> NDArray[np.float64]:
    return np.asarray(from_message(message), np.float64)


def _size(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return T of each draw, by each row's half l1 norm over its reach, shape (draws, rows)."""
    found: NDArray[np.float64] = np.ceil(parts).max(axis=1)
    return found


def group_counts(
    told: Literal["tables", "rows"], fault: Literal["one-count", "own-size"] | None = None
) -> Callable[[str, float], Subject]:
    """Return the maker of a subject that counts by group."""
    return lambda name, epsilon: GroupCounts(name, epsilon, told, fault)
