"""Runs cases against a server, and says what came of each."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from sim.conformance.calls import Violation
from sim.conformance.cases import Case
from sim.conformance.subject import Subject
from sim.conformance.world import NotRun, World, closing

Verdict = Literal["passed", "failed", "known failure", "now passes", "not run"]

BAD: frozenset[Verdict] = frozenset({"failed", "now passes"})
"""What ends a test with status 1: also a known failure that is none any more, so that the list is kept true."""


@dataclass(frozen=True)
class Outcome:
    """What came of one case.

    Parameters
    ----------
    case : Case
    verdict : Verdict
    text : str
        What was wrong, or what is missing to run it.
    seconds : float
    """

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
    """Run cases one after another.

    Parameters
    ----------
    subject : Subject
    server : str
        The party that serves it.
    cases : iterable of Case
    known : frozenset of str
        The numbers of known failures: they are run like any other.
    on_start : callable

    Raises
    ------
    ConformanceError
        If the server does not start.
    """
    nonce = secrets.token_hex(6)
    for case in cases:
        on_start(case)
        began = time.monotonic()
        verdict, text = _verdict(subject, server, case, f"{nonce}-{case.number}")
        if case.number in known:
            verdict = {"passed": "now passes", "failed": "known failure"}.get(verdict, verdict)  # type: ignore[assignment]
        yield Outcome(case, verdict, text, time.monotonic() - began)


def _verdict(subject: Subject, server: str, case: Case, nonce: str) -> tuple[Verdict, str]:
    world = World(subject, server, case.deployment, nonce, case.accounts)
    try:
        with closing(world):
            world.about()
            for step in case.steps:
                world.step += 1
                step.run(world)
            world.step += 1
            world.balance()
    except NotRun as missing:
        return "not run", str(missing)
    except Violation as violation:
        where = f"step {world.step}" if world.step <= len(case.steps) else "afterwards"
        return "failed", f"{where}: {violation}"
    return "passed", ""
