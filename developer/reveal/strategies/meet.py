"""Reveal everybody from one answer about the base model itself: meet in the middle.

The row asked about is no design. It is what any developer would have audited: h0, as trained. That one exact float64
answer gives away as many bits as it has is what no rule about which models may be asked about can change; the search is
in developer/decode/meet.py.
"""

import math
from contextlib import suppress

import numpy as np

from developer.reveal.decode.meet import meet
from developer.reveal.strategies.sizes import ask_sizes
from developer.reveal.strategies.strategy import Hand, Reveal, everyone


def play(hand: Hand) -> Reveal:
    """Ask about h0, and find the group that replays the answer bit for bit; where none does, the prior guess stands.

    So it does where the disadvantaged are too many to be searched for, see `developer.reveal.decode.meet.is_listable`.
    """
    n0 = ask_sizes(hand.auditor, hand.people)[0] if hand.terms.n0 is None else hand.terms.n0
    scores = hand.base()
    (gap,) = hand.auditor.gaps(scores[np.newaxis])
    # A gap that does not replay is of no use here, and looking for what is not there takes the longest.
    exact = math.isinf(hand.terms.epsilon) and hand.terms.precision in ("float64", None)
    found = None
    if exact:
        with suppress(ValueError):
            found = meet(scores, float(gap), n0)
    return everyone((hand.prior() if found is None else found) == 1)
