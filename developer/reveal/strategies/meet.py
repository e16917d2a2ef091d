"""Reveal everybody from one answer about the base model itself: meet in the middle.

The queried row is no attack design but h0 as trained, which any developer would have audited. So no rule about allowed
models can keep one exact float64 answer from revealing as many bits as it has. The search is in
developer/reveal/decode/meet_in_the_middle.py.
"""

import math
from contextlib import suppress

import numpy as np

from developer.reveal.decode.meet_in_the_middle import meet
from developer.reveal.strategies.sizes import ask_sizes
from developer.reveal.strategies.strategy import Reveal, StrategyInputs, everyone


def play(inputs: StrategyInputs) -> Reveal:
    """Query h0 and find the group that reproduces the answer bit for bit; else the prior guess stands.

    It also stands where too many are disadvantaged for a search, see
    `developer.reveal.decode.meet_in_the_middle.is_listable`.
    """
    n0 = ask_sizes(inputs.auditor, inputs.people)[0] if inputs.terms.n0 is None else inputs.terms.n0
    scores = inputs.base()
    (gap,) = inputs.auditor.gaps(scores[np.newaxis])
    # A rounded or noisy gap cannot be reproduced, and a failing search takes longest.
    exact = math.isinf(inputs.terms.epsilon) and inputs.terms.precision in ("float64", None)
    found = None
    if exact:
        with suppress(ValueError):
            found = meet(scores, float(gap), n0)
    return everyone((inputs.prior() if found is None else found) == 1)
