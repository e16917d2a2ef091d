"""The ledger: every claim with its evidence and its verdict, and whether the recorded verdicts still follow."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairwall.errors import UserError
from sim.papers import evidence as kept
from sim.papers.claim import Claim, ClaimTest, Paper
from sim.papers.evidence import Evidence
from sim.papers.finding import Finding
from sim.papers.verdict import UNPLAYED, verdict

_LAST_DIGITS = 1e-6
"""By how little a figure may differ that is computed again, on another processor or with other libraries."""


@dataclass(frozen=True)
class Entry:
    """A claim and where it stands: a verdict, computed from the evidence, or why there is none."""

    paper: Paper
    claim: Claim
    evidence: Evidence | None
    status: str


def entries(papers: Sequence[Paper]) -> list[Entry]:
    """Put every claim beside its evidence; UserError if evidence is not as it was written."""
    return [entry(paper, claim) for paper in papers for claim in paper.claims]


def entry(paper: Paper, claim: Claim) -> Entry:
    """Put one claim beside its evidence; UserError if that is not as it was written."""
    if claim.test is None:
        assert claim.status is not None, "either has a test or a status"
        return Entry(paper, claim, None, claim.status)
    found = kept.read(paper, claim)
    if found is None or not _is_of(found, claim, claim.test):
        return Entry(paper, claim, None, UNPLAYED)
    return Entry(paper, claim, found, judge(claim.test, found, paper))


def to_run(paper: Paper, claim: Claim) -> Entry:
    """Put a claim that is to be tested beside its evidence, if that is as it was written."""
    try:
        return entry(paper, claim)
    except UserError:
        return Entry(paper, claim, None, UNPLAYED)


def _is_of(found: Evidence, claim: Claim, test: ClaimTest) -> bool:
    return (found.claim, found.test) == (claim.id, kept.digest_of(test)) and set(test.data) <= found.data.keys()


def judge(test: ClaimTest, found: Evidence, paper: Paper) -> str:
    """Compute a verdict from evidence; UserError if it is of another test."""
    if len(found.values) != len(test.predicts) or any(not units for units in found.values):
        raise UserError(f"{kept.place(paper.evidence, found.claim)}: measured by another test; measure it again")
    return verdict(test, found.values, found.counterexample)


def faults(papers: Sequence[Paper], tell: Callable[[str], None] = lambda _: None) -> Iterator[str]:
    """Compute every verdict again; tell where it is not the recorded one, a line each: the claim, and what differs.

    Checks that need no file of the user's are executed anew, and have to find the same figures. ``tell`` is told of
    each claim before it is looked at.
    """
    for paper in papers:
        for claim in paper.claims:
            tell(claim.id)
            if claim.test is not None:
                yield from (f"{claim.id}: {fault}" for fault in _faults(paper, claim, claim.test))
        for stray in sorted(paper.evidence.glob(f"{paper.key}-*.json")):
            if stray.stem not in {claim.id for claim in paper.claims if claim.test is not None}:
                yield f"{stray.stem}: evidence of a claim that is not tested"


def _faults(paper: Paper, claim: Claim, test: ClaimTest) -> Iterator[str]:
    try:
        found = kept.read(paper, claim)
        if found is None:
            return
        if not _is_of(found, claim, test):
            yield "its evidence was measured by another test; measure it again"
            return
        now = judge(test, found, paper)
    except UserError as error:
        yield str(error)
        return
    if now != found.verdict:
        yield f"recorded as {found.verdict}, and {now} by its evidence"
    if test.check is not None and not test.data:
        again = function(test.check)()
        if not _alike(again, found):
            yield f"its check finds otherwise now: {again.counterexample or again.found}"


def _alike(again: Finding, found: Evidence) -> bool:
    if bool(again.counterexample) != bool(found.counterexample) or again.figures.keys() != found.figures.keys():
        return False
    return all(
        math.isclose(value, found.figures[key], rel_tol=_LAST_DIGITS, abs_tol=_LAST_DIGITS)
        for key, value in again.figures.items()
    )


def function(name: str) -> Callable[..., Any]:
    """Find the function of a check, a measurement or a figure; UserError if there is none."""
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module if "." in module else f"sim.papers.checks.{module}"), attribute)
    except (ImportError, AttributeError):
        found = None
    if not callable(found):
        raise UserError(f"{name}: no such function")
    return found  # type: ignore[no-any-return]
