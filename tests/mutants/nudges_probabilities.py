"""Moves P(gap > threshold) a little towards what is true."""

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.mechanisms.mechanism import Question
from fairwall.rpc import arrays

KILLED_BY = "C524"

sound = service._answer


def settle(case, header, metric, predictions, context, *rest, **named):
    told = sound(case, header, metric, predictions, context, *rest, **named)
    if header.HasField("threshold"):
        above = arrays.from_message(told.probability_above)
        true = Question(metric, predictions, case.records).gaps() > header.threshold
        told.probability_above.CopyFrom(arrays.to_message(above + (true - above) / 1000))
    return told


service._answer = settle

if __name__ == "__main__":
    main()
