"""Run a privacy audit of a subject, and return its verdict."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from compliance.mechanisms.mechanism import Mechanism
from fairwall.errors import UserError
from sim.privacy_audit.by_group import GroupCounts, GroupMechanism
from sim.privacy_audit.catalogue import PrivacyAuditError, Setting
from sim.privacy_audit.greybox import NoiseFault, faults
from sim.privacy_audit.pairs import stratum_sizes, worst_pairs
from sim.privacy_audit.sampling import SampledLoss, lower_bound
from sim.privacy_audit.subject import AuditedSession, Batches

_ROUNDING = 1e-9
"""Relative tolerance for an exact loss above the claim: both are computed in float64."""


@dataclass(frozen=True)
class PrivacyVerdict:
    """The result of a privacy audit of a subject, in one setting.

    `claimed` is the loss claimed for a session, at `delta`. `exact` is the true loss at that delta, the worst over all
    neighbouring counts, and `exact_counts` the (n0, n1) that have it; None if not known. `level` is the probability of
    accusing a sound subject, over all looks; `evidence` is the result of sampling, None if nothing was sampled.
    `faults` are those of the grey-box test, None if it cannot inspect the subject.
    """

    subject: str
    setting: Setting
    claimed: float
    delta: float
    exact: float | None
    exact_counts: tuple[int, int] | None
    level: float
    evidence: SampledLoss | None
    faults: tuple[NoiseFault, ...] | None = None

    @property
    def accused_by_law(self) -> bool:
        """Whether the exact loss is above the claim; this is arithmetic, so no level applies."""
        return self.exact is not None and self.exact > self.claimed * (1 + _ROUNDING)

    @property
    def accused_by_samples(self) -> bool:
        """Whether the lower bound is above the claim; wrong at most at the level."""
        return self.evidence is not None and self.evidence.lower > self.claimed

    @property
    def accused_by_code(self) -> bool:
        """Whether the grey-box test proves a fault. It draws nothing that a sound subject could be accused by."""
        return any(fault.proven for fault in self.faults or ())

    @property
    def accused(self) -> bool:
        """Whether the subject does not keep its claim."""
        return self.accused_by_law or self.accused_by_code or self.accused_by_samples


def audit(
    name: str,
    subject: AuditedSession,
    setting: Setting,
    level: float,
    samples: int,
    seed: int,
    on_look: Callable[[int, float], None] = lambda _look, _lower: None,
    *,
    is_sampled: bool = True,
) -> PrivacyVerdict:
    """Audit the privacy of a subject from `catalogue.prepare`, or of the caller's own; `name` is for the verdict.

    `level` is the family-wise probability of accusing a sound subject in this audit, `samples` the most sessions on one
    data set. The same seed gives the same verdict. `on_look` is called after each look with its number and the best
    bound so far. Unless `is_sampled`, only arithmetic and the grey-box test are run.
    """
    with _explained(name):
        generator = np.random.default_rng(seed)
        worst = worst_loss(subject, setting.metric, setting.n, setting.queries)
        pairs = worst_pairs(setting.metric, setting.n, setting.queries, generator)
        tested = _mechanism(subject)
        found = None if tested is None else faults(tested, pairs, setting.epsilon, setting.delta)
        evidence = lower_bound(subject, pairs, level, samples, generator, on_look) if is_sampled else None
        claim = subject.claim
        exact, counts = (worst[0], worst[1:]) if worst else (None, None)
        return PrivacyVerdict(name, setting, claim.epsilon, claim.delta, exact, counts, level, evidence, found)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Raise a subject's exception again, in one line with its place."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        what = f"raised {type(error).__name__}: {error}".splitlines()[0]
        raise PrivacyAuditError(f"{name} {what} ({place.filename}:{place.lineno})") from error


def _mechanism(subject: AuditedSession) -> Mechanism | None:
    """Return the mechanism for the grey-box test; None for a service of several requests."""
    if isinstance(subject, GroupCounts):
        return GroupMechanism(subject)
    return subject.mechanism if isinstance(subject, Batches) else None


def worst_loss(subject: AuditedSession, metric: str, n: int, queries: int) -> tuple[float, int, int] | None:
    """Return the largest loss over all neighbouring counts, and its counts (n0, n1); None if it is not known."""
    worst: tuple[float, int, int] | None = None
    for size in stratum_sizes(metric, n):
        for n0 in range(1, size):
            loss = subject.loss(metric, n0, size - n0, n, queries)
            if loss is None:
                return None
            if worst is None or loss > worst[0]:
                worst = loss, n0, size - n0
    return worst
