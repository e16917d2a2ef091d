"""Counts and score sums by group, as `compliance.answers.groups.released` releases them, and their broken twins.

A question's protected attribute has two groups. Every third person from the sixth on is moved to a third group, so that
noise sums to 0 over more than two numbers; the person who changes group in a privacy audit stays in the first two.

Noise by group is drawn by rejection, so the service's function cannot answer many sessions in one call. It is called
once, without noise, for the exact numbers and their rates; its own `balanced_noise` or `ball_noise` then draws the
noise of all sessions at once. A test checks that one session is the service's release, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from compliance.answers.group_rows import balanced_noise, ball_noise
from compliance.answers.groups import released
from compliance.ledger.accountant import Loss, pure
from compliance.mechanisms.mechanism import BatchQuestion, Guarantee, MechanismAnswer
from compliance.noise.sampling import Noise, Seeded
from compliance.records.groups import Attribute, Grouped
from fairwall.arrays import Bools, Floats, Ints
from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.laws.groups.group_counts import SUM_STEP, noise_rate
from fairwall.laws.noise.row_noise import Ball
from fairwall.rpc.arrays import from_message
from fairwall.wire.v1.array_pb2 import Array
from sim.privacy_audit.recorded import NoiseRecorder
from sim.privacy_audit.subject import AuditedSession, PrivacyClaim

_ATTRIBUTE = Attribute("group", ("0", "1", "2"))


class _Silent:
    """Noise that is always 0, so that the release has the exact numbers."""

    def laplace(self, values: Floats, _scale: float, _step: float) -> Floats:
        return np.zeros_like(values)

    def bernoulli_exp(self, exponents: Floats) -> Bools:
        return np.ones(exponents.shape, np.bool_)


_SILENT: Any = _Silent()


@dataclass(frozen=True)
class GroupCounts:
    """A request for the selected people and the score sums of each group: a `AuditedSession`.

    A person who changes group changes two counts and two sums. With ``one-count`` the noise covers one of them:
    arrivals are counted, departures are not. With ``own-size`` each row of a ball has its own size T.
    """

    name: str
    epsilon: float
    told: Literal["tables", "rows"]
    fault: Literal["one-count", "own-size"] | None

    @property
    def claim(self) -> PrivacyClaim:
        """See `AuditedSession.claim`."""
        return PrivacyClaim(self.epsilon, 0.0)

    def refuses(self, metric: str) -> str | None:
        """See `AuditedSession.refuses`. Metrics with labels would only add strata."""
        return None if metric == "sp" else f"{self.name} does not answer metric {metric}"

    def loss(self, _metric: str, n0: int, n1: int, _people: int, queries: int) -> float:
        """See `AuditedSession.loss`: some models move all by the maximum. Separate tables cost about as much as one."""
        if n0 + n1 < 3:
            return 0.0
        if self.told == "rows":
            rows = 2 * queries + 1 if self.fault else 1  # one of people, and two of each model
            return rows * noise_rate(self._offered, 1.0)
        half = self._offered / 2
        return 2 * noise_rate(half) + queries * noise_rate(half / queries, 1 / SUM_STEP) / SUM_STEP

    def sessions(self, question: BatchQuestion, count: int, generator: np.random.Generator) -> Floats:
        """See `AuditedSession.sessions`."""
        noise, drawn = Seeded(generator), []
        for exact, law, unit in self._parts(self.release(question, _SILENT)):
            rows, groups = exact.shape
            if isinstance(law, Ball):
                of_all = ball_noise(noise, law, count)
            else:
                of_all = balanced_noise(noise, law, count * rows, groups).reshape(count, rows, groups)
            drawn.append(((exact / unit + of_all) * unit).reshape(count, -1))
        return np.hstack(drawn)

    def log_ratio(self, first: BatchQuestion, second: BatchQuestion, transcripts: Floats) -> Floats:
        """See `AuditedSession.log_ratio`: up to a constant, log-densities are -rate |noise|, or -rate T for a ball."""
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

    def release(self, question: BatchQuestion, noise: Noise) -> wire.GroupRelease:
        """Return the release of the service's own function."""
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
        # Noise for a distance of 1 at epsilon is noise for a distance of 2 at 2 epsilon.
        return 2 * self.epsilon if self.fault == "one-count" else self.epsilon

    def _parts(self, message: wire.GroupRelease) -> list[tuple[Floats, float | Ball, float]]:
        """Return each table's numbers, shape (rows, groups), the rate of their noise or its ball, and their unit."""
        tables = [(_read(table.counts), table.rate, 1.0) for table in message.tables]
        rows = [(_read(part.counts), Ball(part.rate, message.groups, tuple(part.reach)), 1.0) for part in message.rows]
        if self.fault == "own-size":
            rows = [
                (row[np.newaxis], replace(ball, reaches=(reach,)), unit)
                for counts, ball, unit in rows
                for row, reach in zip(counts, ball.reaches, strict=True)
            ]
        sums = [(_read(message.sums.sums), message.sums.rate, SUM_STEP)] if message.HasField("sums") else []
        return [*tables, *rows, *sums]


@dataclass(frozen=True)
class GroupMechanism:
    """Counts by group as a `Mechanism` for the grey-box test: noise is added to whole tables and rows."""

    subject: GroupCounts

    @property
    def name(self) -> str:
        """See `Mechanism.name`."""
        return self.subject.name

    title = name
    guarantee: Guarantee = "pure"

    @property
    def function(self) -> Callable[..., Any]:
        """The service's own function, whose lines the test names."""
        return released

    def refuses(self, metric: str, _epsilon: float, _delta: float) -> str | None:
        """See `Mechanism.refuses`."""
        return self.subject.refuses(metric)

    def cost(self, epsilon: float, _delta: float) -> Loss:
        """See `Mechanism.cost`."""
        return pure(epsilon)

    def release(
        self, question: BatchQuestion, _facts: object, epsilon: float, _delta: float, noise: Any
    ) -> MechanismAnswer:
        """Return the whole release, as bytes. See `Mechanism.release`."""

        def of_table(_: Noise, rate: float, rows: int, groups: int) -> _Added:
            return _Added(noise, "balanced", rate, (), balanced_noise(noise.source, rate, rows, groups))

        def of_ball(_: Noise, ball: Ball) -> list[_Added]:
            return [_Added(noise, "ball", ball.rate, ball.reaches, each) for each in ball_noise(noise.source, ball)]

        with patch.multiple("compliance.answers.groups", balanced_noise=of_table, ball_noise=of_ball):
            told = replace(self.subject, epsilon=epsilon).release(question, noise)
        return MechanismAnswer(np.frombuffer(told.SerializeToString(deterministic=True), np.uint8).astype(np.float64))


@dataclass(frozen=True)
class _Added:
    """Noise by group, recorded with the counts it is added to."""

    recorder: NoiseRecorder
    kind: Literal["balanced", "ball"]
    rate: float
    reaches: tuple[int, ...]
    noise: Ints

    __array_ufunc__ = None  # so that a table of counts delegates addition to __radd__

    def __radd__(self, exact: NDArray[Any]) -> NDArray[Any]:
        return self.recorder.kept(self.kind, (exact.shape, self.reaches), self.rate, exact, exact + self.noise)


def _read(message: Array) -> Floats:
    return np.asarray(from_message(message), np.float64)


def _size(parts: Floats) -> Floats:
    """Return the size T of each draw, given each row's half l1 norm over its reach, shape (draws, rows)."""
    found: Floats = np.ceil(parts).max(axis=1)
    return found


def group_counts(
    form: Literal["tables", "rows"], fault: Literal["one-count", "own-size"] | None = None
) -> Callable[[str, float], AuditedSession]:
    """Return the maker of a subject that counts by group."""
    return lambda name, epsilon: GroupCounts(name, epsilon, form, fault)
