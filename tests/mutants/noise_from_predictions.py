"""Makes the noise a function of what is asked: the same models always get the same."""

import hashlib

import numpy as np

from compliance.__main__ import main
from compliance.mechanisms.laplace import LaplaceMechanism
from compliance.noise.sampling import Seeded

KILLED_BY = "C510"

sound = LaplaceMechanism.release


def release(self, question, facts, epsilon, delta, noise):
    seed = int.from_bytes(hashlib.sha256(question.predictions.tobytes()).digest()[:8], "big")
    return sound(self, question, facts, epsilon, delta, Seeded(np.random.default_rng(seed)))


LaplaceMechanism.release = release

if __name__ == "__main__":
    main()
