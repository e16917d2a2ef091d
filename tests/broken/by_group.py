"""Servers that count people by group wrongly."""

import math
from dataclasses import replace

import numpy as np

from compliance.answers import groups
from compliance.deployment.policy import loading
from fairwall.compliance.v1 import group_service_pb2 as wire
from tests.broken import broken


@broken("C951", "Counts exactly by one of the attributes alone.")
def exact_by_one_attribute():
    released, balanced_noise, ball_noise = groups.released, groups.balanced_noise, groups.ball_noise

    def exact(people, header, *rest, **named):
        by_one = list(header.by) == [people.attributes[-1].name]
        groups.balanced_noise = lambda noise, rate, *shape: balanced_noise(noise, math.inf if by_one else rate, *shape)
        groups.ball_noise = lambda noise, ball: ball_noise(noise, replace(ball, rate=math.inf) if by_one else ball)
        return released(people, header, *rest, **named)

    groups.released = exact


@broken("C951", "Draws half of the noise on counts by group, and tells the whole of it.")
def half_the_noise_by_group():
    whole = groups.balanced_noise
    groups.balanced_noise = lambda noise, rate, rows, groups: whole(noise, 2 * rate, rows, groups)


@broken("C951", "Draws half of the noise where a measure by group looks at labels, and tells the whole of it.")
def half_the_noise_on_labels():
    labels = {wire.MEASURE_TRUE_POSITIVE_RATE, wire.MEASURE_FALSE_POSITIVE_RATE, wire.MEASURE_ACCURACY}
    table, whole = groups._table, groups.balanced_noise

    def halved(people, measures, predictions, models, by, rate, noise):
        groups.balanced_noise = whole
        if set(measures) & labels:
            groups.balanced_noise = lambda noise, rate, rows, count: whole(noise, 2 * rate, rows, count)
        return table(people, measures, predictions, models, by, rate, noise)

    groups._table = halved


@broken("C956", "Draws half of the noise on what is known of a golden sample, and tells the whole of it.")
def half_the_noise_of_the_golden_sample():
    values = 3
    whole = groups.balanced_noise

    def half(noise, rate, rows, groups):
        return whole(noise, 2 * rate if groups % values**2 == 0 else rate, rows, groups)

    groups.balanced_noise = half


@broken("C951", "Gives sums of scores the noise of all of epsilon, beside counts that use it up.")
def mean_scores_beyond_epsilon():
    sums = groups._sums
    groups._sums = lambda predictions, by, rate, noise: sums(predictions, by, 2 * rate, noise)


@broken("C951", "Draws the noise of each row of many models with a size of its own, as if it were the only one.")
def rows_with_sizes_of_their_own():
    whole = groups.ball_noise

    def apart(noise, ball, times=1):
        rows = [whole(noise, replace(ball, reaches=(reach,)), times) for reach in ball.reaches]
        return np.concatenate(rows, axis=1)

    groups.ball_noise = apart


@broken("C951", "Draws the noise of each model's table for all of epsilon, and tells that of its part.")
def spends_all_on_each_table():
    released, whole = groups.released, groups.balanced_noise

    def settle(people, header, predictions, *how, **named):
        groups.balanced_noise = lambda noise, rate, *shape: whole(noise, rate * len(predictions), *shape)
        return released(people, header, predictions, *how, **named)

    groups.released = settle


@broken("C951", "Names the values of an attribute in another order than it counts them in, by group.")
def names_groups_in_another_order():
    whole = groups.GroupCase.attributes

    def attributes(case, names):
        told = whole(case, names)
        if not isinstance(names, list):  # as terms ask for them
            for each in told:
                each.values[:] = each.values[::-1]
        return told

    groups.GroupCase.attributes = attributes


@broken(
    "C956", "Takes everybody to be surely of the group that is likeliest, where an attribute is known by probabilities."
)
def puts_people_in_the_likeliest_group():
    rounded = loading.rounded

    def likeliest(probabilities):
        return rounded(np.eye(probabilities.shape[1])[probabilities.argmax(axis=1)])

    loading.rounded = likeliest
