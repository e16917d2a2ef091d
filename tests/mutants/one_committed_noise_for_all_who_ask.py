"""Makes committed noise of what is asked, whoever asks it and under whichever id."""

from compliance.__main__ import main
from compliance.deployment.committed import Committed
from compliance.noise.keyed import KeyedBits
from compliance.noise.sampling import System
from fairwall.laws.commitment import noise_key

KILLED_BY = "C833"

Committed.noise_of = lambda self, asked: System(KeyedBits(noise_key(self.seed, asked.dataset, asked.metric.encode())))

if __name__ == "__main__":
    main()
