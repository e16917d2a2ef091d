"""The ledger of claims with their evidence and verdicts, and the check that recorded verdicts still follow."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairwall.errors import UserError
from sim.papers import evidence as kept
from sim.papers.claim import ClaimTest, Paper, PaperClaim
from sim.papers.evidence import ClaimEvidence
from sim.papers.finding import CheckResult
from sim.papers.verdict import UNPLAYED, verdict

_LAST_DIGITS = 1e-6
"""Largest difference between a figure and its recomputation on another processor or with other libraries."""


@dataclass(frozen=True)
class ClaimStatus:
    """A claim and its status: a verdict, computed from the evidence, or why there is none."""

    paper: Paper
    claim: PaperClaim
    evidence: ClaimEvidence | None
    status: str


def entries(papers: Sequence[Paper]) -> list[ClaimStatus]:
    """Return every claim with its evidence; UserError if evidence was changed."""
    return [entry(paper, claim) for paper in papers for claim in paper.claims]


def entry(paper: Paper, claim: PaperClaim) -> ClaimStatus:
    """Return one claim with its evidence; UserError if the evidence was changed."""
    if claim.test is None:
        assert claim.status is not None, "either has a test or a status"
        return ClaimStatus(paper, claim, None, claim.status)
    found = kept.read(paper, claim)
    if found is None or not _is_of(found, claim, claim.test):
        return ClaimStatus(paper, claim, None, UNPLAYED)
    return ClaimStatus(paper, claim, found, judge(claim.test, found, paper))


def to_run(paper: Paper, claim: PaperClaim) -> ClaimStatus:
    """Return a claim to be tested, with its evidence if that was not changed."""
    try:
        return entry(paper, claim)
    except UserError:
        return ClaimStatus(paper, claim, None, UNPLAYED)


def _is_of(evidence: ClaimEvidence, claim: PaperClaim, test: ClaimTest) -> bool:
    return (evidence.claim, evidence.test) == (claim.id, kept.digest_of(test)) and set(
        test.data
    ) <= evidence.data.keys()


def judge(test: ClaimTest, evidence: ClaimEvidence, paper: Paper) -> str:
    """Return a verdict from evidence; UserError if the evidence is of another test."""
    if len(evidence.values) != len(test.predicts) or any(not units for units in evidence.values):
        raise UserError(f"{kept.place(paper.evidence, evidence.claim)}: measured by another test; measure it again")
    return verdict(test, evidence.values, evidence.counterexample)


def faults(papers: Sequence[Paper], tell: Callable[[str], None] = lambda _: None) -> Iterator[str]:
    """Compute every verdict again; yield a line for each that differs from the recorded one, with the claim's id.

    Checks that need no file of the user's are executed again, and must find the same figures. ``tell`` is called with
    the id of each claim, before its check.
    """
    for paper in papers:
        for claim in paper.claims:
            tell(claim.id)
            if claim.test is not None:
                yield from (f"{claim.id}: {fault}" for fault in _faults(paper, claim, claim.test))
        for stray in sorted(paper.evidence.glob(f"{paper.key}-*.json")):
            if stray.stem not in {claim.id for claim in paper.claims if claim.test is not None}:
                yield f"{stray.stem}: evidence of a claim that is not tested"


def _faults(paper: Paper, claim: PaperClaim, test: ClaimTest) -> Iterator[str]:
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


def _alike(again: CheckResult, evidence: ClaimEvidence) -> bool:
    if bool(again.counterexample) != bool(evidence.counterexample) or again.figures.keys() != evidence.figures.keys():
        return False
    return all(
        math.isclose(value, evidence.figures[key], rel_tol=_LAST_DIGITS, abs_tol=_LAST_DIGITS)
        for key, value in again.figures.items()
    )


def function(name: str) -> Callable[..., Any]:
    """Return the function of a check, a measurement or a figure; UserError if there is none."""
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module if "." in module else f"sim.papers.checks.{module}"), attribute)
    except (ImportError, AttributeError):
        found = None
    if not callable(found):
        raise UserError(f"{name}: no such function")
    return found  # type: ignore[no-any-return]
