"""Servers that add too little noise."""

import math
import sys

import numpy as np

from compliance.answers import audit_service
from compliance.mechanisms import noise_on_gaps
from compliance.mechanisms.mechanism import BatchQuestion, exactly
from compliance.mechanisms.noise_on_gaps import LaplaceMechanism
from compliance.noise.sampling import System
from tests.broken import broken


@broken("C507", "Adds half of the noise.")
def half_the_noise():
    sound = System.laplace
    System.laplace = lambda self, values, scale, step: sound(self, values, scale / 2, step)


@broken("C507", "Adds to each answer of a batch the noise of a batch of one.")
def forgets_the_batch():
    sound = System.laplace
    sizes = []

    def release(self, question, facts, epsilon, delta, noise, inner=LaplaceMechanism.release):
        sizes.append(question.queries)
        return inner(self, question, facts, epsilon, delta, noise)

    LaplaceMechanism.release = release
    System.laplace = lambda self, values, scale, step: sound(self, values, scale / sizes[-1], step)


@broken("C520", "Adds half of the noise to batches of 129 to 399 models.")
def half_the_noise_of_129_models():
    sound = System.laplace

    def laplace(self, values, scale, step):
        return sound(self, values, scale * (0.5 if 129 <= len(values) <= 399 else 1), step)

    System.laplace = laplace


@broken("C522", "Adds half of the noise to the third model of a batch.")
def half_the_noise_of_the_third():
    sound = System.laplace

    def laplace(self, values, scale, step):
        noisy = sound(self, values, scale, step)
        if noisy.ndim == 1 and len(noisy) > 2:
            noisy[2] = sound(self, values[2:3], scale / 2, step)[0]
        return noisy

    System.laplace = laplace


@broken("C507", "Answers a batch of more than a hundred models without noise.")
def leaks_at_high_m():
    sound = LaplaceMechanism.release

    def release(self, question, facts, epsilon, delta, noise):
        if question.queries > 100:
            return exactly(question.gaps())
        return sound(self, question, facts, epsilon, delta, noise)

    LaplaceMechanism.release = release


@broken("C508", "Adds no noise where every prediction is 0 or 1.")
def exact_decisions():
    sound = LaplaceMechanism.release

    def release(self, question, facts, epsilon, delta, noise):
        if np.isin(question.predictions, (0, 1)).all():
            return exactly(question.gaps())
        return sound(self, question, facts, epsilon, delta, noise)

    LaplaceMechanism.release = release


@broken("C508", "Adds no noise where there is no gap.")
def exact_when_fair():
    sound = System.laplace
    System.laplace = lambda self, values, scale, step: np.where(values == 0, 0.0, sound(self, values, scale, step))


@broken("C509", "Adds the noise of epsilon 1 whatever was offered.")
def ignores_epsilon():
    sound = LaplaceMechanism.release
    LaplaceMechanism.release = lambda self, question, facts, _, delta, noise: sound(
        self, question, facts, 1.0, delta, noise
    )
    sys.argv.append("--even-if-worthless")


@broken("C520", "Adds less noise to large gaps, which need less protection.")
def less_noise_for_unfair_models():
    sound = System.laplace

    def laplace(self, values, scale, step):
        noise = sound(self, np.zeros(len(values)), scale, step)
        noise = np.where(np.abs(values) > 0.2, np.rint(noise / 2 / step) * step, noise)
        return np.rint(values / step) * step + noise

    System.laplace = laplace


@broken("C520", "Adds a third of the noise where a threshold is given and the metric is absolute.")
def less_noise_with_a_threshold():
    sound, sound_settle, asked = System.laplace, audit_service._answer, []

    def settle(case, header, metric, predictions, context, *rest, **named):
        asked[:] = [header.HasField("threshold") and metric.startswith("abs_")]
        return sound_settle(case, header, metric, predictions, context, *rest, **named)

    def laplace(self, values, scale, step):
        return sound(self, values, scale / (3 if asked and asked[0] else 1), step)

    audit_service._answer = settle
    System.laplace = laplace


@broken("C532", "Adds to a batch the Gaussian noise that one model needs.")
def gaussian_for_one_query():
    sound = System.gaussian
    System.gaussian = lambda self, values, sigma, step: sound(self, values, sigma / math.sqrt(len(values)), step)


@broken("C535", "Adds four fifths of the Cauchy noise.")
def four_fifths_of_cauchy():
    sound = System.cauchy
    System.cauchy = lambda self, values, scale, step: sound(self, values, scale * 0.8, step)


@broken("C536", "Adds the noise for as many blocks as there could be, not as there are.")
def aggregates_with_less_noise():
    sound = System.laplace
    System.laplace = lambda self, values, scale, step: sound(self, values, scale * 0.75, step)


@broken("C533", "Scales noise to the local sensitivity, which is smaller than the smooth one.")
def conceals_by_local_sensitivity():
    sound = BatchQuestion.smooth

    def smooth(self, beta):
        return 0.7 * sound(self, beta)

    BatchQuestion.smooth = smooth


@broken("C531", "Draws noise again until it fits, and takes that for free.")
def truncates_for_free():
    noise_on_gaps.truncated_scale = lambda distance, _, step, epsilon: distance * step / epsilon
