"""Servers with wrong intervals, or wrong probabilities that a gap is above a threshold."""

from dataclasses import replace

import numpy as np

from compliance.answers import audit_service
from compliance.answers.audits import AuditCase
from compliance.intervals import interval
from compliance.intervals.interval import probabilities_above
from compliance.mechanisms import mechanism, noise_on_gaps
from compliance.mechanisms.cells import CellsMechanism
from compliance.mechanisms.mechanism import BatchQuestion
from compliance.mechanisms.noise_on_gaps import LaplaceMechanism
from compliance.mechanisms.randomized_response import RandomizedResponse
from fairwall.laws.noise.distributions import Laplace
from fairwall.rpc import arrays
from tests.broken import broken


def _guarantees_what_is_likely(mechanism):
    sound = mechanism.release

    def release(self, question, facts, epsilon, delta, noise):
        found = sound(self, question, facts, epsilon, delta, noise)
        if found.likely is None:
            return found
        low, high = found.likely
        return replace(found, low=low, high=high)

    mechanism.release = release


@broken("C506", "Puts the interval around the exact gap.")
def intervals_around_the_truth():
    sound = LaplaceMechanism.release

    def release(self, question, facts, epsilon, delta, noise):
        found = sound(self, question, facts, epsilon, delta, noise)
        reach = (found.high - found.low) / 2
        return replace(found, low=question.gaps() - reach, high=question.gaps() + reach)

    LaplaceMechanism.release = release


@broken("C506", "Tells intervals that hold the exact gap too rarely.")
def narrow_intervals():
    noise_on_gaps.with_interval = lambda values, law, step: mechanism.with_interval(
        values, Laplace(law.scale * 0.8), step
    )


@broken("C220", "Tells narrower intervals where groups are even, since one person then moves less.")
def narrow_where_groups_are_even():
    sound = LaplaceMechanism.release

    def release(self, question, facts, epsilon, delta, noise):
        found = sound(self, question, facts, epsilon, delta, noise)
        n0, n1 = question.records.counts(question.metric)
        reach = (found.high - found.low) / 2 * (0.9 if abs(n0 - n1) < 4 else 1.0)
        return replace(found, low=found.values - reach, high=found.values + reach)

    LaplaceMechanism.release = release


@broken("C528", "Gives the intervals of the first model the width of the last one's, and the other way round.")
def swaps_half_widths():
    sound = audit_service.intervals_of

    def intervals(entry):
        found = []
        for low, high in sound(entry):
            half, middle = (high - low) / 2, (low + high) / 2
            half[[0, -1]] = half[[-1, 0]]
            found.append((np.maximum(middle - half, -1.0), np.minimum(middle + half, 1.0)))
        return tuple(found)

    audit_service.intervals_of = intervals


@broken("C529", "Tells for noisy attributes the ends that are likely as guaranteed ones: they hold in fewer cases.")
def promises_what_is_likely_of_attributes():
    _guarantees_what_is_likely(RandomizedResponse)


@broken("C529", "Tells for cells the ends that are believed as guaranteed ones, too.")
def tells_believed_ends_as_promised():
    _guarantees_what_is_likely(CellsMechanism)


@broken("C513", "Compares every gap with 0, whatever the threshold.")
def ignores_the_threshold():
    sound = AuditCase.probability_above
    AuditCase.probability_above = lambda self, entry, predictions, _: sound(self, entry, predictions, 0.0)


@broken("C524", "Moves P(gap > threshold) a little towards what is true.")
def nudges_probabilities():
    sound = audit_service._answer

    def settle(case, header, metric, predictions, context, *rest, **named):
        told = sound(case, header, metric, predictions, context, *rest, **named)
        if header.HasField("threshold"):
            above = arrays.from_message(told.probability_above)
            true = BatchQuestion(metric, predictions, case.records).gaps() > header.threshold
            told.probability_above.CopyFrom(arrays.to_message(above + (true - above) / 1000))
        return told

    audit_service._answer = settle


@broken("C524", "Tells how probable it is that the exact gap is above the threshold, not the answer.")
def probability_of_the_exact_gap():
    sound = audit_service._answer

    def settle(case, header, metric, predictions, context, *rest, **named):
        told = sound(case, header, metric, predictions, context, *rest, **named)
        if header.HasField("threshold"):
            question = BatchQuestion(metric, predictions, case.records)
            gaps, values = question.gaps(), question.asked.strata[0].inside
            above = probabilities_above(gaps - 0.1, gaps + 0.1, values, metric, header.threshold, "laplace")
            told.probability_above.CopyFrom(arrays.to_message(above))
        return told

    audit_service._answer = settle


@broken("C524", "Forgets the sampling error in P(gap > threshold).")
def probability_without_sampling():
    interval.sampling_deviations = lambda *_: np.array([1e-3])


@broken("C524", "Hides the exact gap in the bits of a probability that is no number.")
def tells_gaps_in_a_nan():
    sound = audit_service._answer

    def settle(case, header, metric, predictions, context, *rest, **named):
        told = sound(case, header, metric, predictions, context, *rest, **named)
        if header.HasField("threshold") and metric == "ppv":
            gaps = BatchQuestion(metric, predictions, case.records).gaps()
            bits = np.float64(np.nan).view(np.uint64) | (np.abs(gaps) * 2**40).astype(np.uint64)
            told.probability_above.CopyFrom(arrays.to_message(bits.view(np.float64)))
        return told

    audit_service._answer = settle
