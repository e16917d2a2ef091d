"""The verdict on a claim: a function of its predictions and the measured values alone.

Every prediction is judged by `sim.report.reproduction.judged`, with the 95% interval of the mean over units. A claim of
several predictions is reproduced if all of them are, not reproduced if one is not, and else undecided. A theorem is
refuted by an executed counterexample alone, and reproduced where its check found none.
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.papers.claim import ClaimTest
from sim.report.estimates import IntervalEstimate, estimate
from sim.report.reproduction import NOT_REPRODUCED, REPRODUCED, UNDECIDED, judged

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
