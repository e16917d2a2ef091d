"""The kinds of steps that compare two deployments, which differ only in who is in which group.

**Output** is compared as a set of lines, file names and sizes. An item that a sound server writes with a probability of
q, whoever the people are, is in all of k runs of one twin and in none of k of the other with a probability of at most
(q (1 - q))^k <= 4^-k; a server is accused after 13 such pairs of runs.

**Call times** are compared by signs. Two requests are made to both twins: one about one group at one twin and the other
group at the other twin, and the reverse. The difference of their times at one twin, less that at the other, is positive
as often as negative, however long a twin or a request takes by itself. Each call's place in its turn is random. An
accusation must be repeated with twins that are started anew.

Output is also searched for protected data: exact gaps and groups, in any simple form.
"""

from __future__ import annotations

import base64
import math
import os
import re
import stat
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fairwall.arrays import Bools, Bytes, Floats
from sim.conformance import bounds
from sim.conformance.audits import AuditStep
from sim.conformance.calls import CallResult, ProtocolViolation
from sim.conformance.command import Surroundings
from sim.conformance.disk import ledger_files, start_anew
from sim.conformance.services import Bought, on
from sim.conformance.step_base import Predictions, Words
from sim.conformance.world import CaseState, NotRun

_TAIL = 1e-10
_DIGITS = (4, 6, 9)
_CROWDED = 20.0
"""Largest density of a text's numbers near gaps, relative to an even spread."""
_NUMBER = re.compile(r"(\d+)\.(\d{2,})")
_BETWEEN = re.compile(r"[,;\t ]+")
_COLUMNS = 8
_COPIES = 3
"""Fewest different gaps, exact to the last bit, that are no accident in a foreign file."""

TESTERS = "fairwall-conformance-"
"""Prefix of the folders of testers, several of which may run."""

_BYTES_MAX = 32 << 20
_FILES_MAX = 2000
_DEPTH = 3

_OUTSIDE = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/var/log")  # noqa: S108 - looked at, not written to


def told_by(data: bytes, groups: Bytes, exact: Sequence[float]) -> str:
    """Return what data reveals: the groups, shape (people,), or exact gaps; "" if nothing.

    Rounded gaps occur in a text with many numbers by accident too, so they are reported if as many occur with a
    probability below 1e-10. Packed bits of 48 people occur in a megabyte of random bytes with a probability of 2^-25.
    """
    if any(form in data for form in _forms(groups)) or _is_a_column(data.decode("latin-1"), groups):
        return "who is in which group"
    # Fractions of small numbers, and short decimals, occur anywhere.
    gaps = [gap for gap in dict.fromkeys(exact) if abs(Fraction(gap).limit_denominator(10_000) - Fraction(gap)) > 1e-12]
    whole = [[struct.pack(f"{order}d", sign * gap) for order in "<>" for sign in (1, -1)] for gap in gaps]
    if sum(any(form in data for form in forms) for forms in whole) >= min(_COPIES, len(gaps) or 1):
        return "exact gaps"
    numbers = _NUMBER.findall(data.decode("latin-1"))
    for digits in _DIGITS:
        for scale in (1, 100):
            places = digits if scale == 1 else digits - 2
            long = [(whole, part[:places]) for whole, part in numbers if len(part) >= places]
            written = set(long)
            told = sum(not written.isdisjoint(_rounded(scale * abs(gap), places)) for gap in gaps)
            if bounds.poisson(told, _CROWDED * max(len(long), 1) * len(gaps) * 10.0**-digits) < _TAIL:
                return "exact gaps"
    return ""


def _is_a_column(text: str, groups: Bytes) -> bool:
    """Return whether a table has the groups, as 0 and 1, in one of its first columns."""
    rows = [_BETWEEN.split(line.strip())[:_COLUMNS] for line in text.splitlines()]
    wanted = ["".join(map(str, column.tolist())) for column in (groups, 1 - groups)]
    for place in range(_COLUMNS):
        column = "".join(row[place] if len(row) > place and row[place] in ("0", "1") else "?" for row in rows)
        if any(form in column for form in wanted):
            return True
    return False


def _rounded(value: float, places: int) -> set[tuple[str, str]]:
    """Return a number to `places` digits, rounded and cut off, as the parts before and after its point."""
    cut = math.floor(value * 10**places) / 10**places
    before = [f"{each:.{places}f}".partition(".") for each in (value, cut)]
    return {(whole, part) for whole, _, part in before}


def files_of(folders: Sequence[Path], without: Sequence[Path]) -> Iterator[Path]:
    """Yield the files in folders at any depth, except those of `without` and very large ones."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path not in without and path.is_file() and path.stat().st_size <= _BYTES_MAX:
                yield path


def files_elsewhere(since: float, excluded: Path) -> Iterator[Path]:
    """Yield files that anybody has written since a time: near the usual roots, outside the tester's folder."""
    roots = dict.fromkeys(
        Path(root).resolve() for root in (*_OUTSIDE, tempfile.gettempdir(), Path.cwd(), Path.home()) if root
    )
    count = 0
    for root in roots:
        for folder, names, files in os.walk(root):
            here = Path(folder)
            near = len(here.parts) - len(root.parts) < _DEPTH
            names[:] = [name for name in names if near and here / name != excluded and not name.startswith(TESTERS)]
            for name in files:
                path = here / name
                try:
                    found = path.lstat()
                except OSError:
                    continue
                if found.st_mtime >= since and stat.S_ISREG(found.st_mode) and found.st_size <= _BYTES_MAX:
                    yield path
                    count += 1
                    if count >= _FILES_MAX:
                        return


def read(path: Path) -> bytes:
    """Return a file's bytes, or b"" if it is gone or not readable."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _forms(groups: Bytes) -> Iterator[bytes]:
    for column in (groups.astype(np.uint8), 1 - groups.astype(np.uint8)):
        values = column.tolist()
        for between in ("", " ", ",", ", ", "\n", ";", "\t"):
            yield between.join(map(str, values)).encode()
            yield between.join(f"{value}.0" for value in values).encode()
            yield between.join(("true" if value else "false") for value in values).encode()
            yield between.join(str(bool(value)) for value in values).encode()
            if between:
                yield between.join(map(str, np.flatnonzero(column).tolist())).encode()
        yield column.tobytes()
        for kind in ("<i2", "<i4", "<i8", "<f4", "<f8", ">i4", ">i8", ">f8"):
            yield column.astype(kind).tobytes()
        for packed in (np.packbits(column).tobytes(), np.packbits(column, bitorder="little").tobytes()):
            for each in (packed, packed[::-1]):
                yield each
                yield each.hex().encode()
                yield each.hex().upper().encode()
                yield base64.b64encode(each)


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
        own = list(files_of([place, shown, scratch], [*given, *ledger]))
        if search:
            _search(world, name, log, [*own, *files_elsewhere(started, _folder(world))])
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
    if told := told_by(log.encode(), groups, world.exact):
        raise ProtocolViolation(f"the log tells {told}")
    # Another tester may be making a kit of the same people.
    kit = {read(path) for path in world.subject.target.folder.glob("*/*.csv")}
    for path in paths:
        data = read(path)
        if data not in kit and (told := told_by(data, groups, world.exact)):
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

    def _signs(self, seconds: Floats) -> Iterator[Bools]:
        # On a busy machine the fastest of a few calls tells more than each of them.
        fastest = seconds.reshape(-1, 2, 2, 2).min(axis=1)
        for each in (seconds, fastest):
            apart = (each[:, 0, 0] - each[:, 0, 1]) - (each[:, 1, 0] - each[:, 1, 1])
            yield apart > _APART_SECONDS
            yield apart < -_APART_SECONDS
        for one, other in (*zip(seconds[:, 0].T, seconds[:, 1].T, strict=True), fastest.min(axis=2).T):
            yield one > _SLOWER * other + _SLOWER_SECONDS
            yield other > _SLOWER * one + _SLOWER_SECONDS

    def _both(self, world: CaseState) -> list[Floats]:
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

    def _time(self, world: CaseState, name: str, predictions: Floats, number: str) -> float:
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
