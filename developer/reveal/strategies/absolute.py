"""Partition from absolute statistical parity gaps (Hamman, Chen, Dutta, FAccT 2023, Theorem 4).

Call the first person's group alpha and the other one beta. A model that accepts the first person alone has
``|SP| = 1/N_alpha``, which tells both sizes. Then,

* sizes differ: person j accepted alone has ``1/N_alpha`` or ``1/N_beta``;
* sizes are equal: persons 1 and j accepted together have ``2/N_alpha`` or ``1/N_alpha - 1/N_beta = 0``.

That is a partition. Which part is the disadvantaged one no absolute gap can tell: exchanging the groups changes
none. Where the sizes differ we name the smaller one, as the paper suggests, or the one of N0 where that is public; then
the first answer has but two values to choose from.
"""

from dataclasses import replace

import numpy as np

from developer.reveal.strategies.sizes import alone, group_sizes
from developer.reveal.strategies.strategy import Hand, Reveal, everyone


def counts(n: int) -> range:
    """Give the one number of queries there can be: n."""
    return range(n, n + 1)


def play(hand: Hand) -> Reveal:
    """Partition everyone: one query for the sizes, one for each other person."""
    n = hand.people
    (first,) = hand.auditor.gaps(alone(n, 0)[None])
    n0 = hand.terms.n0
    if n0 is None:
        # An absolute gap is never negative, save for noise; the nearest value it can have without is 1/(n - 1).
        beta, alpha = group_sizes(max(first, 0), n)
    else:
        alpha = min((n - n0, n0), key=lambda size: abs(1 / size - first))
        beta = n - alpha

    H = np.eye(n)[1:]
    if alpha == beta:
        H[:, 0] = 1
    like_first, unlike = (2 / alpha, 0) if alpha == beta else (1 / alpha, 1 / beta)
    gaps = hand.auditor.gaps(H)
    same = np.concatenate([[True], np.abs(gaps - like_first) < np.abs(gaps - unlike)])
    alpha_advantaged = alpha >= beta if n0 is None else beta == n0
    return replace(everyone(same == alpha_advantaged), polarity_known=alpha != beta)
