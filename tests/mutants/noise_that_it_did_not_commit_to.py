"""Commits to noise, and draws other noise of its system's generator."""

from compliance.__main__ import main
from compliance.deployment.committed import Committed
from compliance.noise.sampling import System

KILLED_BY = "C832"

Committed.noise_of = lambda *_: System()

if __name__ == "__main__":
    main()
