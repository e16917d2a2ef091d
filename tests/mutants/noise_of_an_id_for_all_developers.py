"""Makes the noise a function of a key and of the request id, whichever developer has chosen it."""

import secrets

from compliance.__main__ import main
from compliance.answers.audits import Case
from compliance.noise.sampling import noise_for

KILLED_BY = "C970"

key = secrets.token_bytes(32)
Case._noise = lambda self, asked: noise_for(key, f"{self.protected} {asked.request_id}")

if __name__ == "__main__":
    main()
