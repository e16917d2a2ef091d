"""Membership inference: whether given people's rows were among those that a released model was trained on.

Fairness constraints can raise what a model gives away about its own rows (Chang and Shokri, EuroS&P 2021), so that a
defence against distribution inference has to be looked at for this too, before and after. The adversary is dealt
candidates: rows of one group, half of them, unmarked, among the victim's. It asks the model about them and ranks them.

* By loss (Yeom et al., CSF 2018): a model is surer of the truth about rows it was trained on. The statistic is the
  logit of the score given to the true label.
* By likelihood ratio, offline (Carlini et al., S&P 2022): some rows are easy for every model. With the mean and spread
  of that logit over shadow models, none of which was trained on the candidate, the statistic is how many spreads the
  victim's lies above that mean. Shadows on the adversary's own rows have that property by construction, so they cost
  nothing more; the spread is pooled over candidates where shadows are few.

How good a ranking is, its AUC says: the probability that a member stands above a non-member. The advantage here is
that of guessing that the upper half are members: TPR - FPR, which needs no threshold chosen with hindsight, so that it
is 0 on average for a model that gives nothing away.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adversary.attacks.attack import Answers
from adversary.attacks.threshold_test import LEAST

# With fewer shadows, a spread of each candidate's own is too uncertain (Carlini et al., section VI-C: below 64 or so).
OWN_SPREAD = 64


def by_loss(answers: Answers, labels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Rank candidates by the logit of the score of their true label.

    Parameters
    ----------
    answers : ndarray, shape (V, candidates)
        Victims' scores in [0, 1].
    labels : ndarray of 0 or 1, shape (candidates,)

    Returns
    -------
    ndarray
        Shape (V, candidates): the larger, the likelier a member.
    """
    inside = np.clip(answers, LEAST, 1 - LEAST)
    logits = np.log(inside) - np.log1p(-inside)
    return np.asarray(np.where(labels == 1, logits, -logits))


def by_likelihood(answers: Answers, labels: NDArray[np.uint8], shadows: Answers) -> NDArray[np.float64]:
    """Rank candidates by how far a victim's logit lies above those of models that were not trained on them.

    Parameters
    ----------
    answers : ndarray, shape (V, candidates)
    labels : ndarray of 0 or 1, shape (candidates,)
    shadows : ndarray, shape (shadows, candidates)
        Scores of at least 2 shadow models, of the bit that the adversary takes for the victims'.

    Returns
    -------
    ndarray
        Shape (V, candidates).

    Raises
    ------
    ValueError
        If there are fewer than 2 shadows.
    """
    if len(shadows) < 2:
        raise ValueError("a spread needs at least 2 shadow models")
    outside = by_loss(shadows, labels)
    variance = outside.var(0, ddof=1)
    if len(shadows) < OWN_SPREAD:
        variance = np.full_like(variance, variance.mean())
    # A spread of 0 is a candidate on which all shadows are certain, or as certain as scores can tell.
    return np.asarray((by_loss(answers, labels) - outside.mean(0)) / np.sqrt(np.maximum(variance, LEAST)))


def auc(ranks: NDArray[np.float64], member: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Compute the probability that a member ranks above a non-member, a tie counting half.

    Parameters
    ----------
    ranks : ndarray, shape (V, candidates)
    member : ndarray of bool, shape (V, candidates)
        The truth, which only the referee has; every victim has candidates of both kinds.

    Returns
    -------
    ndarray
        Shape (V,), 1/2 for a ranking that tells nothing. Victims of one data split share their candidates: an interval
        for their mean is one over splits.
    """
    return np.array([_auc(values, inside) for values, inside in zip(ranks, member, strict=True)])


def advantage(ranks: NDArray[np.float64], member: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Compute TPR - FPR of taking the upper half of the candidates for members; of a tie at the cut, a fair share.

    Parameters
    ----------
    ranks, member
        As for `auc`.

    Returns
    -------
    ndarray
        Shape (V,), in [-1, 1].
    """
    middle = np.median(ranks, axis=1, keepdims=True)
    above, at = ranks > middle, ranks == middle
    # So much of what lies at the cut as makes it half of all.
    owed = ranks.shape[1] / 2 - above.sum(1, keepdims=True)
    taken = above + at * owed / np.maximum(at.sum(1, keepdims=True), 1)
    inside = np.asarray(member, dtype=np.float64)
    rates = [(taken * part).sum(1) / part.sum(1) for part in (inside, 1 - inside)]
    return np.asarray(rates[0] - rates[1])


def _auc(values: NDArray[np.float64], inside: NDArray[np.bool_]) -> float:
    members, others = values[inside], np.sort(values[~inside])
    if not len(members) or not len(others):
        raise ValueError("an AUC needs members and others")
    below = np.searchsorted(others, members, "left")
    up_to = np.searchsorted(others, members, "right")
    return float((below + up_to).mean() / (2 * len(others)))
