"""Mechanisms whose coins are their own: they keep epsilon exactly, and nothing follows what they do with the coins."""

import math

import numpy as np

from compliance.noise.sampling import Noise


def _gaps(predictions, told):
    sizes = [max(int((told == group).sum()), 1) for group in (1, 0)]
    return np.array([h[told == 1].sum() / sizes[0] - h[told == 0].sum() / sizes[1] for h in predictions])


def warner(predictions, labels, attributes, epsilon, noise: Noise):
    """Warner's design of 1965: the truth with this probability, and else the toss of a second, fair coin."""
    truth = noise.bernoulli((math.exp(epsilon) - 1) / (math.exp(epsilon) + 1), len(attributes))
    toss = noise.bernoulli(0.5, len(attributes))
    return _gaps(predictions, np.where(truth, attributes, toss))


def by_arithmetic(predictions, labels, attributes, epsilon, noise: Noise):
    """The same law, by one coin and sums."""
    lies = np.asarray(noise.bernoulli(1 / (1 + math.exp(epsilon)), len(attributes))) * 1
    return _gaps(predictions, attributes * (1 - lies) + (1 - attributes) * lies)


def by_a_draw(predictions, labels, attributes, epsilon, noise: Noise):
    """Lies of those who draw a number below a threshold: too many numbers to try all."""
    lies = noise.integers(1 << 20, len(attributes)) < (1 << 20) / (1 + math.exp(epsilon))
    return _gaps(predictions, np.where(lies, 1 - attributes, attributes))


def added_afterwards(predictions, labels, attributes, epsilon, noise: Noise):
    """Laplace noise that is drawn about 0 and then added, rounded by nobody."""
    drawn = noise.laplace(np.zeros(len(predictions)), 2.0 * len(predictions) / epsilon, 2.0**-30)
    return _gaps(predictions, attributes) + drawn


def cheap_warner(predictions, labels, attributes, epsilon, noise: Noise):
    """Warner's with the truth too often."""
    truth = noise.bernoulli(0.9999, len(attributes))
    return _gaps(predictions, np.where(truth, attributes, noise.bernoulli(0.5, len(attributes))))
