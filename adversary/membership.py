"""Membership inference: whether given people's rows were among those that a released model was trained on.

Fairness constraints can raise what a model gives away about its own rows (Chang and Shokri, EuroS&P 2021), so that a
defence against distribution inference has to be looked at for this too, before and after. Candidates are ranked by
loss (Yeom et al., CSF 2018): a model is surer of the truth about rows it was trained on. The statistic is the logit of
the score given to the true label. How good a ranking is, its AUC says: the probability that a member stands above a
non-member.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adversary.attacks.attack import Answers, log_odds


def by_loss(answers: Answers, labels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Rank candidates by the logit of the score of their true label: the larger, the likelier a member.

    Parameters
    ----------
    answers : (V, candidates), victims' scores in [0, 1].
    labels : ndarray of 0 or 1, shape (candidates,)
    """
    logits = log_odds(answers)
    return np.asarray(np.where(labels == 1, logits, -logits))


def auc(ranks: NDArray[np.float64], member: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Compute the probability that a member ranks above a non-member, a tie counting half: 1/2 tells nothing.

    Victims of one data split share their candidates: an interval for their mean is one over splits.

    Parameters
    ----------
    ranks : ndarray, shape (V, candidates)
    member : (V, candidates), the truth, which only the referee has; every victim has candidates of both kinds.
    """
    return np.array([_auc(values, inside) for values, inside in zip(ranks, member, strict=True)])


def _auc(values: NDArray[np.float64], inside: NDArray[np.bool_]) -> float:
    members, others = values[inside], np.sort(values[~inside])
    if not len(members) or not len(others):
        raise ValueError("an AUC needs members and others")
    below = np.searchsorted(others, members, "left")
    up_to = np.searchsorted(others, members, "right")
    return float((below + up_to).mean() / (2 * len(others)))
