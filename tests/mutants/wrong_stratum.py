"""Looks at label 0 for equal opportunity."""

from dataclasses import replace

from compliance.__main__ import main
from fairwall.laws import metric

KILLED_BY = "C501"

wrong = replace(metric.METRICS["eo"], parts=metric.METRICS["fpr"].parts)
metric.METRICS["eo"] = wrong

if __name__ == "__main__":
    main()
