"""A predictor of people's groups from features alone, trained on a public sample with known groups.

What a developer can infer from the predictor and an audit's answers together is the open question of Hamman, Chen and
Dutta's conclusion (FAccT 2023).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from developer.reveal.logistic import fit


def log_likelihood_ratio(
    sample: NDArray[np.float64], disadvantaged_rows: int, people: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return each person's log-likelihood ratio, (n,), of being disadvantaged to being advantaged, by features.

    A logistic regression of the group on the features gives posterior log-odds, from which the sample's own log-odds
    are subtracted (0 where it holds half of each group). The result is ``log p(x | a=0) / p(x | a=1)``, which holds for
    any share of the groups. The sample, (rows, d), holds both groups, and begins with the `disadvantaged_rows`.
    """
    groups = (np.arange(len(sample)) < disadvantaged_rows).astype(np.uint8)
    prior = np.log(disadvantaged_rows / (len(sample) - disadvantaged_rows))
    ratio: NDArray[np.float64] = fit(sample, groups).log_odds(people) - prior
    return ratio
