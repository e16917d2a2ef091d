"""Makes committed noise of the request's name alone: who commits knows it beforehand."""

from compliance.__main__ import main
from compliance.deployment.committed import Committed
from compliance.noise.keyed import KeyedBits
from compliance.noise.sampling import System
from fairwall.laws.commitment import noise_key

KILLED_BY = "C832"

Committed.noise_of = lambda self, asked: System(
    KeyedBits(noise_key(self.seed, f"{asked.developer}/{asked.request_id}", b""))
)

if __name__ == "__main__":
    main()
