"""The decoder that public parameters recommend.

Measured at n = 100, N0 = 10, m = 40, random 0/1 rows, unless stated otherwise:

* Exact answers: at m = 30 `ep` decides 117 of 120 games, l1 needs m = 45 for 95%. n equations of full rank are solved
  by least squares at once.
* Printed Conceal, sizes known, 1,000 games, mean leakage at epsilon 100, 1,000 and 10^4: `ep` 64.7, 89.9 and 99.5%,
  `score` 64.1, 76.4 and 78.1%, l1 52, 66 and 92%. `ep` takes 2 to 10 milliseconds a game, three times that on a busy
  machine.
* `mcmc` against `ep`, 30 games with sizes known and features that are right for 60%: 97.7 against 89.9% (7.8 +- 4.0)
  at 1,000, where the error's median is 0.16 of the gaps' spread and `ep` settles for a wrong fixed point now and then;
  both know everybody from 0.09 down (Laplace, `counts` at 100), and at 0.5 (`counts` at 10) they are the same within
  1.1. It takes 1.2 seconds on a busy machine.
* `ep` takes about m^2 n steps a round. Beyond `LARGEST` steps only the score test is fast enough.
"""

import numpy as np

from developer.reveal.decode import box, ep, lstsq, mcmc, score
from developer.reveal.decode.decoder import DecoderInputs
from developer.reveal.decode.likelihood import likelihood
from fairwall.arrays import Floats

LARGEST = 2e9
"""Largest m^2 n for which `ep` is used: a round takes a fraction of a second; m = 400, n = 1000 is 1.6e8."""

SAMPLED = 10_000
"""Largest m n for which `mcmc` is used: it takes a second or two."""

BETWEEN = (0.05, 0.7)
"""Range of the error's median over the gaps' spread in which `mcmc` beats `ep`."""


def decode(evidence: DecoderInputs) -> Floats:
    """Estimate v, (n,), with the decoder that suits m, n and the noise."""
    m, n = evidence.rows.shape
    if ep.exact(evidence) or evidence.noise is None:
        decides = m >= n and np.linalg.matrix_rank(evidence.rows) == n
        # Exact answers are worth the wait: there the score test is far behind.
        return lstsq.decode(evidence) if decides else ep.decode(evidence)
    if m * m * n > LARGEST or not evidence.n0 or not evidence.n1:
        return score.decode(evidence)
    spread = np.sqrt((1 / evidence.n0 + 1 / evidence.n1) * evidence.rows.var(axis=1).mean() * n / (n - 1))
    noise = evidence.noise.median_abs()
    if BETWEEN[0] * spread < noise < BETWEEN[1] * spread and m * n <= SAMPLED:
        return mcmc.decode(evidence)
    found = ep.decode(evidence)
    if noise >= BETWEEN[0] * spread:
        return found

    def likely(v: Floats) -> float:
        guess = np.ones(n, np.uint8)
        guess[np.argsort(v, kind="stable")[: evidence.n0]] = 0
        return likelihood(evidence, guess)

    # Hardly any noise: `ep` may be stuck where convex relaxation is not, and the likelihood decides between the two.
    return max((found, box.decode(evidence)), key=likely)
