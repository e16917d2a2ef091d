"""The kinds of steps that compare two deployments, which differ only in who is in which group.

**Output** is compared as a set of lines, file names and sizes. An item that a sound server writes with a probability of
q, whoever the people are, is in all of k runs of one twin and in none of k of the other with a probability of at most
(q (1 - q))^k <= 4^-k; a server is accused after 13 such pairs of runs.

**Call times** are compared by signs. Two requests are made to both twins: one about one group at one twin and the other
group at the other twin, and the reverse. The difference of their times at one twin, less that at the other, is positive
as often as negative, however long a twin or a request takes by itself. Each call's place in its turn is random. An
accusation must be repeated with twins that are started anew.
"""

from __future__ import annotations

import math
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sim.conformance import traces
from sim.conformance.audits import AuditStep
from sim.conformance.calls import CallResult, ProtocolViolation
from sim.conformance.command import Surroundings
from sim.conformance.disk import ledger_files, start_anew
from sim.conformance.services import Bought, on
from sim.conformance.vocabulary import Predictions, Words
from sim.conformance.world import CaseState, NotRun

TWINS = ("twin-a", "twin-b")

_PAIRS_MAX = 13

_UNTIMED_TURNS = 16
_TURNS = 128
_FIRST_TURNS = 32
_FIRST_SHARE = 0.65
_SIGN_TAIL = math.sqrt(1e-7 / 16)
"""Significance level of one of 16 comparisons; each must accuse after two starts, so all together have 1e-7."""
_SLOWER, _SLOWER_SECONDS = 1.2, 0.002
_APART_SECONDS = 0.0003

_TIMES = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\d\d:\d\d:\d\d(?:[.,]\d+)?"
    r"|\b1[6-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?\b"
    r"|\b\d+(?:\.\d+)?(?:e-?\d+)? ?(?:seconds?|s|ms|us|µs|ns)\b"
    r"|0x[0-9a-f]+"
    r"|(?<=127\.0\.0\.1:)\d+"
)


class Written(Words):
    """A step that makes the same calls to all services of both twins, and demands the same logs, files and sizes."""

    do: Literal["written"]
    requests: tuple[Bought, ...] = Field(min_length=1)

    def run(self, world: CaseState) -> None:
        """Make the calls, and compare the results."""
        always = ever = self._run_both(world, search=True)
        for _ in range(_PAIRS_MAX - 1):
            if not self._alone(always, ever):
                return
            more = self._run_both(world)
            always = [one & other for one, other in zip(always, more, strict=True)]
            ever = [one | other for one, other in zip(ever, more, strict=True)]
        if alone := self._alone(always, ever):
            raise ProtocolViolation(f"what it writes depends on who is in which group: {alone[0]}")

    def _alone(self, always: list[set[str]], ever: list[set[str]]) -> list[str]:
        """Return the items that one twin always writes and the other never."""
        return sorted((always[0] - ever[1]) | (always[1] - ever[0]))

    def _run_both(self, world: CaseState, *, search: bool = False) -> list[set[str]]:
        return [self._run_one(world, name, search=search) for name in TWINS]

    def _run_one(self, world: CaseState, name: str, *, search: bool) -> set[str]:
        """Return the output of a fresh run: each line and file, numbered among equal ones."""
        started = time.time() - 1
        scratch = Path(tempfile.mkdtemp(prefix=name, dir=_folder(world)))
        start_anew(world, name, Surroundings(variables={"TMPDIR": str(scratch)}))
        world.exact.clear()
        address = world.subject.address(name)
        asks = [on(service, request) for service in world.services for request in self.requests]
        for number, request in enumerate(each for each in asks if each is not None):
            step = request.model_copy(update={"deployment": name, "id": f"{request.id}-{number}"})
            asked = step.asked(world)
            seen = step.ask(world, asked)
            _require_sound(seen)
            if seen.answered:
                step.check_answer(world, asked, seen)
        world.forget_connections()
        world.subject.stop(name, gently=True)
        log, ledger = world.subject.log(name), ledger_files(world, name)
        place, shown = world.subject.place(name), world.subject.shown(name)
        given = [place / each.name for each in (world.subject.target.folder / name).iterdir()]
        given += [shown / f"{part}.pem" for part in ("authority", "certificate", "key")]
        own = list(traces.files_of([place, shown, scratch], [*given, *ledger]))
        if search:
            _search(world, name, log, [*own, *traces.files_elsewhere(started, _folder(world))])
        # Of the ledger's files only the names are compared.
        files = [f"{path.name}, {path.stat().st_size} bytes" for path in own]
        files += [f"{path.name} of the ledger" for path in ledger if path.exists()]
        lines = [_masked(line, name, address) for line in log.splitlines()]
        counted = Counter([*files, *lines])
        places = {f"{line} (line {number})" for number, line in enumerate(lines, 1)}
        return places | {f"{what} ({number})" for what, count in counted.items() for number in range(1, count + 1)}


def _search(world: CaseState, name: str, log: str, paths: Iterable[Path]) -> None:
    """Demand that neither a log nor a file reveals groups or exact gaps."""
    groups = world.people(name).protected
    if told := traces.told_by(log.encode(), groups, world.exact):
        raise ProtocolViolation(f"the log tells {told}")
    # Another tester may be making a kit of the same people.
    kit = {traces.read(path) for path in world.subject.target.folder.glob("*/*.csv")}
    for path in paths:
        data = traces.read(path)
        if data not in kit and (told := traces.told_by(data, groups, world.exact)):
            raise ProtocolViolation(f"the file {path.name} tells {told}")


def _masked(line: str, name: str, address: str) -> str:
    """Return a line without what depends on when and where it was written."""
    return _TIMES.sub("*", line.replace(name, "twin").replace(address, "*"))


def _folder(world: CaseState) -> Path:
    return world.subject.place(TWINS[0]).parent


class Timed(Words):
    """A step that makes calls to both twins in turn, and demands that their times do not depend on the groups.

    The models accept one group's members alone, or everybody else; or a single prediction, about a member, is NaN.
    """

    do: Literal["timed"]
    predictions: Literal["of a group", "of the others", "not a number"] = "of a group"
    metric: str = "sp"

    def run(self, world: CaseState) -> None:
        """Make the calls, and compare the results."""
        for name in TWINS:
            if name not in {place for _, place in world.open_channels}:
                start_anew(world, name, Surroundings())
        if self.metric not in world.about(TWINS[0]).metrics:
            raise NotRun(f"needs the metric {self.metric}")
        if not (accused := self._accused(world)):
            return
        for name in TWINS:  # a process may be slower than another for its whole life, by its place in memory
            start_anew(world, name, Surroundings())
        if accused & self._accused(world):
            raise ProtocolViolation("how long a call takes depends on who is in which group")

    def _accused(self, world: CaseState) -> frozenset[int]:
        """Make the calls, and return the numbers of the comparisons that accuse."""
        asked = self._both(world)
        rng = np.random.default_rng(1)
        seconds = np.empty((_TURNS, 2, 2))
        # A fresh process is slow at first: the last turns overwrite those before 0.
        for turn in range(-_UNTIMED_TURNS, _TURNS):
            for place in rng.permutation(4):
                twin, request = divmod(int(place), 2)
                seconds[turn, twin, request] = self._time(world, TWINS[twin], asked[request], f"{turn}-{request}")
            first = seconds[:_FIRST_TURNS]
            if turn + 1 == _FIRST_TURNS and all(signs.mean() < _FIRST_SHARE for signs in self._signs(first)):
                return frozenset()
        looks = enumerate(self._signs(seconds))
        return frozenset(number for number, signs in looks if signs.sum() >= _signs_that_accuse(len(signs)))

    def _signs(self, seconds: NDArray[np.float64]) -> Iterator[NDArray[np.bool_]]:
        # On a busy machine the fastest of a few calls tells more than each of them.
        fastest = seconds.reshape(-1, 2, 2, 2).min(axis=1)
        for each in (seconds, fastest):
            apart = (each[:, 0, 0] - each[:, 0, 1]) - (each[:, 1, 0] - each[:, 1, 1])
            yield apart > _APART_SECONDS
            yield apart < -_APART_SECONDS
        for one, other in (*zip(seconds[:, 0].T, seconds[:, 1].T, strict=True), fastest.min(axis=2).T):
            yield one > _SLOWER * other + _SLOWER_SECONDS
            yield other > _SLOWER * one + _SLOWER_SECONDS

    def _both(self, world: CaseState) -> list[NDArray[np.float64]]:
        groups = [world.people(name).protected == 1 for name in TWINS]
        if self.predictions != "not a number":
            wanted = self.predictions == "of a group"
            return [(group == wanted).astype(np.float64)[None] for group in groups]
        found = []
        for inside, outside in (groups, groups[::-1]):
            rows = np.full((1, len(inside)), 0.5)
            rows[0, np.flatnonzero(inside & ~outside)[0]] = np.nan
            found.append(rows)
        return found

    def _time(self, world: CaseState, name: str, predictions: NDArray[np.float64], number: str) -> float:
        own = {"predictions": Predictions(group="advantaged" if np.isfinite(predictions).all() else None)}
        step = on(
            world.service,
            AuditStep(do="audit", deployment=name, id=f"timed-{world.step}-{number}", metric=self.metric, **own),
        )
        asked = replace(step.asked(world), predictions=predictions)
        began = time.perf_counter()
        seen: Any = step.ask(world, asked)
        took = time.perf_counter() - began
        _require_sound(seen)
        if seen.answered != (world.service == "sanitise" or self.predictions != "not a number"):
            raise ProtocolViolation(f"a call {seen.text}")
        return took


def _require_sound(seen: CallResult) -> None:
    """Raise Violation for a call that failed internally: its output and time are not compared."""
    if seen.reason == "INTERNAL":
        raise ProtocolViolation(f"a call {seen.text}")


def _signs_that_accuse(turns: int) -> int:
    """Return the fewest equal signs that a fair coin shows in `turns` with a probability of at most `_SIGN_TAIL`."""
    tail, count = 0, turns + 1
    while tail + math.comb(turns, count - 1) <= _SIGN_TAIL * 2**turns:
        count -= 1
        tail += math.comb(turns, count)
    return count
