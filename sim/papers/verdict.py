"""A claim's verdict: a function of what it predicts and of the values that were measured, and of nothing else.

Every prediction is judged by `sim.report.reproduction.judged`, with the 95% interval of the mean over units. A claim of
several predictions is reproduced if all of them are, not reproduced if one is not, and else undecided. A theorem is
refuted by an executed counterexample alone, and reproduced where its check looked for one and found none.
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.papers.claim import ClaimTest
from sim.report.estimates import Estimate, estimate
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


def measured(test: ClaimTest, values: Sequence[Sequence[float]]) -> list[Estimate]:
    """Estimate what each prediction is about; values as for `verdict`."""
    return [_estimate(test, units, number) for number, units in enumerate(values)]


def verdict(test: ClaimTest, values: Sequence[Sequence[float]], counterexample: str = "") -> str:
    """Judge a claim: "reproduced", "not reproduced", "undecided" or "refuted".

    ``values`` has, for each prediction, the value of each unit, at least one (ValueError if there are not as many
    values as predictions); ``counterexample`` is what a check found, empty where it found none.
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


def _estimate(test: ClaimTest, units: Sequence[float], number: int) -> Estimate:
    found = estimate(units, test.predicts[number].within)
    if test.exact:
        return Estimate(found.mean, found.mean, found.mean)
    return found if len(units) >= test.least else Estimate(found.mean)
