"""Membership inference: whether given people's rows were training rows of a released model.

Fairness constraints can raise what a model leaks about its training rows (Chang and Shokri, EuroS&P 2021), so a defence
against distribution inference has to be tested for this too, before and after. Candidates are ranked by loss (Yeom et
al., CSF 2018): a model is more certain of the true label of its training rows. The statistic is the logit of the score
of the true label. The quality of a ranking is its AUC: the probability that a member ranks above a non-member.
"""

from __future__ import annotations

import numpy as np

from adversary.attacks.attack import Answers, log_odds
from fairwall.arrays import Bools, Bytes, Floats


def by_loss(answers: Answers, labels: Bytes) -> Floats:
    """Return the logit of each candidate's true-label score, (V, candidates): larger means likelier a member."""
    logits = log_odds(answers)
    return np.asarray(np.where(labels == 1, logits, -logits))


def auc(ranks: Floats, member: Bools) -> Floats:
    """Return each victim's probability that a member ranks above a non-member, a tie counting half; 1/2 is chance.

    Victims of one data split share their candidates, so an interval for their mean must be computed over splits.
    `member`, (V, candidates), is the truth, which only the referee has; every victim needs candidates of both kinds.
    """
    return np.array([_auc(values, inside) for values, inside in zip(ranks, member, strict=True)])


def _auc(values: Floats, inside: Bools) -> float:
    members, others = values[inside], np.sort(values[~inside])
    if not len(members) or not len(others):
        raise ValueError("an AUC needs members and others")
    below = np.searchsorted(others, members, "left")
    up_to = np.searchsorted(others, members, "right")
    return float((below + up_to).mean() / (2 * len(others)))
