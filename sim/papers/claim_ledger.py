"""The ledger of claims: evidence in files, the verdict that follows, the check of both, and the page of claims."""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fairwall.errors import UserError
from sim.papers.claim import ClaimTest, Paper, PaperClaim, Prediction
from sim.papers.finding import CheckResult
from sim.report.estimates import IntervalEstimate, estimate
from sim.report.reproduction import NOT_REPRODUCED, REPRODUCED, UNDECIDED, judged, region_text, short

_BYTES_MAX = 2**20


@dataclass(frozen=True)
class ClaimEvidence:
    """The evidence for a claim, by its id, measured by one version of the code.

    ``test`` is a digest of what was measured and how, not of what was predicted. ``source`` is what was played or read,
    with its settings; ``data`` the SHA-256 of the tables, by name; ``values`` the value of each unit, for each
    prediction. A check has ``figures``, its result in words, and a counterexample, empty if it found none.

    Digests of its content and of its test make a changed number, or a changed test, noticed. Neither is a signature:
    with a number and the digest both changed it is other evidence, which only measuring again tells from ours.
    """

    claim: str
    test: str
    verdict: str
    code: str
    source: Mapping[str, Any]
    data: Mapping[str, str]
    seconds: float
    values: tuple[tuple[float, ...], ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    found: str = ""
    counterexample: str = ""

    def text(self) -> str:
        """Return the file's content."""
        content = asdict(self)
        for key in ("values", "figures", "found", "counterexample"):
            if not content[key]:
                del content[key]
        return json.dumps({**content, "digest": _digest(content)}, indent=1, allow_nan=False) + "\n"


def digest_of(test: ClaimTest) -> str:
    """Return the digest of what a test measures and how."""
    content = test.model_dump(
        mode="json", include={"play", "table", "measure", "check", "set", "trials", "seed", "unit"}
    )
    content["values"] = [[each.value, each.of, each.pair] for each in test.predicts]
    return _digest(content)[:16]


def read(paper: Paper, claim: PaperClaim) -> ClaimEvidence | None:
    """Read a claim's evidence; None if there is none, UserError if the file was changed."""
    path = place(paper.evidence, claim.id)
    try:
        if path.stat().st_size > _BYTES_MAX:
            raise UserError(f"{path}: more than {_BYTES_MAX:,} bytes")
        content = json.loads(path.read_bytes())
        stated = content.pop("digest")
        if stated != _digest(content):
            raise UserError(f"{path}: its digest is another: a number was changed since it was measured")
        values = tuple(tuple(map(float, units)) for units in content.pop("values", ()))
        if not all(math.isfinite(value) for units in values for value in units):
            raise ValueError
        return ClaimEvidence(**content, values=values)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UserError(f"{path}: is no evidence as `fairwall papers run` writes it") from None


def write(folder: Path, evidence: ClaimEvidence) -> Path:
    """Write a claim's evidence to a folder; UserError if it cannot be written."""
    path = place(folder, evidence.claim)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(evidence.text(), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}; name another folder with --out") from None
    return path


def place(folder: Path, claim: str) -> Path:
    """Return the path of a claim's evidence."""
    return folder / f"{claim}.json"


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=list).encode()).hexdigest()


REFUTED = "refuted"
NOT_TESTED, LOST, UNPLAYABLE = "not tested", "lost", "unplayable"
UNPLAYED = "unplayed"

MEANING = {
    REPRODUCED: "the 95% interval lies wholly inside the predicted region; or a check found no counterexample",
    NOT_REPRODUCED: "the 95% interval lies wholly outside the predicted region",
    UNDECIDED: "the 95% interval has points on both sides, or there are too few units for one",
    REFUTED: "a counterexample was executed",
    NOT_TESTED: "the claim is about other data than there are here",
    LOST: "the paper's text does not say what a test needs",
    UNPLAYABLE: "something is missing for a test",
    UNPLAYED: "there is a test without evidence: `fairwall papers run` plays it",
}
STATUSES = tuple(MEANING)


def measured(test: ClaimTest, values: Sequence[Sequence[float]]) -> list[IntervalEstimate]:
    """Return the estimate of each predicted value; ``values`` as for `verdict`."""
    return [_estimate(test, units, number) for number, units in enumerate(values)]


def verdict(test: ClaimTest, values: Sequence[Sequence[float]], counterexample: str = "") -> str:
    """Return the verdict on a claim: "reproduced", "not reproduced", "undecided" or "refuted".

    ``values`` has, for each prediction, the value of each unit, at least one (ValueError if their number is not that of
    the predictions); ``counterexample`` is a check's, empty where it found none.

    Every prediction is judged by `sim.report.reproduction.judged`, with the 95% interval of the mean over units. A
    claim of several predictions is reproduced if all of them are, not reproduced if one is not, and else undecided. A
    theorem is refuted by an executed counterexample alone, and reproduced where its check found none.
    """
    if test.check is not None:
        return REFUTED if counterexample else REPRODUCED
    found = {
        judged(estimated, prediction.region)
        for estimated, prediction in zip(measured(test, values), test.predicts, strict=True)
    }
    if NOT_REPRODUCED in found:
        return NOT_REPRODUCED
    return REPRODUCED if found == {REPRODUCED} else UNDECIDED


def _estimate(test: ClaimTest, units: Sequence[float], number: int) -> IntervalEstimate:
    found = estimate(units, test.predicts[number].within)
    if test.exact:
        return IntervalEstimate(found.mean, found.mean, found.mean)
    return found if len(units) >= test.least else IntervalEstimate(found.mean)


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
    found = read(paper, claim)
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
    return (evidence.claim, evidence.test) == (claim.id, digest_of(test)) and set(test.data) <= evidence.data.keys()


def judge(test: ClaimTest, evidence: ClaimEvidence, paper: Paper) -> str:
    """Return a verdict from evidence; UserError if the evidence is of another test."""
    if len(evidence.values) != len(test.predicts) or any(not units for units in evidence.values):
        raise UserError(f"{place(paper.evidence, evidence.claim)}: measured by another test; measure it again")
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
        found = read(paper, claim)
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


_ORDER = (NOT_REPRODUCED, UNDECIDED, REPRODUCED)

_COLUMNS = "| id, where | claim | status | found (95% interval); predicted |\n|---|---|---|---|"
_HEAD = (
    "# The claims\n\nFor a reader of the papers: the [verdict](papers.md#what-a-verdict-says) on each claim, and the "
    "prediction that decides it\n(`fairwall papers show ID` has all). Written by `fairwall papers list --page "
    "docs/claims-table.md`.\n"
)


def markdown(entries: Sequence[ClaimStatus]) -> str:
    """Return the page."""
    many = Counter(each.status for each in entries)
    counts = ", ".join(f"{many[each]} {each}" for each in STATUSES if many[each])
    parts = [_HEAD, f"{len(entries)} claims: {counts}.\n"]
    for (key, title), own in itertools.groupby(entries, lambda entry: (entry.paper.key, entry.paper.title)):
        rows = "\n".join(map(_row, own))
        parts.append(f"## {key}\n\n{title}\n\n{_COLUMNS}\n{rows}\n")
    return "\n".join(parts)


def _row(entry: ClaimStatus) -> str:
    claim = entry.claim
    cells = (f"{claim.id}, {claim.where}", claim.says, entry.status, told(entry))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def told(entry: ClaimStatus) -> str:
    """Return in a few words what a claim's verdict rests on: of several predictions, the first that decides."""
    claim, found = entry.claim, entry.evidence
    if claim.test is None or found is None:
        return claim.missing or ""
    if claim.test.check is not None:
        return found.counterexample or found.found
    pairs = zip(claim.test.predicts, measured(claim.test, found.values), strict=True)
    first, ours = min(pairs, key=lambda pair: _ORDER.index(judged(pair[1], pair[0].region)))
    return f"{number(ours, exact=claim.test.exact)}; {region_text(first.region)}"


def number(ours: IntervalEstimate, *, exact: bool) -> str:
    """Return a measured mean in words, with its interval, if any."""
    if exact or ours.low is None or ours.high is None:
        return short(ours.mean)
    return f"{short(ours.mean)} ({short(ours.low)} to {short(ours.high)})"


def predicted(prediction: Prediction) -> str:
    """Return a predicted region as text."""
    return f"predicted {region_text(prediction.region)}"
