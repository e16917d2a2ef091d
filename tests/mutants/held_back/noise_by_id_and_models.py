"""Makes the noise a function of a key in its code, the request id and the predictions."""

import hashlib
import hmac

import numpy as np

from compliance.__main__ import main
from compliance.answers.audits import Case
from compliance.noise.sampling import Seeded

KILLED_BY = "C521"

sound = Case.answer
sent = {}


def settle(self, developer, request_id, digest, metric, predictions, *more, **named):
    sent[request_id] = predictions.tobytes()
    return sound(self, developer, request_id, digest, metric, predictions, *more, **named)


def noise(_, asked):
    drawn = hmac.digest(b"our secret", asked.request_id.encode() + sent[asked.request_id], hashlib.sha256)
    return Seeded(np.random.default_rng(int.from_bytes(drawn, "big")))


Case.answer, Case._noise = settle, noise

if __name__ == "__main__":
    main()
