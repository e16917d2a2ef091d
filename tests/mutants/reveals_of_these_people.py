"""Says what a batch gives away of these very people, not of groups as small as the policy allows."""

from compliance.__main__ import main
from compliance.answers.audits import Case
from compliance.answers.exposure import exposure_about
from fairwall.laws.shares import Shares

KILLED_BY = "C223"


def revealed(self, metric, models, epsilon):
    least = min(self.records.counts(metric))
    shares = Shares(self.shares.low, self.shares.high, least, by_policy=True)
    return exposure_about(self.records, self.mechanism, metric, models, epsilon, self.delta, shares)


Case.revealed = revealed

if __name__ == "__main__":
    main()
