"""Servers that predict wrongly what an answer is worth, or what it gives away."""

from dataclasses import replace

from compliance.answers.audits import AuditCase
from compliance.answers.exposure import exposure_about
from compliance.deployment import answer_value
from compliance.deployment.policy.schema import Policy
from fairwall.laws.metrics.group_size_range import Shares
from tests.broken import broken


@broken("C223", "Says what an answer will be worth by these very people, not by ones who do not exist.")
def expects_errors_of_these_people():
    sound = AuditCase.expected

    def expected(self, metric, models, epsilon):
        n0, n1 = self.records.counts(metric)
        found = sound(self, metric, models, epsilon)
        return replace(found, midpoint_error=found.midpoint_error * n0 / (n0 + n1))

    AuditCase.expected = expected


@broken("C526", "Says of every batch how wide the answer about a single model would be.")
def expects_widths_of_single_models():
    sound = AuditCase.expected

    def expected(self, metric, models, epsilon):
        return sound(self, metric, min(models, 1), epsilon)

    AuditCase.expected = expected


@broken("C223", "Says what a batch gives away of these very people, not of groups as small as the policy allows.")
def reveals_of_these_people():
    def revealed(self, metric, models, epsilon):
        least = min(self.records.counts(metric))
        shares = Shares(self.shares.low, self.shares.high, least, by_policy=True)
        return exposure_about(self.records, self.mechanism, metric, models, epsilon, self.delta, shares)

    AuditCase.revealed = revealed


@broken("C526", "Says of every batch what one of a single model gives away.")
def reveals_of_single_models():
    sound = AuditCase.revealed

    def revealed(self, metric, models, epsilon):
        return sound(self, metric, min(models, 1), epsilon)

    AuditCase.revealed = revealed


@broken("C526", "Says of the person worst off what epsilon alone allows, whatever mechanism answers.")
def risk_of_epsilon_alone():
    sound = AuditCase.person_risk

    def person_risk(self, metric, models, epsilon):
        _, most = sound(self, metric, models, epsilon)
        return most, most

    AuditCase.person_risk = person_risk


@broken("C527", "Leaves out of what attacks make of a budget that the same attributes are released besides.")
def attacks_without_releases():
    sound = answer_value._offers

    def offers(policy, records):
        return [replace(each, released=0.0) for each in sound(policy, records)]

    answer_value._offers = offers


@broken("C527", "Leaves out of what is proved of a budget that the same attributes are released besides.")
def proves_without_releases():
    sound = answer_value._proved

    def proved(policy, records):
        kept, Policy.released = Policy.released, 0.0
        try:
            return sound(policy, records)
        finally:
            Policy.released = kept

    answer_value._proved = proved
