"""A privacy audit from its start to the verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sim.privacy_audit.catalogue import Setting
from sim.privacy_audit.pairs import stratum_sizes, worst_pairs
from sim.privacy_audit.sampling import Evidence, lower_bound
from sim.privacy_audit.subject import Subject

_ROUNDING = 1e-9
"""By which part of the claim an exact loss may exceed it: float64 has computed both."""


@dataclass(frozen=True)
class Verdict:
    """What a privacy audit says of a subject, by name, that claims a privacy loss at a delta for a session.

    Attributes
    ----------
    exact : the true loss at this delta, the worst over all neighbouring counts; None where nobody has worked it out.
    exact_counts : the (n0, n1) that have it.
    level : the probability of accusing a sound subject, over all looks.
    evidence : what sampling found.
    """

    subject: str
    setting: Setting
    claimed: float
    delta: float
    exact: float | None
    exact_counts: tuple[int, int] | None
    level: float
    evidence: Evidence

    @property
    def accused_by_law(self) -> bool:
        """Whether the exact loss is above the claim. A matter of arithmetic: no level applies."""
        return self.exact is not None and self.exact > self.claimed * (1 + _ROUNDING)

    @property
    def accused_by_samples(self) -> bool:
        """Whether the lower bound is above the claim; wrong at most at the level."""
        return self.evidence.lower > self.claimed

    @property
    def accused(self) -> bool:
        """Whether the subject does not keep its claim."""
        return self.accused_by_law or self.accused_by_samples


def audit(
    name: str,
    subject: Subject,
    setting: Setting,
    level: float,
    samples: int,
    seed: int,
    on_look: Callable[[int, float], None] = lambda _look, _lower: None,
) -> Verdict:
    """Audit a subject's privacy; the same seed gives the same verdict.

    Parameters
    ----------
    subject, setting : from `catalogue.prepare`, or one's own.
    level : family-wise: the probability of accusing a sound subject in this audit.
    samples : the most sessions on one data set.
    on_look : called after each look with its number and the best bound so far.
    """
    generator = np.random.default_rng(seed)
    worst = worst_loss(subject, setting.metric, setting.n, setting.queries)
    pairs = worst_pairs(setting.metric, setting.n, setting.queries, generator)
    evidence = lower_bound(subject, pairs, level, samples, generator, on_look)
    claim = subject.claim
    exact, counts = (worst[0], worst[1:]) if worst else (None, None)
    return Verdict(name, setting, claim.epsilon, claim.delta, exact, counts, level, evidence)


def worst_loss(subject: Subject, metric: str, n: int, queries: int) -> tuple[float, int, int] | None:
    """Return the largest loss over all pairs of neighbouring counts, with the counts (n0, n1) that have it.

    None where it is not known.
    """
    worst: tuple[float, int, int] | None = None
    for size in stratum_sizes(metric, n):
        for n0 in range(1, size):
            loss = subject.loss(metric, n0, size - n0, n, queries)
            if loss is None:
                return None
            if worst is None or loss > worst[0]:
                worst = loss, n0, size - n0
    return worst
