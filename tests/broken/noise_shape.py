"""Servers whose noise has another distribution, or depends on the gap."""

import math
from dataclasses import replace

import numpy as np

from compliance.mechanisms.noise_on_gaps import LaplaceMechanism
from compliance.noise.sampling import System, step_for
from tests.broken import broken


@broken("C506", "Adds Gaussian noise of the same mean size, and says Laplace.")
def gaussian_noise():
    System.laplace = lambda self, values, scale, step: self.gaussian(values, scale * math.sqrt(math.pi / 2), step)


@broken("C506", "Adds noise of float64 to the exact gap: its last bits tell what the noise was to hide.")
def float64_noise():
    def laplace(_, values, scale, step):
        return values + np.random.default_rng().laplace(0.0, scale, len(values))

    System.laplace = laplace


@broken("C506", "Draws noise again that is more than three times its scale.")
def noise_without_tails():
    sound = System.laplace

    def laplace(self, values, scale, step):
        noise = sound(self, np.zeros(len(values)), scale, step)
        while (far := np.abs(noise) > 3 * scale).any():
            noise[far] = sound(self, np.zeros(far.sum()), scale, step)
        return np.rint(values / step) * step + noise

    System.laplace = laplace


@broken("C506", "Clamps answers to the metric's range, which its terms do not say.")
def clamps_answers():
    sound = System.laplace
    System.laplace = lambda self, values, scale, step: np.clip(sound(self, values, scale, step), -1, 1)


@broken("C506", "Adds one draw of noise to all answers of a batch.")
def shares_noise():
    sound = System.laplace

    def laplace(self, values, scale, step):
        return values + sound(self, np.zeros(1), scale, step)

    System.laplace = laplace


@broken("C506", "Draws noise for half of a batch, and gives the other half its opposite.")
def antithetic_noise():
    sound = System.laplace

    def laplace(self, values, scale, step):
        noise = sound(self, np.zeros((len(values) + 1) // 2), scale, step)
        return values + np.stack([noise, -noise], axis=1).ravel()[: len(values)]

    System.laplace = laplace


@broken("C520", "Takes from the noise of a batch its mean, so that a batch is right on average.")
def noise_that_adds_up_to_nothing():
    sound = System.laplace

    def laplace(self, values, scale, step):
        noise = sound(self, np.zeros(len(values)), scale, step)
        if len(values) > 4:
            noise -= np.rint(noise.mean() / step) * step
        return np.rint(values / step) * step + noise

    System.laplace = laplace


@broken("C520", "Gives noise the sign of the gap a little more often than the other one.")
def noise_in_the_gap_s_direction():
    sound = System.laplace

    def laplace(self, values, scale, step):
        noise = sound(self, np.zeros(len(values)), scale, step)
        turn = (np.random.default_rng().random(len(values)) < 0.25) & (np.sign(noise) != np.sign(values))
        return np.rint(values / step) * step + np.where(turn & (values != 0), -noise, noise)

    System.laplace = laplace


@broken("C520", "Gives the answer about a single model the sign of its exact gap.")
def signs_of_single_models():
    sound = LaplaceMechanism.release

    def release(self, question, facts, epsilon, delta, noise):
        found = sound(self, question, facts, epsilon, delta, noise)
        if question.queries != 1:
            return found
        gap = question.gaps()
        flip = np.sign(found.values) != np.sign(gap)
        moved = np.where(flip & (gap != 0), -2 * found.values, 0.0)
        return replace(found, values=found.values + moved, low=found.low + moved, high=found.high + moved)

    LaplaceMechanism.release = release


@broken("C520", "Lets the last bit of each answer tell who of the people is advantaged.")
def last_bit_is_a_group():
    sound = LaplaceMechanism.release

    def release(self, question, facts, epsilon, delta, noise):
        found = sound(self, question, facts, epsilon, delta, noise)
        step = step_for(question.queries * question.sensitivities().overall / epsilon)
        groups = question.records.turned(np.zeros(question.records.people, bool))
        bits = np.resize(groups, question.queries)
        steps = np.rint(found.values / step).astype(np.int64) & ~1 | bits
        return replace(found, values=steps * step, low=None, high=None)

    LaplaceMechanism.release = release
