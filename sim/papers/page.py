"""The page of claims: a table for each paper, in Markdown."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

from sim.papers.claim import Prediction
from sim.papers.ledger import ClaimStatus
from sim.papers.verdict import STATUSES, measured
from sim.report.estimates import IntervalEstimate
from sim.report.reproduction import NOT_REPRODUCED, REPRODUCED, UNDECIDED, judged, region_text, short

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
