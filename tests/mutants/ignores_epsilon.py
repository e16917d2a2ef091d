"""Adds the noise of epsilon 1 whatever was offered."""

import sys

from compliance.__main__ import main
from compliance.mechanisms.laplace import LaplaceMechanism

KILLED_BY = "C509"

sound = LaplaceMechanism.release
LaplaceMechanism.release = lambda self, question, facts, _, delta, noise: sound(
    self, question, facts, 1.0, delta, noise
)

if __name__ == "__main__":
    sys.argv.append("--even-if-worthless")
    main()
