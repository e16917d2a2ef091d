"""Run cases against a server, and yield their outcomes."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sim.conformance.calls import ProtocolViolation
from sim.conformance.cases import ConformanceCase
from sim.conformance.held import Hold
from sim.conformance.services import on
from sim.conformance.steps import ONCE
from sim.conformance.subject import ServerUnderTest
from sim.conformance.world import PLACES, CaseState, NotRun, Over, Service, closing

Verdict = Literal["passed", "failed", "known failure", "now passes", "not run"]

BAD: frozenset[Verdict] = frozenset({"failed", "now passes"})
"""Verdicts that end a test with status 1; a known failure that passes is one, so that the list stays true."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case; `text` says what was wrong, or what is missing to run it."""

    case: ConformanceCase
    verdict: Verdict
    text: str
    seconds: float


def run(
    subject: ServerUnderTest,
    server: str,
    cases: Iterable[ConformanceCase],
    known: frozenset[str] = frozenset(),
    on_start: Callable[[ConformanceCase], None] = lambda _: None,
) -> Iterator[Outcome]:
    """Run cases, `known` failures too, on a party's server; those with a long wait begin first and end last."""
    nonce = secrets.token_hex(6)
    waiting: list[tuple[float, ConformanceCase, _Course, float]] = []
    for case in sorted(cases, key=lambda case: all(step.do != "later" for step in case.steps)):
        on_start(case)
        began = time.monotonic()
        course = _course(subject, server, case, f"{nonce}-{case.number}")
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


_SELLS = {"by_group": "counts by group", "sanitise": "releases attributes"}

_Course: TypeAlias = Generator[float, None, tuple[Verdict, str]]
"""A running case: it yields the times until which it waits, and returns its verdict and text."""


def _advance(course: _Course) -> float | tuple[Verdict, str]:
    """Continue a case until it waits or ends."""
    try:
        return next(course)
    except StopIteration as over:
        end: tuple[Verdict, str] = over.value
        return end


def _outcome(case: ConformanceCase, end: tuple[Verdict, str], known: frozenset[str], began: float) -> Outcome:
    verdict, text = end
    if case.number in known:
        verdict = {"passed": "now passes", "failed": "known failure"}.get(verdict, verdict)  # type: ignore[assignment]
    return Outcome(case, verdict, text, time.monotonic() - began)


def _course(subject: ServerUnderTest, server: str, case: ConformanceCase, nonce: str) -> _Course:
    """Run a case on its services: each step on all or, if it holds calls or says `apart`, the whole case on each."""
    whole = case.apart or any(isinstance(step, Hold) for step in case.steps)
    shared = [service for service in case.services if not whole and service not in PLACES]
    rounds = [*([shared] if shared else []), *([service] for service in case.services if service not in shared)]
    for services in rounds:
        place = PLACES.get(services[0], case.deployment)
        world = CaseState(subject, server, place, nonce, case.accounts, services[0])
        verdict, text = yield from _round(world, case, services)
        if verdict != "passed" and (services[0] == case.services[0] or verdict == "failed"):
            return verdict, text
    return "passed", ""


def _round(world: CaseState, case: ConformanceCase, services: list[Service]) -> _Course:
    try:
        with closing(world):
            world.about()
            services = [service for service in services if world.offers(service)]
            if not services:
                raise NotRun(f"needs a server that {_SELLS[world.service]}")
            world.services = tuple(services)
            for step in case.steps:
                world.step += 1
                if step.do == "later":
                    yield time.monotonic() + step.seconds
                for world.service in services[: 1 if step.do in ONCE else None]:
                    if (own := on(world.service, step)) is not None:
                        own.run(world)
            world.step += 1
            world.balance()
    except Over:
        return "passed", ""
    except NotRun as missing:
        return "not run", str(missing)
    except ProtocolViolation as violation:
        where = f"step {world.step}" if world.step <= len(case.steps) else "afterwards"
        named = "" if world.service == "audit" else f", {world.service}"
        return "failed", f"{where}{named}: {violation}"
    return "passed", ""
