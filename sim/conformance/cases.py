"""Read cases, run them against a server, and format their outcomes."""

from __future__ import annotations

import secrets
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import Field, ValidationError

from fairwall import toml
from sim.conformance.calls import ProtocolViolation
from sim.conformance.inputs import ConformanceError, read_text
from sim.conformance.open_calls import Hold
from sim.conformance.services import on
from sim.conformance.step_base import Words
from sim.conformance.steps import ONCE, Step
from sim.conformance.subject import ServerUnderTest
from sim.conformance.world import PLACES, CaseState, NotRun, Over, Service, closing
from sim.report.notation import plural

SHIPPED = Path(__file__).with_name("cases")


class ConformanceCase(Words):
    """One numbered check: a letter for what is tested, and three digits.

    `sentence` is quoted verbatim from a page in docs/: it is what is tested. `subject` is the file's name. With
    `accounts` callers' remaining budgets are checked, as in every case but those that do so otherwise. A case is
    written for audits, and is run on each of the `services` (`sim.conformance.services`): each step on all of them or,
    if `apart`, the whole case on one after another.
    """

    number: str = Field(pattern=r"^[A-Z][0-9]{3}$")
    title: str
    sentence: str
    subject: str
    deployment: str = "main"
    accounts: bool = True
    services: tuple[Service, ...] = ("audit",)
    apart: bool = False
    steps: tuple[Step, ...] = Field(min_length=1)


def read(kind: str, folders: Iterable[Path] = ()) -> list[ConformanceCase]:
    """Read the shipped cases of one kind, a folder of ``cases/``, and the ``*.toml`` of other folders, by number."""
    found: dict[str, ConformanceCase] = {}
    for folder in (SHIPPED / kind, *folders):
        paths = sorted(folder.glob("*.toml"))
        if not paths:
            raise ConformanceError(f"{folder}: no case in it: a case stands in a file that ends in .toml")
        for path in paths:
            for case in _read(path):
                if case.number in found:
                    raise ConformanceError(f"{path}: {case.number}: there is a case of that number already")
                found[case.number] = case
    return [found[number] for number in sorted(found)]


def _read(path: Path) -> Iterator[ConformanceCase]:
    try:
        values = toml.loads(read_text(path))
    except toml.TomlError as error:
        raise ConformanceError(f"{path}: not valid TOML: {error}") from None
    if set(values) != {"case"} or not isinstance(values["case"], list):
        raise ConformanceError(f"{path}: a file of cases has [[case]] sections and nothing else")
    for entry in values["case"]:
        try:
            yield ConformanceCase.model_validate({"subject": path.stem, **entry})
        except ValidationError as error:
            raise ConformanceError(f"{path}: {_first(entry, error)}") from None


def _first(entry: Any, error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    number = entry.get("number", "a case without a number") if isinstance(entry, dict) else "a case"
    return f"{number}: {where}: {first['msg']}"


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


_MARKS = {
    "passed": "ok",
    "failed": "FAILED",
    "known failure": "known failure",
    "now passes": "NOW PASSES",
    "not run": "not run",
}


def line(outcome: Outcome) -> str:
    """Return an outcome as text; a failure comes with the broken sentence of the protocol."""
    case = outcome.case
    first = f"{case.number}  {_MARKS[outcome.verdict]:<13}  {case.title}"
    match outcome.verdict:
        case "failed" | "known failure":
            return f'{first}\n        protocol: "{case.sentence}"\n        {outcome.text}'
        case "now passes":
            return f"{first}\n        take it off the list of known failures"
        case "not run":
            return f"{first}: {outcome.text}"
    return first


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return one line with the number of outcomes by verdict."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    return f"{plural(len(outcomes), 'check')}: {told or 'nothing to run'}"


def as_record(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return outcomes as a record for JSON."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    return {
        "conforms": not any(outcome.verdict in BAD for outcome in outcomes),
        "counts": dict(counts),
        "checks": [
            {
                "number": outcome.case.number,
                "subject": outcome.case.subject,
                "title": outcome.case.title,
                "sentence": outcome.case.sentence,
                "verdict": outcome.verdict,
                "text": outcome.text,
                "seconds": round(outcome.seconds, 4),
            }
            for outcome in outcomes
        ],
    }


def as_junit(name: str, outcomes: Sequence[Outcome]) -> str:
    """Return outcomes as JUnit's XML."""
    suite = ElementTree.Element(
        "testsuite",
        name=f"fairwall test conformance {name}",
        tests=str(len(outcomes)),
        failures=str(sum(outcome.verdict in BAD for outcome in outcomes)),
        skipped=str(sum(outcome.verdict in ("not run", "known failure") for outcome in outcomes)),
        time=f"{sum(outcome.seconds for outcome in outcomes):.3f}",
    )
    for outcome in outcomes:
        case = outcome.case
        entry = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"{name}.{case.subject}",
            name=f"{case.number} {case.title}",
            time=f"{outcome.seconds:.3f}",
        )
        if outcome.verdict in BAD:
            text = outcome.text or "a known failure passes now"
            ElementTree.SubElement(entry, "failure", message=text).text = case.sentence
        elif outcome.verdict != "passed":
            ElementTree.SubElement(entry, "skipped", message=f"{outcome.verdict}: {outcome.text}")
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
