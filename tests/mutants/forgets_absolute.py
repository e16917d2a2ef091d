"""Gives absolute gaps a sign."""

from compliance.__main__ import main
from compliance.mechanisms import mechanism as question
from compliance.records import metrics

KILLED_BY = "C501"

sound = metrics.gaps
question.gaps = lambda metric, parts: sound(metric.removeprefix("abs_"), parts)

if __name__ == "__main__":
    main()
