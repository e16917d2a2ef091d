"""Makes the noise a function of the request id alone."""

import numpy as np

from compliance.__main__ import main
from compliance.answers.audits import Case
from compliance.noise.sampling import Seeded

KILLED_BY = "C114"


def noise(self, asked):
    return Seeded(np.random.default_rng(list(asked.request_id.split("-")[-1].encode())))


Case._noise = noise

if __name__ == "__main__":
    main()
