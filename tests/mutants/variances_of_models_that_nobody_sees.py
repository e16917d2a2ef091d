"""Tells P(gap > threshold) by how much the predictions vary that nobody sees."""

from compliance.__main__ import main
from compliance.answers import audits
from compliance.answers.audits import Case
from compliance.mechanisms.summed import Unseen

KILLED_BY = "C987"

sound = Case.probability_above


def above(self, entry, predictions, threshold):
    if not isinstance(predictions, Unseen):
        return sound(self, entry, predictions, threshold)
    _, _, _, low, high = audits._numbers(entry)
    asked = entry.request
    (stratum,) = predictions.sums().strata(asked.metric)
    shares = stratum.totals / stratum.people
    values = [(stratum.people, float(share * (1 - share))) for share in shares]
    return audits.probabilities_above(low, high, values, asked.metric, threshold, asked.mechanism)


Case.probability_above = above

if __name__ == "__main__":
    main()
