"""BROKEN ON PURPOSE: mechanisms and services that do not keep the epsilon they claim, and their sound siblings.

A privacy audit that has never caught anything proves nothing. Each twin has one fault that was once printed, proposed
or shipped somewhere; its sibling runs the same code without the fault. Only privacy audits may use them: they are not
in `compliance`, and no scenario can name them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from compliance.ledger.accountant import Budget, Loss, pure
from compliance.mechanisms.mechanism import BatchQuestion, Guarantee, Mechanism, MechanismAnswer
from compliance.mechanisms.row_defaults import require_budget
from compliance.noise.sampling import ROUNDING_STEPS, Noise, step_for
from fairwall.arrays import Floats
from fairwall.laws.mechanisms.calibration import (
    cauchy_loss,
    conceal_law,
    laplace_loss,
    printed_conceal_scale,
    printed_laplace_scale,
)
from fairwall.laws.mechanisms.table import NoiseInputs
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.metrics.sensitivity import flip_sensitivity, global_sensitivity, local_sensitivity
from fairwall.laws.metrics.values import sums_over
from fairwall.laws.noise.distributions import Cauchy, Laplace
from sim.privacy_audit.exact import is_one_mean, neighbours
from sim.privacy_audit.sessions import releases
from sim.privacy_audit.subject import AuditedSession, Batches, PrivacyClaim

Scale = Callable[[NoiseInputs, int], float]
"""Noise scale of a batch, given the size of the whole data set."""

SCALES: Mapping[str, Scale] = {
    "right-laplace": lambda batch, _: batch.queries * global_sensitivity(batch.metric, batch.people) / batch.epsilon,
    "right-conceal": lambda batch, _: conceal_law(batch.metric, batch.n0, batch.n1, batch.queries, batch.epsilon).scale,
    # Theorem 6 as printed: an absolute gap moves by 1/2 at most. It moves by n / (2 (n-1)).
    "half-laplace": lambda batch, _: batch.queries / 2 / batch.epsilon,
    # Theorem 5 for equal opportunity as printed, from all people in place of those with label 1.
    "all-people-laplace": lambda batch, people: printed_laplace_scale(people, batch.queries, batch.epsilon),
    # For groups of at least two, where one may have one.
    "larger-groups-laplace": lambda batch, _: (
        batch.queries * global_sensitivity(batch.metric, batch.people, minimum_group=2) / batch.epsilon
    ),
    "short-laplace": lambda batch, people: 0.9 * SCALES["right-laplace"](batch, people),
    # By the local sensitivity, which is secret: a neighbour's noise has another scale.
    "local-laplace": lambda batch, _: (
        batch.queries * local_sensitivity(batch.metric, batch.n0, batch.n1) / batch.epsilon
    ),
    # Theorem 7 as printed, which halves between N0 = 1 and N0 = 2.
    "printed-conceal": lambda batch, _: printed_conceal_scale(batch.n0, batch.n1, batch.queries, batch.epsilon),
}
"""Noise scales by name: sound ones, and faulty ones that were printed, proposed or shipped."""


@dataclass(frozen=True)
class _Pure:
    """A mechanism that claims the requested epsilon, and by default answers metrics that are one mean."""

    name: str

    @property
    def title(self) -> str:
        """See `Mechanism.title`."""
        return self.name

    @property
    def guarantee(self) -> Guarantee:
        """See `Mechanism.guarantee`."""
        return "pure"

    def cost(self, epsilon: float, delta: float) -> Loss:
        """See `Mechanism.cost`."""
        require_budget(epsilon, delta)
        return pure(epsilon)

    def refuses(self, metric: str, _epsilon: float, _delta: float) -> str | None:
        """See `Mechanism.refuses`."""
        return None if self._answers(metric) else f"{self.name} does not answer metric {metric}"

    def release(
        self, question: BatchQuestion, _facts: object, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """See `Mechanism.release`."""
        require_budget(epsilon, delta)
        return self._release(question, epsilon, noise)

    def _release(self, question: BatchQuestion, epsilon: float, noise: Noise) -> MechanismAnswer:
        raise NotImplementedError

    def _answers(self, metric: str) -> bool:
        return is_one_mean(metric)


@dataclass(frozen=True)
class Additive(_Pure):
    """Independent noise of a given scale on every gap."""

    law: Literal["laplace", "cauchy"]
    scale: Scale
    only: str | None

    def _answers(self, metric: str) -> bool:
        return metric == self.only if self.only else is_one_mean(metric)

    def _release(self, question: BatchQuestion, epsilon: float, noise: Noise) -> MechanismAnswer:
        values = question.gaps()
        batch = NoiseInputs(question.metric, *question.records.counts(question.metric), len(values), epsilon)
        scale = self.scale(batch, question.records.people)
        if self.law == "cauchy":
            return MechanismAnswer(noise.cauchy(values, scale, step_for(1 / epsilon)))
        step = step_for(scale)
        return MechanismAnswer(noise.laplace(values, scale + len(values) * ROUNDING_STEPS * step / epsilon, step))

    def loss(self, batch: NoiseInputs, everybody: int) -> float:
        """Return the exact loss, an `exact.ExactLoss`."""
        scale = self.scale(batch, everybody)
        if self.law == "laplace":
            return batch.queries * local_sensitivity(batch.metric, batch.n0, batch.n1) / scale
        losses = [0.0]
        for other, leaving in neighbours(batch.n0, batch.n1):
            other_scale = self.scale(replace(batch, n0=other, n1=batch.people - other), everybody)
            moves = flip_sensitivity(batch.metric, batch.people, leaving)
            losses.append(batch.queries * cauchy_loss(moves, scale, other_scale))
        return max(losses)


@dataclass(frozen=True)
class _OfSums(_Pure):
    """A mechanism that computes gaps from a noisy N0 and noisy sums over a=0."""

    def loss(self, batch: NoiseInputs, _everybody: int) -> float:
        """Return the exact loss, an `exact.ExactLoss`."""
        return batch.epsilon * self._taken(batch.queries) if batch.people >= 3 else 0.0

    def _taken(self, queries: int) -> float:
        """Return the true cost of a batch, in multiples of epsilon, if the data set has neighbours."""
        raise NotImplementedError

    def _answers(self, metric: str) -> bool:
        return metric in ("sp", "abs_sp")

    def _told(
        self, question: BatchQuestion, size: Floats, sums: Callable[[Floats], Floats], total: Floats | None = None
    ) -> MechanismAnswer:
        """Return the gaps of an N0 and of sums clipped to its range: post-processing."""
        n = question.records.people
        if total is None:
            total = sums_over(np.ones(n, dtype=np.bool_), question.predictions)
        n0_near = np.clip(size, 1, n - 1)
        sum0 = np.clip(sums(n0_near), 0, n0_near)
        gap = (total - sum0) / (n - n0_near) - sum0 / n0_near
        return MechanismAnswer(np.abs(gap) if find_metric(question.metric).absolute else gap, {"n0": size})


@dataclass(frozen=True)
class BrokenCounts(_OfSums):
    """Laplace noise on N0 and on the sums over a=0 of h - 1/2; every gap is computed from these.

    A flip moves N0 by 1 and each of the m sums by 1/2. So N0 gets the share r = 1 / (1 + sqrt(2m)) of epsilon, and the
    sums the rest. ``free-size`` gives the sums all of epsilon: N0, "only a number of people", is released unpaid.
    ``low-bits`` computes the sum over everybody, which is public, from the two groups' secret sums: float64 rounds
    these differently for every A, and the answer's last bits reveal it. (A privacy audit found this in the sound
    sibling.)
    """

    fault: Literal["free-size", "low-bits"] | None

    def _release(self, question: BatchQuestion, epsilon: float, noise: Noise) -> MechanismAnswer:
        m = len(question.predictions)
        n0, _ = question.records.counts(question.metric)
        (sums,) = question.records.group_sums(question.metric, question.predictions)
        share = 1 / (1 + math.sqrt(2 * m))
        size = _laplace(np.array([float(n0)]), 1.0, share * epsilon, noise)
        of_sums = epsilon if self.fault == "free-size" else (1 - share) * epsilon
        centred = _laplace(sums.sum0 - n0 / 2, m / 2, of_sums, noise)
        total = sums.sum0 + sums.sum1 if self.fault == "low-bits" else None
        return self._told(question, size, lambda near: centred + near / 2, total)

    def _taken(self, queries: int) -> float:
        # Up to rounding: N0 and every sum can be worst at once.
        return 1 + 1 / (1 + math.sqrt(2 * queries)) if self.fault == "free-size" else 1.0


@dataclass(frozen=True)
class Cube(_OfSums):
    """Noise from a cube on N0 and on twice the sums over a=0 of h - 1/2, each of which a flip moves by at most 1.

    The numbers are rounded to a grid of step 0.8, so a flip moves them by up to two whole steps, 1.6. The fault
    ``step`` takes the noise for a move of 1.
    """

    fault: Literal["step"] | None

    def _release(self, question: BatchQuestion, epsilon: float, noise: Noise) -> MechanismAnswer:
        n0, _ = question.records.counts(question.metric)
        (sums,) = question.records.group_sums(question.metric, question.predictions)
        exact = np.append(float(n0), 2 * sums.sum0 - n0)
        noisy = noise.cube(exact, (1.0 if self.fault else self._moves()) / epsilon, self._STEP)
        size, centred = noisy[..., :1], noisy[..., 1:] / 2
        return self._told(question, size, lambda near: centred + near / 2)

    def _taken(self, _queries: int) -> float:
        # In some batch all sums move by the maximum.
        return self._moves() if self.fault else 1.0

    _STEP = 0.8

    def _moves(self) -> float:
        return self._STEP * (math.floor(1 / self._STEP) + 1)


@dataclass(frozen=True)
class Cells(_OfSums):
    """Whole-number noise on the disadvantaged people in each of five cells and in all; gaps are computed from these.

    Cells are runs of people in the order of their mean prediction. A person is in only one, so the cells cost one price
    together: their counts get 0.85 of epsilon and N0 the rest. ``free-size`` gives the cells all of it. ``by-group``
    moves the first disadvantaged person to the last cell, and releases the cells' sizes, which show it.
    """

    fault: Literal["free-size", "by-group"] | None

    def _release(self, question: BatchQuestion, epsilon: float, noise: Noise) -> MechanismAnswer:
        n, values = question.records.people, question.predictions
        cell_of = np.empty(n, dtype=np.intp)
        cell_of[np.argsort(values.mean(axis=0), kind="stable")] = np.arange(n) * self._CELLS // n
        if self.fault == "by-group":
            cell_of[np.argmin(question.records.turned(np.zeros(n, dtype=np.bool_)))] = self._CELLS - 1
        exact = question.records.disadvantaged_in(cell_of, self._CELLS)
        of_cells = epsilon if self.fault == "free-size" else (1 - self._SIZE_SHARE) * epsilon
        noisy = noise.laplace(exact, 1 / of_cells, 1.0)
        size = noise.laplace(exact.sum(keepdims=True), 1 / (self._SIZE_SHARE * epsilon), 1.0)
        # Post-processing: each cell's people take its mean prediction.
        people = np.bincount(cell_of, minlength=self._CELLS)
        means = np.stack([np.bincount(cell_of, row, self._CELLS) for row in values]) / np.maximum(people, 1)
        sums = (noisy[..., np.newaxis, :] * means).sum(axis=-1)
        released = self._told(question, size, lambda _: sums)
        facts = {**released.facts, "cells": noisy}
        if self.fault == "by-group":
            facts["people"] = noise.laplace(people.astype(float), 0.0, 1.0)
        return replace(released, facts=facts)

    def _taken(self, _queries: int) -> float:
        if self.fault == "by-group":
            return math.inf
        return 1 + self._SIZE_SHARE if self.fault else 1.0

    _CELLS = 5
    _SIZE_SHARE = 0.15


@dataclass(frozen=True)
class BrokenSparseVector(_Pure):
    """Above Threshold (Dwork and Roth 2014): whether each model's gap is above 0, until the first one that is.

    Sound with Laplace noise of 2 Delta / epsilon on the threshold and of 4 Delta / epsilon on every gap. Answers are 1
    for above, 0 for below, -1 for not evaluated. The faults are from Lyu, Su and Li, VLDB 2017: ``silent`` puts no
    noise on the gaps (Stoddard, Chen, Machanavajjhala 2014), ``endless`` never stops, as if only the threshold cost
    epsilon (Chen, Xiao, Zhang, Xu 2015).
    """

    fault: Literal["silent", "endless"] | None

    def _release(self, question: BatchQuestion, epsilon: float, noise: Noise) -> MechanismAnswer:
        moves = global_sensitivity(question.metric, sum(question.records.counts(question.metric)))
        threshold = _laplace(np.zeros(1), moves, epsilon / 2, noise)
        values = question.gaps()
        if self.fault != "silent":
            values = _laplace(values, moves, epsilon / 4, noise)
        above = (values >= threshold).astype(np.float64)
        if self.fault is None:
            seen_before = np.cumsum(above, axis=-1) - above
            above = np.where(seen_before > 0, -1.0, above)
        return MechanismAnswer(above)


@dataclass(frozen=True)
class PermuteAndFlip(_Pure):
    """Permute and flip (McKenna and Sheldon, NeurIPS 2020): a model with a small absolute gap gets 1, the others 0.

    Models come up in random order; the first whose coin of exp(-epsilon (gap - least gap) / (2 Delta)) shows heads is
    chosen. ``single`` omits the 2, as if all gaps could only fall together.
    """

    fault: Literal["single"] | None

    def _release(self, question: BatchQuestion, epsilon: float, noise: Noise) -> MechanismAnswer:
        gaps = np.abs(question.gaps())
        moves = global_sensitivity(question.metric, sum(question.records.counts(question.metric)))
        exponents = epsilon * (gaps - gaps.min()) / ((1 if self.fault else 2) * moves)
        heads = noise.bernoulli_exp(exponents)
        order = noise.permutation(gaps.size)
        chosen = next(int(model) for model in order if heads[int(model)])
        return MechanismAnswer((np.arange(gaps.size) == chosen).astype(np.float64))


@dataclass(frozen=True)
class Seldom(_Pure):
    """Laplace noise on every gap, except in some sessions.

    ``few``: no answer if a group has fewer than three people, which reveals that. ``exact``: no noise in one session of
    200. None: no answer in one session of 50, whatever the records, which is sound.
    """

    fault: Literal["few", "exact"] | None

    def _release(self, question: BatchQuestion, epsilon: float, noise: Noise) -> MechanismAnswer:
        counts, gaps = question.records.counts(question.metric), question.gaps()
        if (self.fault == "few" and min(counts) < 3) or (self.fault is None and noise.bernoulli(0.02, 1)[0]):
            return MechanismAnswer(np.full(gaps.shape, np.nan))
        values = _laplace(gaps, gaps.size * global_sensitivity(question.metric, sum(counts)), epsilon, noise)
        if self.fault == "exact":
            values = np.where(noise.bernoulli(1 / 200, 1), gaps, values)
        return MechanismAnswer(values)


def _laplace(values: Floats, sensitivity: float, epsilon: float, noise: Noise) -> Floats:
    step = step_for(sensitivity / epsilon)
    return noise.laplace(values, (sensitivity + values.size * ROUNDING_STEPS * step) / epsilon, step)


# ---- services: more than one request in a session


@dataclass(frozen=True)
class _Service:
    """A service that answers with a mechanism, at epsilon per request."""

    mechanism: Mechanism
    epsilon: float
    broken: bool

    @property
    def claim(self) -> PrivacyClaim:
        """See `AuditedSession.claim`."""
        return PrivacyClaim(self.epsilon, 0.0)

    def refuses(self, metric: str) -> str | None:
        """See `AuditedSession.refuses`."""
        return self.mechanism.refuses(metric, self.epsilon, 0.0)

    def log_ratio(self, _first: BatchQuestion, _second: BatchQuestion, _transcripts: Floats) -> None:
        """Return None: the numbers of a session are not independent, so their ratio must be learned."""

    def _answers(self, question: BatchQuestion, count: int, generator: np.random.Generator) -> Floats:
        return releases(self.mechanism, question, self.epsilon, 0.0, count, generator)

    def _sound(self, metric: str, n0: int, n1: int, queries: int) -> float:
        return laplace_loss(metric, n0, n1, queries, self.epsilon)


@dataclass(frozen=True)
class TwoRequests(_Service):
    """Two requests in a session: the models, then as many that accept nobody. Broken: both get the same noise.

    Every gap of the second batch is 0, so its answers are the noise of the first.
    """

    @property
    def claim(self) -> PrivacyClaim:
        """See `AuditedSession.claim`."""
        return PrivacyClaim(2 * self.epsilon, 0.0)

    def loss(self, metric: str, n0: int, n1: int, _people: int, queries: int) -> float:
        """See `AuditedSession.loss`."""
        return math.inf if self.broken else 2 * self._sound(metric, n0, n1, queries)

    def sessions(self, question: BatchQuestion, count: int, generator: np.random.Generator) -> Floats:
        """See `AuditedSession.sessions`."""
        seeds = generator.integers(2**63, size=2)
        first, second = (np.random.default_rng(seed) for seed in (seeds[[0, 0]] if self.broken else seeds))
        return np.hstack((self._answers(question, count, first), self._answers(_nobody(question), count, second)))


@dataclass(frozen=True)
class GuessedSeed(_Service):
    """One request, by a caller who replays the noise from a guessed seed. Broken: the guess is right.

    Adding the seed's noise to gaps of 0 needs no protected attribute, and shows what to subtract.
    """

    def loss(self, metric: str, n0: int, n1: int, _people: int, queries: int) -> float:
        """See `AuditedSession.loss`."""
        return math.inf if self.broken else self._sound(metric, n0, n1, queries)

    def sessions(self, question: BatchQuestion, count: int, generator: np.random.Generator) -> Floats:
        """See `AuditedSession.sessions`."""
        seeds = generator.integers(2**63, size=2)
        service, guess = (np.random.default_rng(seed) for seed in (seeds[[0, 0]] if self.broken else seeds))
        answers = self._answers(question, count, service)
        return np.hstack((answers, answers - self._answers(_nobody(question), count, guess)))


@dataclass(frozen=True)
class Restarted(_Service):
    """A budget of one request, made again after a restart. Broken: the service forgets what was spent."""

    def loss(self, metric: str, n0: int, n1: int, _people: int, queries: int) -> float:
        """See `AuditedSession.loss`."""
        return (2 if self.broken else 1) * self._sound(metric, n0, n1, queries)

    def sessions(self, question: BatchQuestion, count: int, generator: np.random.Generator) -> Floats:
        """See `AuditedSession.sessions`."""
        budget, charge = Budget(self.epsilon), pure(self.epsilon)
        spent: dict[Loss, int] = {}
        transcript = []
        for _request in range(2):
            # A refusal depends on nothing secret, so all sessions agree and their answers can be drawn together.
            if budget.affords(spent, charge):
                spent = {charge: spent.get(charge, 0) + 1}
                transcript.append(self._answers(question, count, generator))
            if self.broken:
                spent = {}
        return np.hstack(transcript)


def _nobody(question: BatchQuestion) -> BatchQuestion:
    """Return the same question about models that accept nobody: every gap is 0."""
    return BatchQuestion(question.metric, np.zeros_like(question.predictions), question.records)


# ---- makers of subjects, from a name and an epsilon

Maker = Callable[[str, float], AuditedSession]


def additive(law: Literal["laplace", "cauchy"], named: str, only: str | None = None) -> Maker:
    """Return the maker of a subject with noise on every gap, for the metric `only` or all metrics of one mean."""
    scale = SCALES[named]

    def make(name: str, epsilon: float) -> AuditedSession:
        mechanism = Additive(name, law, scale, only)

        def noise_law(batch: NoiseInputs, everybody: int) -> Laplace | Cauchy:
            return (Laplace if law == "laplace" else Cauchy)(scale(batch, everybody))

        return Batches(mechanism, epsilon, 0.0, mechanism.loss, noise_law)

    return make


def unknown(kind: Callable[..., Mechanism], *settings: Any) -> Maker:
    """Return the maker of a subject whose loss is not known: only sessions can reveal it."""
    return lambda name, epsilon: Batches(kind(name, *settings), epsilon, 0.0)


def known(kind: type[BrokenCounts | Cube | Cells], fault: str | None) -> Maker:
    """Return the maker of a subject whose loss is known."""

    def make(name: str, epsilon: float) -> AuditedSession:
        mechanism = kind(name, fault)  # type: ignore[arg-type]
        return Batches(mechanism, epsilon, 0.0, mechanism.loss)

    return make


def service(kind: type[_Service], *, broken: bool) -> Maker:
    """Return the maker of a service over sound Laplace noise."""
    sound = Additive("laplace", "laplace", SCALES["right-laplace"], None)
    return lambda _, epsilon: kind(sound, epsilon, broken)  # type: ignore[return-value]
