"""Mechanisms of somebody's own, by the convention of docs/privacy-audit.md: sound ones, and others with one fault each.

The line that is wrong ends in ``# FAULT``. Test subjects, never to be served. All answer statistical parity, for which
one person moves a gap of n people by at most 1/2 + 1/(n - 1).
"""

from dataclasses import dataclass, replace

import numpy as np

from compliance.mechanisms.mechanism import MechanismAnswer
from compliance.mechanisms.noise_on_gaps import LaplaceMechanism
from compliance.noise.sampling import ROUNDING_STEPS, step_for


def exact_gaps(predictions, attributes):
    return predictions[:, attributes == 1].mean(axis=1) - predictions[:, attributes == 0].mean(axis=1)


def moves(predictions):
    models, people = predictions.shape
    return models * (1 / 2 + 1 / (people - 1))


def added(values, sensitivity, epsilon, noise):
    step = step_for(sensitivity / epsilon)
    return noise.laplace(values, (sensitivity + values.size * ROUNDING_STEPS * step) / epsilon, step)


# ---- sound


def sound(predictions, labels, attributes, epsilon, noise):
    return added(exact_gaps(predictions, attributes), moves(predictions), epsilon, noise)


def sound_response(predictions, labels, attributes, epsilon, noise):
    """Answers from attributes that are turned over."""
    return _of_response(predictions, attributes ^ noise.bernoulli(1 / (1 + np.exp(epsilon)), len(labels)))


def sound_response_by_numbers(predictions, labels, attributes, epsilon, noise):
    coins = noise.bernoulli(1 / (1 + np.exp(epsilon)), len(labels)).astype(np.uint8)
    return _of_response(predictions, np.where(coins, 1 - attributes, attributes))


def _of_response(predictions, noisy):
    sizes = max(noisy.sum(), 1), max((1 - noisy).sum(), 1)
    return predictions @ noisy / sizes[0] - predictions @ (1 - noisy) / sizes[1]


def sound_counts(predictions, labels, attributes, epsilon, noise):
    """N0 and each sum have a share of epsilon, and the rest is made of these and of public numbers."""
    models, people = predictions.shape
    (size,) = noise.laplace(np.array([np.sum(attributes == 0)]), 2 / epsilon, 1.0)
    sums = added(predictions[:, attributes == 0].sum(axis=1), models, epsilon / 2, noise)
    size = np.clip(size, 1, people - 1)
    return (predictions.sum(axis=1) - sums) / (people - size) - sums / size


def sound_largest(predictions, labels, attributes, epsilon, noise):
    """1 for the model whose noisy gap is the largest: each has the noise that one gap asks for twice."""
    models, people = predictions.shape
    noisy = noise.laplace(exact_gaps(predictions, attributes), *_for_one(people, epsilon / 2))
    return (np.arange(models) == noisy.argmax()).astype(float)


def _for_one(people, epsilon):
    most = 1 / 2 + 1 / (people - 1)
    step = step_for(most / epsilon)
    return (most + ROUNDING_STEPS * step) / epsilon, step


class SoundClass:
    """A class that is called without arguments, and then is a function."""

    def __call__(self, predictions, labels, attributes, epsilon, noise):
        return sound(predictions, labels, attributes, epsilon, noise)


# ---- broken


def sensitivity(predictions, labels, attributes, epsilon, noise):
    """Each gap has the noise for one alone."""
    step = step_for(1 / epsilon)
    return noise.laplace(exact_gaps(predictions, attributes), moves(predictions[:1]) / epsilon, step)  # FAULT


def sensitivity_of_parts(predictions, labels, attributes, epsilon, noise):
    """Every model has epsilon once more."""
    gaps, answers = exact_gaps(predictions, attributes), []
    for gap in gaps:
        answers.extend(noise.laplace(np.array([gap]), *_for_one(len(labels), epsilon)))  # FAULT
    return answers


def scale(predictions, labels, attributes, epsilon, noise):
    """Local sensitivity."""
    smaller = min(np.sum(attributes), np.sum(1 - attributes))
    step = step_for(1 / epsilon)
    return noise.laplace(exact_gaps(predictions, attributes), 2 * len(predictions) / smaller / epsilon, step)  # FAULT


def grid(predictions, labels, attributes, epsilon, noise):
    step = step_for(1 / np.sum(attributes == 0))
    size = 1.5 * moves(predictions) / epsilon
    return noise.laplace(exact_gaps(predictions, attributes), size, step)  # FAULT


def shape(predictions, labels, attributes, epsilon, noise):
    """A number for everybody in a group tells how many they are."""
    noise.laplace(np.zeros(np.sum(attributes)), 1.0, 1.0)  # FAULT
    return sound(predictions, labels, attributes, epsilon, noise)


def branch(predictions, labels, attributes, epsilon, noise):
    if np.sum(attributes == 0) < 3:  # FAULT
        return np.full(len(predictions), np.nan)
    return sound(predictions, labels, attributes, epsilon, noise)


def raises(predictions, labels, attributes, epsilon, noise):
    if np.sum(attributes == 0) < 2:  # FAULT
        raise ValueError("too few")
    return sound(predictions, labels, attributes, epsilon, noise)


def forgotten(predictions, labels, attributes, epsilon, noise):
    """The last model gets no noise."""
    gaps = exact_gaps(predictions, attributes)
    noisy = added(gaps, moves(predictions), epsilon, noise)
    return np.append(noisy[:-1], gaps[-1])  # FAULT


def forgotten_all(predictions, labels, attributes, epsilon, noise):
    return exact_gaps(predictions, attributes)  # FAULT


def reused(predictions, labels, attributes, epsilon, noise):
    """All gaps get one draw: their differences are exact."""
    drawn = added(np.zeros(1), moves(predictions), epsilon, noise)
    return exact_gaps(predictions, attributes) + drawn  # FAULT


def reads_after(predictions, labels, attributes, epsilon, noise):
    """Answers get the sign that the gap has."""
    gaps = exact_gaps(predictions, attributes)
    noisy = added(gaps, moves(predictions), epsilon, noise)
    return np.copysign(noisy, gaps)  # FAULT


def reads_seldom(predictions, labels, attributes, epsilon, noise):
    """Where noise is far off, which a million sessions do not show, the gap itself is told."""
    gaps = exact_gaps(predictions, attributes)
    noisy = added(gaps, moves(predictions), epsilon, noise)
    return np.where(np.abs(noisy) > 20 * moves(predictions) / epsilon, gaps, noisy)  # FAULT


def low_bits(predictions, labels, attributes, epsilon, noise):
    """A sum over all, which is public, is taken from two that are not."""
    sums = [predictions[:, attributes == group].sum(axis=1) for group in (0, 1)]
    (size,) = noise.laplace(np.array([np.sum(attributes == 0)]), 2 / epsilon, 1.0)
    noisy, size = added(sums[0], len(predictions), epsilon / 2, noise), np.clip(size, 1, len(labels) - 1)
    total = sums[0] + sums[1]  # FAULT
    return (total - noisy) / (len(labels) - size) - noisy / size


def own_randomness(predictions, labels, attributes, epsilon, noise):
    gaps = exact_gaps(predictions, attributes)
    drawn = np.random.default_rng().laplace(0, moves(predictions) / epsilon, len(gaps))  # FAULT
    return gaps + drawn


def seed_of_data(predictions, labels, attributes, epsilon, noise):
    """Draws that are a function of the people."""
    drawn = np.random.default_rng(int(attributes.sum())).laplace(0, moves(predictions) / epsilon, len(predictions))
    return exact_gaps(predictions, attributes) + drawn  # FAULT


def coins_told(predictions, labels, attributes, epsilon, noise):
    """Whose attribute was turned over is told beside what came of it."""
    coins = noise.bernoulli(1 / (1 + np.exp(epsilon)), len(labels))
    noisy = attributes ^ coins
    turned = predictions @ coins  # FAULT
    return _of_response(predictions, noisy) + 100 * turned


def coins_reused(predictions, labels, attributes, epsilon, noise):
    """Everybody's attribute, and then whether it is their neighbour's, turned over by one coin."""
    coins = noise.bernoulli(1 / (1 + np.exp(epsilon)), len(labels))
    noisy = attributes ^ coins
    others = np.roll(attributes, 1) ^ coins  # FAULT
    return _of_response(predictions, noisy) + 100 * _of_response(predictions, others)


@dataclass(frozen=True)
class ExactFact(LaplaceMechanism):
    """Sound answers, and how many are disadvantaged as a fact that later batches may use."""

    def noisy(self, question, facts, epsilon, delta, noise):
        told = super().noisy(question, facts, epsilon, delta, noise)
        size, _ = question.records.counts(question.metric)  # FAULT
        return replace(told, facts={"n0": np.array([float(size)])})


@dataclass(frozen=True)
class SecondIsFree(LaplaceMechanism):
    """Says that whoever has bought once gets all else for nothing, and draws anew."""

    def is_free(self, facts, epsilon, question=None):  # noqa: ARG002
        return "bought" in facts

    def noisy(self, question, facts, epsilon, delta, noise):  # noqa: ARG002
        sensitivity, step = moves(question.predictions), step_for(question.queries / epsilon)
        noisy = noise.laplace(question.gaps(), 1.1 * sensitivity / epsilon, step)  # FAULT
        return MechanismAnswer(noisy, {"bought": np.ones(1)})
