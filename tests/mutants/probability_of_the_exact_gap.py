"""Tells how probable it is that the exact gap is above the threshold, not the answer."""

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.intervals.interval import probabilities_above
from compliance.mechanisms.mechanism import Question
from fairwall.rpc import arrays

KILLED_BY = "C524"

sound = service._answer


def settle(case, header, metric, predictions, context, *rest, **named):
    told = sound(case, header, metric, predictions, context, *rest, **named)
    if header.HasField("threshold"):
        question = Question(metric, predictions, case.records)
        gaps, values = question.gaps(), question.asked.strata[0].inside
        above = probabilities_above(gaps - 0.1, gaps + 0.1, values, metric, header.threshold, "laplace")
        told.probability_above.CopyFrom(arrays.to_message(above))
    return told


service._answer = settle

if __name__ == "__main__":
    main()
