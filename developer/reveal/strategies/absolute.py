"""Partition from absolute statistical parity gaps (Hamman, Chen, Dutta, FAccT 2023, Theorem 4).

Call the first person's group alpha and the other one beta. A model that accepts the first person alone has ``|SP| =
1/N_alpha``, which reveals both sizes. Then,

* sizes differ: person j accepted alone has ``1/N_alpha`` or ``1/N_beta``;
* sizes are equal: persons 1 and j accepted together have ``2/N_alpha`` or ``1/N_alpha - 1/N_beta = 0``.

The result is a partition. Exchanging the groups changes no absolute gap, so no gap reveals which part is disadvantaged.
Where the sizes differ the smaller part is named disadvantaged, as the paper suggests, or the part of size N0 where N0
is public; the first answer then has only two possible values.
"""

from dataclasses import replace

import numpy as np

from developer.reveal.strategies.sizes import alone, group_sizes
from developer.reveal.strategies.strategy import Reveal, StrategyInputs, everyone


def counts(n: int) -> range:
    """Return the one allowed number of queries, n."""
    return range(n, n + 1)


def play(inputs: StrategyInputs) -> Reveal:
    """Partition everyone: one query for the sizes, one for each other person."""
    n = inputs.people
    (first,) = inputs.auditor.gaps(alone(n, 0)[None])
    n0 = inputs.terms.n0
    if n0 is None:
        # An absolute gap is negative only through noise; the smallest value without noise is 1/(n - 1).
        beta, alpha = group_sizes(max(first, 0), n)
    else:
        alpha = min((n - n0, n0), key=lambda size: abs(1 / size - first))
        beta = n - alpha

    H = np.eye(n)[1:]
    if alpha == beta:
        H[:, 0] = 1
    like_first, unlike = (2 / alpha, 0) if alpha == beta else (1 / alpha, 1 / beta)
    gaps = inputs.auditor.gaps(H)
    same = np.concatenate([[True], np.abs(gaps - like_first) < np.abs(gaps - unlike)])
    alpha_advantaged = alpha >= beta if n0 is None else beta == n0
    return replace(everyone(same == alpha_advantaged), polarity_known=alpha != beta)
