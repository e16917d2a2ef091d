"""Draws half of the noise where a measure by group looks at labels, and tells the whole of it."""

from compliance.__main__ import main
from compliance.answers import groups
from fairwall.compliance.v1 import group_service_pb2 as wire

KILLED_BY = "C951"

LABELS = {wire.MEASURE_TRUE_POSITIVE_RATE, wire.MEASURE_FALSE_POSITIVE_RATE, wire.MEASURE_ACCURACY}
table, whole = groups._table, groups.balanced_noise


def halved(people, measures, predictions, models, by, rate, noise):
    groups.balanced_noise = whole
    if set(measures) & LABELS:
        groups.balanced_noise = lambda noise, rate, rows, count: whole(noise, 2 * rate, rows, count)
    return table(people, measures, predictions, models, by, rate, noise)


groups._table = halved

if __name__ == "__main__":
    main()
