r"""The kinds of steps for mechanisms whose answers are not a gap plus noise: choices, counts and noisy attributes.

Each answer, or a number computed from answers, is mapped to a number that is uniform if the mechanism has its
distribution, by a draw between P(less) and P(not more); then it is tested like all noise
(`sim.conformance.independence_checks`).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairwall.arrays import Floats
from fairwall.laws.choice import posterior as joint
from fairwall.laws.choice.cell_purchases import CellPurchase, disadvantaged_among, merged, planned, seen_by
from fairwall.laws.choice.low_rank import best_split
from fairwall.laws.choice.public_batch import AskedBatch
from fairwall.laws.mechanisms.calibration import TEST_SHARE, proposed_size
from fairwall.laws.mechanisms.selection import sparse_vector, unsigned
from fairwall.laws.metrics.metric import find_metric, stratum
from fairwall.laws.metrics.sensitivity import global_sensitivity
from fairwall.laws.metrics.values import part_values
from fairwall.laws.noise.count_noise import gaussian_scales, laplace_scales
from fairwall.laws.noise.distributions import Gaussian, Laplace
from fairwall.laws.noise.gaussian import gaussian_multiplier
from fairwall.laws.noise.linf_ball import coordinates, cube_scales, made_uniform
from fairwall.laws.noise.randomized_response import turning_probability
from fairwall.rpc import arrays
from sim.conformance import bounds, law
from sim.conformance.audits import AuditStep, Searched
from sim.conformance.calls import CallResult, ProtocolViolation
from sim.conformance.independence_checks import AnsweredBatch, require_nothing_depends
from sim.conformance.promise import Array, Known, cdf
from sim.conformance.services import on
from sim.conformance.step_base import Predictions, Words
from sim.conformance.target import KnownPeople
from sim.conformance.unseen_law import with_totals
from sim.conformance.world import PLACES, CaseState

_THRESHOLD, _POSITIVES = 0.1, 3
"""Threshold for gaps of a policy's sparse vector, and the most answers above it."""

_DRAWS, _FEWER = 50_000, 2_000

_P = 1e-12
"""Probability that one check outside a survey accuses a sound server."""


def _ask(
    world: CaseState,
    rows: NDArray[Any],
    name: str,
    *,
    caller: str = "developer",
    deployment: str = "",
    metric: str = "sp",
    by: str = "",
    epsilon: float,
    candidates: Searched | None = None,
) -> CallResult:
    """Request a batch of any predictions, which must be answered, and check all but its noise."""
    own = {"caller": caller, "deployment": deployment, "metric": metric, "by": by, "epsilon": epsilon}
    searched, count = candidates, Predictions(models=len(rows))
    asked = AuditStep(do="audit", id=f"{name}-{world.step}", candidates=searched, predictions=count, **own)
    step = on(world.service, asked)
    world.open_account(caller, deployment)
    asked = step.asked_about(world, np.asarray(rows, np.float64))
    seen: CallResult = step.ask(world, asked)
    step.expect.check_end(seen)
    # Checks everything about the answer but its noise.
    step.check_answer(world, asked, seen)
    return seen


def _gaps(seen: CallResult) -> Array:
    return _numbers(seen.messages[0].gaps)


def _numbers(message: Any) -> Array:
    return arrays.from_message(message).astype(np.float64)


def _drawn_between(low: Array, high: Array) -> Array:
    return low + (high - low) * np.random.default_rng().random(np.shape(low))


def _alike(world: CaseState, models: int) -> Array:
    return np.full((models, world.about().people), 0.5)


def _of_group(world: CaseState, models: int) -> Array:
    return np.tile(world.people().protected == 1, (models, 1)).astype(np.float64)


class Verdicts(Words):
    """A step that asks a sparse vector which of many models with equal gaps, 0 or 1 by `fair`, exceed its threshold."""

    do: Literal["verdicts"]
    calls: int = Field(ge=1)
    models: int = Field(ge=1)
    epsilon: float
    metric: str = "sp"
    fair: bool = True

    def run(self, world: CaseState) -> None:
        """Request verdicts, and test the places of the first and the last yes."""
        people, gap = world.people(), 0.0 if self.fair else 1.0
        size = int(stratum(self.metric, people.labels).sum())
        moves = global_sensitivity(unsigned(self.metric), size, minimum_group=world.about().minimum_group)
        promised = sparse_vector(_THRESHOLD, moves, _POSITIVES, self.epsilon)
        steps = np.linspace(1e-6, 1 - 1e-6, 4001)
        thresholds = _THRESHOLD - np.sign(steps - 0.5) * np.log1p(-2 * np.abs(steps - 0.5)) * promised.threshold_scale
        yes = 1 - cdf(thresholds - gap, Laplace(promised.query_scale))
        rows = _alike(world, self.models) if self.fair else _of_group(world, self.models)
        found: list[list[float]] = []
        for number in range(self.calls):
            name = f"verdicts-{self.epsilon}-{self.fair}-{self.models}-{number}"
            answers = _gaps(_ask(world, rows, name, metric=self.metric, epsilon=self.epsilon))
            found.append([self._number(answers, kth, yes) for kth in (1, _POSITIVES)])
        for column in np.array(found).T:
            require_nothing_depends(
                [AnsweredBatch({"caller": ""}, np.array([c]), np.zeros(1), np.zeros(1)) for c in column]
            )

    def _number(self, answers: Array, kth: int, yes: Array) -> float:
        from scipy.stats import binom

        places = np.flatnonzero(answers == 1)
        silent = np.flatnonzero(np.isnan(answers))
        stop = places[_POSITIVES - 1] + 1 if len(places) >= _POSITIVES else len(answers)
        if not np.isin(answers[:stop], (0, 1)).all() or not np.array_equal(silent, np.arange(stop, len(answers))):
            raise ProtocolViolation("a sparse vector says yes or no up to its last yes, and nothing after")
        at = int(places[kth - 1]) + 1 if len(places) >= kth else len(answers) + 1
        before = float(np.mean(binom.sf(kth - 1, at - 1, yes)))
        until = 1.0 if at > len(answers) else float(np.mean(binom.sf(kth - 1, at, yes)))
        return float(2 * _drawn_between(np.array(before), np.array(until)) - 1)


class ChoiceStep(Words):
    """A step that requests the fairest model repeatedly; that at `place` (-1: all) has no gap, others the largest."""

    do: Literal["choices"]
    calls: int = Field(ge=1)
    models: int = Field(ge=2)
    epsilon: float
    metric: str = "sp"
    place: int = 0

    def run(self, world: CaseState) -> None:
        """Request choices, and count them."""
        size = int(stratum(self.metric, world.people().labels).sum())
        sensitivity = global_sensitivity(unsigned(self.metric), size, minimum_group=world.about().minimum_group)
        rows = _alike(world, self.models) if self.place < 0 else _of_group(world, self.models)
        rows[max(self.place, 0)] = 0.5
        accepted = math.exp(-self.epsilon / (2 * sensitivity)) if self.place >= 0 else 1.0
        others = self.models
        # The fair model accepts for sure, and wins if it comes before all that would: see
        # fairwall.laws.mechanisms.selection.
        likely = (1 - (1 - accepted) ** others) / (others * accepted)
        watched, number = max(self.place, 0), 0
        chosen = np.empty(self.calls, np.int64)
        for number in range(self.calls):
            name = f"choices-{self.epsilon}-{self.place}-{self.models}-{number}"
            answers = _gaps(_ask(world, rows, name, metric=self.metric, epsilon=self.epsilon))
            if sorted(answers) != [0.0] * (self.models - 1) + [1.0]:
                raise ProtocolViolation("a choice is 1 for one model and 0 for all others")
            chosen[number] = int(np.argmax(answers))
        _require_rate(int((chosen == watched).sum()), self.calls, likely, "the model without a gap was chosen")
        # All models with the same gap are equally likely.
        rest = [place for place in range(self.models) if place != watched]
        halves = chosen[chosen != watched]
        low = int(np.isin(halves, rest[: len(rest) // 2]).sum())
        _require_rate(low, len(halves), (len(rest) // 2) / len(rest), "one of the first models was chosen")


class NoisyAttributes(Words):
    """A step that has accounts buy randomised response about each person, and derives the noisy attributes."""

    do: Literal["noisy_attributes"]
    callers: tuple[str, ...]
    epsilon: float

    def run(self, world: CaseState) -> None:
        """Request answers, and test which attributes were flipped."""
        truth, size, least = world.people().protected, world.about().people, world.about().minimum_group
        probability = turning_probability(self.epsilon)
        batches = []
        for caller in self.callers:
            first = _ask(world, np.eye(size), "each", caller=caller, epsilon=self.epsilon)
            if first.messages[0].epsilon_charged != self.epsilon:
                raise ProtocolViolation("an account's first batch was not charged")
            answers = _gaps(first)
            noisy = (answers > 0).astype(np.uint8)
            known = np.clip((noisy.sum() - size * probability) / (1 - 2 * probability), 1, size - 1)
            # No gap is larger than between the smallest allowed groups.
            expected = np.clip(np.where(noisy == 1, 1 / known, -1 / (size - known)), -1 / least, 1 / least)
            if not np.allclose(answers, expected, rtol=0, atol=1e-9):
                raise ProtocolViolation("answers do not follow from noisy attributes")
            again = _ask(world, np.eye(size), "again", caller=caller, epsilon=self.epsilon / 2)
            if again.messages[0].epsilon_charged != 0 or not np.array_equal(_gaps(again), answers):
                raise ProtocolViolation("an account was not answered from the noisy attributes that it has bought")
            turned = noisy != truth
            low = np.where(turned, 0.0, probability)
            high = np.where(turned, probability, 1.0)
            centred = 2 * _drawn_between(low, high) - 1
            batches.append(AnsweredBatch({"caller": caller}, centred, truth.astype(np.float64) * 2 - 1, answers))
        require_nothing_depends(batches)


class NoisySizes(Words):
    """A step that has accounts buy noisy counts: the disadvantaged count once, which later answers reveal."""

    do: Literal["noisy_sizes"]
    callers: tuple[str, ...]
    epsilon: float
    metric: str = "sp"

    def run(self, world: CaseState) -> None:
        """Request answers, and test the noise on the counts."""
        about, people = world.about(), world.people()
        inside = stratum(self.metric, people.labels)
        n, n0 = int(inside.sum()), int((people.protected[inside] == 0).sum())
        least = about.minimum_group
        sizes = np.arange(least, n - least + 1)
        # The gap that compliance computes for predictions equal to the group, for each size that it may have bought.
        total = n - n0
        sums = np.clip((sizes - n0) / 2, np.maximum(0, total - (n - sizes)), np.minimum(sizes, total))
        told = (total - sums) / (n - sizes) - sums / sizes
        batches = []
        for caller in self.callers:
            _ask(world, _alike(world, 1), "buys", caller=caller, metric=self.metric, epsilon=self.epsilon)
            rows = _of_group(world, 1)
            answer = float(_gaps(_ask(world, rows, "tells", caller=caller, metric=self.metric, epsilon=2.0**19))[0])
            place = int(np.argmin(np.abs(told - answer)))
            if abs(told[place] - answer) > 1e-3:
                raise ProtocolViolation(f"an answer of {answer:.4g} does not follow from any noisy count")
            name = "unseen" if world.service in PLACES else about.mechanism
            low, high = self._ends(name, about.batch_delta, int(sizes[place]), n0)
            # The first and the last size include all noise beyond them.
            low, high = low if place else 0.0, high if place < len(sizes) - 1 else 1.0
            centred = 2 * _drawn_between(np.array([low]), np.array([high])) - 1
            batches.append(AnsweredBatch({"caller": caller}, centred, np.zeros(1), np.zeros(1)))
        require_nothing_depends(batches)

    def _ends(self, mechanism: str, delta: float, size: int, n0: int) -> tuple[float, float]:
        ends = np.array([size - n0 - 0.5, size - n0 + 0.5])
        if mechanism in ("cube", "unseen"):  # a constant model has no coordinate if its predictions are seen
            low, high = cube_scales(int(mechanism == "unseen"), self.epsilon).law.distribution(ends)
            return float(low), float(high)
        if mechanism in ("counts-gaussian", "low-rank"):
            # A cube of N0 alone is Laplace.
            promised: Known = Laplace(1 / self.epsilon)
            if mechanism == "counts-gaussian":
                promised = Gaussian(gaussian_scales(1, gaussian_multiplier(self.epsilon, delta)).size)
            low, high = cdf(ends, promised)
            return float(low), float(high)
        rate = math.exp(-1 / laplace_scales(1, self.epsilon).size)
        return _geometric(size - n0 - 1, rate), _geometric(size - n0, rate)


def _geometric(most: int, rate: float) -> float:
    """Return P(noise <= most) for noise with P(k) proportional to rate^|k|."""
    tail = rate ** (-most if most < 0 else most + 1) / (1 + rate)
    return tail if most < 0 else 1 - tail


class NoisySums(Words):
    """A step that requests many batches of noisy counts, at an epsilon so large that nothing is moved or rounded."""

    do: Literal["noisy_sums"]
    callers: tuple[str, ...] = ("developer", "other")
    metrics: tuple[str, ...] = ("sp", "eo", "fpr", "oad")
    calls: int = Field(default=40, ge=1)
    each: float = 64.0
    models: tuple[int, ...] = (1, 1, 2, 5, 20, 50, 129, 200, 300)
    name: str = "sums"
    mechanism: str = ""

    def run(self, world: CaseState) -> None:
        """Request answers, and test their noise."""
        about, people, rng = world.about(), world.people(), np.random.default_rng(5)
        mechanism = self.mechanism or about.mechanism
        batches, wanted, told, nearer = [], 0, 0, 0.0
        held, sizes = list[float](), list[int]()
        for caller in self.callers:
            for metric in self.metrics:
                _ask(world, _alike(world, 1), f"buys-{metric}", caller=caller, metric=metric, epsilon=2.0**19)
        for number in range(self.calls):
            models = int(rng.choice(self.models))
            metric, caller = str(rng.choice(self.metrics)), str(rng.choice(self.callers))
            squares = mechanism == "counts-gaussian"
            epsilon = self.each * (math.ceil(math.sqrt(models)) if squares else models)
            rows = 0.25 + rng.integers(0, 2**20, (models, about.people)) / 2**21
            if mechanism == "low-rank" and number % 2:
                rows = 0.25 + (rng.random(about.people) + rows / 10) / 2.2  # which have much in common
            seen = _ask(world, rows, f"{self.name}-{number}", caller=caller, metric=metric, epsilon=epsilon)
            answers = _gaps(seen)
            exact = law.exact_gaps(people, metric, rows)
            inside = stratum(metric, people.labels)
            n0 = int((people.protected[inside] == 0).sum())
            per_person = 1 / n0 + 1 / (int(inside.sum()) - n0)
            errors = answers - exact
            if world.service in PLACES:
                centred = with_totals(errors, n0, int(inside.sum()), mechanism, epsilon)
            elif mechanism == "cube":
                members, values = next(part_values(metric, rows, people.labels))
                unit = coordinates([values[:, members]], 1.0).halves * per_person
                cube = cube_scales(models, epsilon, size_known=True).law
                centred = 2 * made_uniform(errors / unit, cube.scale, cube.stair) - 1
            elif mechanism == "low-rank":
                members, values = next(part_values(metric, rows, people.labels))
                centred = _of_two_cubes(errors / per_person, values[:, members], epsilon, rng)
            elif mechanism == "counts":
                laplace = Laplace(laplace_scales(models, epsilon, size_known=True).sums * per_person)
                centred = 2 * cdf(errors, laplace) - 1
            else:
                multiplier = gaussian_multiplier(epsilon, about.batch_delta)
                gaussian = Gaussian(gaussian_scales(models, multiplier, size_known=True).sums * per_person)
                centred = 2 * cdf(errors, gaussian) - 1
            asked = {"caller": caller, "metric": metric, "models": models}
            batches.append(AnsweredBatch(asked, centred, exact[: len(centred)], answers[: len(centred)]))
            low, high = (_numbers(getattr(seen.messages[0], end)) for end in ("low", "high"))
            wanted += models
            told += int((~np.isnan(low)).sum())
            held.append(float(np.mean((low <= exact) & (exact <= high))))
            # Noise from one cube shares its size: only batches are independent. Chernoff's bound holds for their
            # shares too (Hoeffding 1963, theorem 1).
            sizes.append(models if mechanism in ("counts", "counts-gaussian") else 1)
            nearer += float(np.sum(np.abs((low + high) / 2 - exact) - np.abs(answers - exact) / 2))
        require_nothing_depends(batches)
        if told != wanted:
            raise ProtocolViolation("an answer of noisy counts has no interval")
        if nearer < 0:
            raise ProtocolViolation("intervals do not lie around their answers: they tell what the noise was to hide")
        share = min(float(np.average(held, weights=sizes)), 0.95)
        _require_rate(round(share * sum(sizes)), sum(sizes), 0.95, "an interval held the exact gap")


def _of_two_cubes(noise: Floats, values: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """Map a batch's noise on sums, with N0 known, to independent numbers that are uniform on [-1, 1]."""
    split = best_split(values, epsilon, 2.0**-20, size_known=True)
    if not len(split.common):
        return 2 * made_uniform(noise / split.own.halves, split.own_law.scale) - 1
    if not split.own.sides:
        common = np.linalg.lstsq(split.weights, noise)[0].astype(np.float64)
        return 2 * made_uniform(common, split.law.scale) - 1
    # Both kinds together: one model's noise, or the size of the part that no common sum can make.
    weights, halves = split.weights, split.own.halves
    sizes = [rng.gamma(law.sides + 1, law.scale, _DRAWS) for law in (split.law, split.own_law)]
    if len(weights) <= weights.shape[1] + 1 or rng.random() < 0.5:
        of_one = np.append(weights[0], halves[0])
        drawn = np.repeat(sizes, [len(of_one) - 1, 1], axis=0) * rng.uniform(-1, 1, (len(of_one), _DRAWS))
        return np.array([2 * np.mean(of_one @ drawn < noise[0]) - 1])
    apart = np.eye(len(weights)) - weights @ np.linalg.pinv(weights)
    own = split.own.sums(sizes[1][:_FEWER, np.newaxis] * rng.uniform(-1, 1, (_FEWER, split.own_law.sides)))
    return np.array([2 * np.mean(np.linalg.norm(own @ apart, axis=1) < np.linalg.norm(apart @ noise)) - 1])


class Silence(Words):
    """A step that requests batches from propose-test-release, and counts those whose groups passed the test."""

    do: Literal["silence"]
    calls: int = Field(ge=1)
    epsilon: float
    metric: str = "sp"

    def run(self, world: CaseState) -> None:
        """Request answers, and count those with numbers."""
        about, people = world.about(), world.people()
        inside = stratum(self.metric, people.labels)
        n, n0 = int(inside.sum()), int((people.protected[inside] == 0).sum())
        distance = max(0, min(n0, n - n0) - proposed_size(n, minimum_group=about.minimum_group) + 1)
        rate = math.exp(-self.epsilon * TEST_SHARE)
        # Noise alone reaches this value with a probability of at most delta; distance and noise must reach it.
        passing = 1
        while rate**passing / (1 + rate) > about.batch_delta:
            passing += 1
        likely = 1 - _geometric(passing - distance - 1, rate)
        answered = 0
        for number in range(self.calls):
            name = f"silence-{self.epsilon}-{number}"
            answers = _gaps(_ask(world, _alike(world, 2), name, metric=self.metric, epsilon=self.epsilon))
            if np.isnan(answers).any() != np.isnan(answers).all():
                raise ProtocolViolation("some answers of a batch are numbers, and others are not")
            answered += not np.isnan(answers).any()
        _require_rate(answered, self.calls, likely, "the test was passed")


class NoisyCells(Words):
    """A step about a model that accepts some people of each label, so that each label has two cells of people.

    Gaps of the first metric, and free ones of the others, follow from the noisy counts of each cell's disadvantaged, by
    each protected column. All accounts use the same request ids. With `candidates`, which are copies of the model,
    cells are bought in rounds that divide epsilon.
    """

    do: Literal["noisy_cells"]
    callers: tuple[str, ...]
    by: tuple[str, ...] = ("",)
    metrics: tuple[str, ...] = ("fpr",)
    epsilon: float
    candidates: int = 0

    def run(self, world: CaseState) -> None:
        """Request answers, and test the noise in the cells."""
        batches, parts = [], self._parts()
        rows = {by: self._model(world.people(by=by)) for by in self.by}
        drawn = {by: self._drawn(world, rows[by], by, parts) for by in self.by}
        for caller in self.callers:
            for by in self.by:
                told = []
                for number, metric in enumerate(self.metrics):
                    asked = self._asked(rows[by], number)
                    epsilon = self.epsilon if number == 0 else min(parts) / 2
                    searched = Searched() if self.candidates and number == 0 else None
                    own: dict[str, Any] = {"caller": caller, "by": by, "candidates": searched, "epsilon": epsilon}
                    seen = _ask(world, asked, f"cells-{by}-{metric}", metric=metric, **own)
                    if seen.messages[0].epsilon_charged != (0 if number else self.epsilon):
                        raise ProtocolViolation(
                            "the first batch by a column is charged, and no later one of the same cells"
                        )
                    told.append(_gaps(seen)[0])
                batches.append(self._batch(caller, by, np.array(told), drawn[by]))
        require_nothing_depends(batches)
        of = {by: np.concatenate([each.centred for each in batches if each.asked["by"] == by]) for by in self.by}
        for one, other in itertools.combinations(self.by, 2):
            if bounds.is_unlikely_product(of[one], of[other], _P):
                raise ProtocolViolation(f"noise by {one} goes with that by {other}")

    def _parts(self) -> list[float]:
        """Return the epsilon of each round: a search of many models has three, with all, eight and two models left."""
        rounds = 1 + sum(left < self.candidates for left in (8, 2))
        return [self.epsilon if rounds == 1 else math.nextafter(self.epsilon / rounds, 0.0)] * rounds

    def _asked(self, row: Array, number: int) -> Array:
        return np.tile(row, (3 if number else max(self.candidates, 1), 1))

    def _model(self, people: KnownPeople) -> Array:
        """Return a model that accepts unlike shares of the groups: with equal shares many counts would give no gap."""
        rows = np.full((1, len(people.labels)), 0.5)
        for label in (0, 1):
            inside = np.flatnonzero(people.labels == label)
            own, other = (inside[people.protected[inside] == group] for group in (0, 1))
            rows[0, inside] = np.isin(inside, [*own[: 2 * len(own) // 3], *other[: len(other) // 8]])
        return rows

    def _drawn(self, world: CaseState, rows: Array, by: str, parts: list[float]) -> Array:
        """Return simulated answers of a sound server, shape (draws, metrics), from noisy counts of public cells."""
        about, people, rng = world.about(), world.people(by=by), np.random.default_rng()
        asked = [
            AskedBatch(metric, self._asked(rows, number), people.labels, about.metrics)
            for number, metric in enumerate(self.metrics)
        ]
        plans = [planned(asked[0], part, besides=not self.candidates) for part in parts]
        exact = [np.bincount(plan.cell_of[people.protected == 0], minlength=len(plan.counts)) for plan in plans]
        found = np.empty((_ANSWERS, len(self.metrics)))
        for row in found:
            bought = []
            for plan, known, part in zip(plans, exact, parts, strict=True):
                up, down = rng.geometric(-math.expm1(-part), (2, len(known)))
                bought.append(replace(plan, counts=(known + up - down).astype(np.float64)).narrowed())
            row[:] = [_answer_of_cells(batch, bought, about.minimum_group) for batch in asked]
        return found

    def _batch(self, caller: str, by: str, answers: Array, drawn: Array) -> AnsweredBatch:
        """Return the ranks of answers among simulated ones, as numbers that are uniform on [-1, 1]."""
        below, alike = (each.sum(axis=0) for each in (drawn < answers - _ALIKE, np.abs(drawn - answers) <= _ALIKE))
        ranks = (below + np.random.default_rng().random(len(answers)) * (alike + 1)) / (len(drawn) + 1)
        return AnsweredBatch({"caller": caller, "by": by}, 2 * ranks - 1, np.zeros(len(answers)), answers)


_ANSWERS, _ALIKE = 1_000, 1e-7


def _answer_of_cells(batch: AskedBatch, purchases: list[CellPurchase], least: int) -> float:
    """Return the answer about the first model, for a metric of one stratum: see `fairwall.laws.choice.posterior`."""
    (stratum,) = batch.strata
    n, seen = stratum.people, seen_by(merged(purchases), stratum)
    size = float(np.clip(disadvantaged_among(purchases, stratum.members)[0], least, n - least))
    u = float(joint.posterior(stratum.gram, seen, size / n, n).near().mean[0])
    total = float(stratum.totals[0])
    sum0 = float(np.clip(size * stratum.means[0] + u, max(0.0, total - (n - size)), min(total, size)))
    gap = (total - sum0) / (n - size) - sum0 / size
    return abs(gap) if find_metric(batch.metric).absolute else gap


class Follows(Words):
    """A step that buys cells or noisy attributes, and requests free answers, which must follow from the purchase.

    The same question under other ids must get the same answers, whatever was requested between. With `again` the step
    repeats the questions of an earlier step with that `name`. `by` names the protected column of the gaps.
    """

    do: Literal["follows"]
    caller: str = "developer"
    deployment: str = ""
    by: str = ""
    name: str = ""
    again: str = ""
    epsilon: float
    models: int = 8

    def run(self, world: CaseState) -> None:
        """Buy, request free answers, and compare them."""
        people, rng = world.about(self.deployment).people, np.random.default_rng(6)
        rows = [(rng.random((self.models, people)) < share).astype(np.float64) for share in (0.5, 0.3)]
        if not self.again and self._ask(world, "buys", "sp", rows[0], self.epsilon)[1] != self.epsilon:
            raise ProtocolViolation("an account's first batch was not charged")
        kept: dict[str, Array] = world.kept.setdefault(self.again or self.name or f"follows-{world.step}", {})
        free = 0
        for number, (metric, place) in enumerate(_QUESTIONS + _QUESTIONS):
            spends = self.epsilon if number % 2 else self.epsilon / 2
            answers, charged = self._ask(world, f"free-{number}", metric, rows[place], spends)
            free += charged == 0
            if charged == 0 and not np.array_equal(kept.setdefault(f"{metric} {place}", answers), answers):
                raise ProtocolViolation("what costs nothing was answered otherwise when it was asked for again")
        if not free:
            raise ProtocolViolation("nothing was answered from what was bought")

    def _ask(self, world: CaseState, name: str, metric: str, rows: Array, epsilon: float) -> tuple[Array, float]:
        own: dict[str, Any] = {"caller": self.caller, "deployment": self.deployment, "by": self.by}
        seen = _ask(world, rows, f"follows-{name}", metric=metric, epsilon=epsilon, **own)
        return _gaps(seen), seen.messages[0].epsilon_charged


_QUESTIONS = (("sp", 0), ("fpr", 0), ("sp", 1))
"""Questions: a metric, and the index of the models."""


class Revealed(Words):
    """A step that has accounts spend a batch each on identifying the disadvantaged, and counts correct guesses.

    One model picks each person. The mean over accounts of the two groups' average share of correct guesses must not be
    above `most` by more than seven times its uncertainty, which is taken for at least that of a spread of
    `_LEAST_SPREAD`: a sound server is accused with a probability of about 1e-7, by a normal distribution.
    """

    do: Literal["revealed"]
    callers: tuple[str, ...] = Field(min_length=4)
    epsilon: float
    most: float

    def run(self, world: CaseState) -> None:
        """Request answers, guess from them, and count."""
        lost, right = world.people().protected == 0, []
        for caller in self.callers:
            answers = _gaps(_ask(world, np.eye(len(lost)), "reveals", caller=caller, epsilon=self.epsilon))
            # A disadvantaged person's gap is below 0; ties are broken at random.
            order = np.lexsort((np.random.default_rng().random(len(lost)), answers))
            named = np.isin(np.arange(len(lost)), order[: int(lost.sum())])
            right.append((np.mean(named[lost]) + np.mean(~named[~lost])) / 2)
        unsure = max(float(np.std(right, ddof=1)), _LEAST_SPREAD) / math.sqrt(len(right))
        if np.mean(right) - _SURE * unsure > self.most:
            raise ProtocolViolation(
                f"whoever spends a batch on it names {np.mean(right):.1%} right; at most {self.most:.1%} may be"
            )


_SURE, _LEAST_SPREAD = 7.0, 0.02


class NeverExact(Words):
    """A step for mechanisms of unknown distribution: no account may get exact gaps, or another account's answers."""

    do: Literal["never_exact"]
    callers: tuple[str, ...]
    epsilons: tuple[float, ...]
    models: int = 20
    metrics: tuple[str, ...] = ("sp", "abs_eo", "fpr")

    def run(self, world: CaseState) -> None:
        """Request answers, and compare them."""
        rows = np.random.default_rng(9).random((self.models, world.about().people))
        met = list[bool]()
        for metric in self.metrics:
            exact = law.exact_gaps(world.people(), metric, rows)
            for epsilon in self.epsilons:
                before: list[Array] = []
                for caller in self.callers:
                    name = f"never-{metric}-{epsilon}"
                    answers = _gaps(_ask(world, rows, name, caller=caller, metric=metric, epsilon=epsilon))
                    if np.mean(np.abs(answers - exact) < 1e-6) > 0.2:
                        raise ProtocolViolation(f"answers of {metric} at epsilon {epsilon:,g} are the exact gaps")
                    # Many answers are equal at a gap of 0, at the range's end, or from a few noisy whole numbers.
                    met += [np.array_equal(answers, other) for other in before if len(np.unique(answers)) > _FEW]
                    before.append(answers)
        if len(met) > _FEW and sum(met) > _MEET * len(met):
            raise ProtocolViolation(f"accounts were told the same {sum(met)} times of {len(met)}")


_FEW = 3
_MEET = 0.8
"""Largest share of pairs of accounts with equal answers: a few noisy whole numbers are equal now and then."""


def _require_rate(count: int, size: int, probability: float, what: str) -> None:
    """Demand an event's right frequency, by Chernoff's bound."""
    if size and size * bounds.divergence(count / size, probability) > math.log(2 / _P):
        raise ProtocolViolation(f"{what} {count} times of {size}; it should be in {probability:.3g} of them")
