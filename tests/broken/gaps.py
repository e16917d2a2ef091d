"""Servers that compute the exact gap wrongly, or with another precision than their terms say."""

from dataclasses import replace

import numpy as np

from compliance.answers import audit_service, audits
from compliance.mechanisms import mechanism
from compliance.records import metrics
from fairwall.laws.metrics import metric
from fairwall.wire.numbers import to_message
from tests.broken import broken


@broken("C501", "Gives absolute gaps a sign.")
def forgets_absolute():
    sound = metrics.gaps
    mechanism.gaps = lambda metric, parts: sound(metric.removeprefix("abs_"), parts)


@broken("C501", "Divides by one person too few.")
def off_by_one_in_n():
    metrics._difference_of_means = lambda part: part.sum1 / (part.n1 - 1) - part.sum0 / part.n0


@broken("C501", "Computes in float32.")
def single_precision():
    def difference(part):
        return (np.float32(part.sum1) / np.float32(part.n1) - np.float32(part.sum0) / np.float32(part.n0)).astype(float)

    metrics._difference_of_means = difference


@broken("C501", "Looks at label 0 for equal opportunity.")
def wrong_stratum():
    metric.METRICS["eo"] = replace(metric.METRICS["eo"], parts=metric.METRICS["fpr"].parts)


@broken("C502", "Subtracts the advantaged from the disadvantaged.")
def swaps_groups():
    metrics._difference_of_means = lambda part: part.sum0 / part.n0 - part.sum1 / part.n1


@broken("C530", "Keeps one decimal more than its terms say.")
def a_decimal_more():
    sound = audits._rounded
    audits._rounded = lambda release, precision: sound(
        release, precision + 1 if isinstance(precision, int) else precision
    )


@broken("C530", "Tells the ends of intervals more precisely than its answers.")
def precise_ends():
    sound = audits._rounded

    def rounded(release, precision):
        return replace(sound(release, precision), low=release.low, high=release.high)

    audits._rounded = rounded


@broken("C530", "Says in its terms that answers are more precise than they are.")
def terms_of_another_precision():
    sound = audit_service.AuditService.GetTerms

    def terms(self, request, context):
        told = sound(self, request, context)
        told.precision.CopyFrom(to_message("float64"))
        return told

    audit_service.AuditService.GetTerms = terms


@broken("C533", "Writes float32 answers down in float64.")
def float32_told_as_float64():
    sound = audits._rounded
    audits._rounded = lambda release, precision: release if precision == "float32" else sound(release, precision)
