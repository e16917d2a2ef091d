"""The page of claims: a table for each paper, in Markdown."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

from sim.papers.claim import Prediction
from sim.papers.ledger import Entry
from sim.papers.verdict import MEANING, STATUSES, measured
from sim.report.estimates import Estimate
from sim.report.reproduction import NOT_REPRODUCED, REPRODUCED, UNDECIDED, judged, region_text, short

_SHOWN = 2
"""Most predictions of a claim in the table, the deciding ones first."""

_ORDER = (NOT_REPRODUCED, UNDECIDED, REPRODUCED)

_COLUMNS = "| id | where | claim | status | found |\n|---|---|---|---|---|"
_HEAD = (
    "# The claims\n\nWritten by `fairwall papers list --page docs/claims-table.md`. [What the words mean](papers.md).\n"
)


def markdown(entries: Sequence[Entry]) -> str:
    """Return the page."""
    many = Counter(each.status for each in entries)
    counts = "\n".join(f"| {each} | {many[each]} | {MEANING[each]} |" for each in STATUSES if many[each])
    parts = [
        _HEAD,
        f"{len(entries)} claims.\n",
        f"| status | claims | |\n|---|---|---|\n{counts}\n",
    ]
    for (key, title), own in itertools.groupby(entries, lambda entry: (entry.paper.key, entry.paper.title)):
        rows = "\n".join(map(_row, own))
        parts.append(f"## {key}\n\n{title}\n\n{_COLUMNS}\n{rows}\n")
    return "\n".join(parts)


def _row(entry: Entry) -> str:
    claim = entry.claim
    cells = (claim.id, claim.where, claim.says, entry.status, told(entry))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def told(entry: Entry) -> str:
    """Return in a few words what a claim's verdict rests on."""
    claim, found = entry.claim, entry.evidence
    if claim.test is None or found is None:
        return claim.missing or ""
    if claim.test.check is not None:
        return found.counterexample or found.found
    judged_first = sorted(
        zip(claim.test.predicts, measured(claim.test, found.values), strict=True),
        key=lambda pair: _ORDER.index(judged(pair[1], pair[0].region)),
    )
    texts = [f"{number(ours, exact=claim.test.exact)}, {predicted(each)}" for each, ours in judged_first[:_SHOWN]]
    more = len(judged_first) - _SHOWN
    return "; ".join([*texts, *([f"{more} more"] if more > 0 else [])])


def number(ours: Estimate, *, exact: bool) -> str:
    """Return a measured mean in words, with its interval, if any."""
    if exact or ours.low is None or ours.high is None:
        return short(ours.mean)
    return f"{short(ours.mean)} ({short(ours.low)} to {short(ours.high)})"


def predicted(prediction: Prediction) -> str:
    """Return a predicted region as text."""
    return f"predicted {region_text(prediction.region)}"
