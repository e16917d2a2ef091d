"""Makes the noise a function of how many records the ledger has."""

import numpy as np

from compliance.__main__ import main
from compliance.answers.audits import Case
from compliance.noise.sampling import Seeded

KILLED_BY = "C512"


def noise(self, _):
    with self.ledger._held(self.dataset) as held:
        return Seeded(np.random.default_rng(held.books.head.sequence))


Case._noise = noise

if __name__ == "__main__":
    main()
