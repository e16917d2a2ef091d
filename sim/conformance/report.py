"""Format the outcomes of a test for people, for programs, and as JUnit's XML."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sim.conformance.run import BAD, Outcome
from sim.report.notation import plural

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
