"""What features alone say about people's groups: a predictor trained on a public sample, in which groups are known.

The answers of an audit say something more. What a developer can infer from both together is the open question of
Hamman, Chen and Dutta's conclusion (FAccT 2023).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from developer.reveal.logistic import fit


def log_likelihood_ratio(
    sample: NDArray[np.float64], disadvantaged_rows: int, people: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Say how much likelier people's features are among the disadvantaged than among the advantaged: (n,), logarithms.

    A logistic regression of the group on the features gives posterior log-odds; the sample's own log-odds, 0 where it
    holds half of each group, are what it would say of everybody, and are taken off. What is left is
    ``log p(x | a=0) / p(x | a=1)``, which goes with any share of the groups.

    Parameters
    ----------
    sample : (rows, d), the disadvantaged rows first; both groups are in it.
    disadvantaged_rows : how many those are.
    people : (n, d).
    """
    groups = (np.arange(len(sample)) < disadvantaged_rows).astype(np.uint8)
    prior = np.log(disadvantaged_rows / (len(sample) - disadvantaged_rows))
    ratio: NDArray[np.float64] = fit(sample, groups).log_odds(people) - prior
    return ratio
