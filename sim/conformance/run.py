"""Runs cases against a server, and says what came of each."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sim.conformance.calls import Violation
from sim.conformance.cases import Case
from sim.conformance.subject import Subject
from sim.conformance.world import NotRun, Over, World, closing

Verdict = Literal["passed", "failed", "known failure", "now passes", "not run"]

BAD: frozenset[Verdict] = frozenset({"failed", "now passes"})
"""What ends a test with status 1: also a known failure that is none any more, so that the list is kept true."""


@dataclass(frozen=True)
class Outcome:
    """What came of one case; `text` says what was wrong, or what is missing to run it."""

    case: Case
    verdict: Verdict
    text: str
    seconds: float


def run(
    subject: Subject,
    server: str,
    cases: Iterable[Case],
    known: frozenset[str] = frozenset(),
    on_start: Callable[[Case], None] = lambda _: None,
) -> Iterator[Outcome]:
    """Run cases against the server of a party, one after another; one that waits for long begins first and ends last.

    Known failures, told by their numbers, are run like any other.

    Raises
    ------
    ConformanceError
        If the server does not start.
    """
    nonce = secrets.token_hex(6)
    waiting: list[tuple[float, Case, _Course, float]] = []
    for case in sorted(cases, key=lambda case: all(step.do != "later" for step in case.steps)):
        on_start(case)
        began = time.monotonic()
        course = _course(World(subject, server, case.deployment, f"{nonce}-{case.number}", case.accounts), case)
        due = _advance(course)
        if isinstance(due, float):
            waiting.append((due, case, course, began))
            continue
        yield _outcome(case, due, known, began)
    for due, case, course, began in waiting:
        on_start(case)
        end: float | tuple[Verdict, str] = due
        while isinstance(end, float):
            time.sleep(max(0.0, end - time.monotonic()))
            end = _advance(course)
        yield _outcome(case, end, known, began)


_Course: TypeAlias = Generator[float, None, tuple[Verdict, str]]
"""The course of a case: the times that it waits for, and what came of it."""


def _advance(course: _Course) -> float | tuple[Verdict, str]:
    """Go on with a case until it waits or is over."""
    try:
        return next(course)
    except StopIteration as over:
        end: tuple[Verdict, str] = over.value
        return end


def _outcome(case: Case, end: tuple[Verdict, str], known: frozenset[str], began: float) -> Outcome:
    verdict, text = end
    if case.number in known:
        verdict = {"passed": "now passes", "failed": "known failure"}.get(verdict, verdict)  # type: ignore[assignment]
    return Outcome(case, verdict, text, time.monotonic() - began)


def _course(world: World, case: Case) -> _Course:
    try:
        with closing(world):
            world.about()
            for step in case.steps:
                world.step += 1
                if step.do == "later":
                    yield time.monotonic() + step.seconds
                step.run(world)
            world.step += 1
            world.balance()
    except Over:
        return "passed", ""
    except NotRun as missing:
        return "not run", str(missing)
    except Violation as violation:
        where = f"step {world.step}" if world.step <= len(case.steps) else "afterwards"
        return "failed", f"{where}: {violation}"
    return "passed", ""
