"""A trial of the inference game: its outcome, the dealer that takes it, its lines, and a cell's summary.

The summary's intervals are clustered by trial.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from grpc import ServicerContext
from numpy.typing import NDArray

from adversary.membership import auc, by_loss
from fairwall.arrays import Bytes, Floats
from fairwall.game.v1 import inference_service_pb2 as inference
from fairwall.game.v1.inference_service_pb2_grpc import InferenceServiceServicer, add_InferenceServiceServicer_to_server
from fairwall.learning.defences import DefenceTask, Settings, TrainingSplit
from fairwall.learning.defences import deal as hands_of
from fairwall.learning.fairness import TAU, Leakage, leakage
from fairwall.rpc.errors import Refusal
from fairwall.wire.metrics import number_of
from fairwall.wire.v1 import array_pb2, error_pb2
from sim.games.game import Line
from sim.games.inference.advantage import measure
from sim.games.inference.deal import DrawnPeople, InferenceDeal, deal
from sim.games.inference.scenario import InferenceScenario
from sim.games.referee import Arrays, TableDealer, check_queries, deals
from sim.games.submissions import (
    AuditReport,
    bits_of,
    drawn_again,
    floats_of,
    report_of,
    submission_of,
    take_array,
    take_guess,
)
from sim.games.summary import mean
from sim.games.table import Trial, given
from sim.report.estimates import FEWEST, SHARE, estimate
from sim.scenarios.scenario import plain
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class SubmittedModels:
    """The developer's scores (models, rows) with and without the defence, its lambda, and its number of queries."""

    scores: Floats
    base_scores: Floats
    member_scores: Floats
    base_member_scores: Floats
    strength: float
    queries: int


@dataclass(frozen=True, eq=False)
class InferenceOutcome:
    """The models, the guesses (attacks, models), and compliance's report if it is in the game."""

    models: SubmittedModels
    guesses: Bytes
    report: AuditReport | None


def from_messages(
    cell: Cell[InferenceScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[InferenceDeal, InferenceOutcome]:
    """Return a trial's deal, drawn again since test rows are in no message, and its outcome from the messages."""
    request, guesses = submission_of(trial, "SubmitModels"), submission_of(trial, "SubmitGuesses")
    report = report_of(trial) if cell.scenario.developer.lambdas else None
    dealt = drawn_again(
        deal,
        *(cell, number, trial, secret),
        lambda dealt: {"bits": dealt.bits, "labels": dealt.developer.labels, "groups": dealt.developer.groups},
        "TrainingDeal",
    )
    models = SubmittedModels(
        scores=floats_of(request.scores),
        base_scores=floats_of(request.base_scores),
        member_scores=floats_of(request.member_scores),
        base_member_scores=floats_of(request.base_member_scores),
        strength=request.strength,
        queries=request.queries,
    )
    return dealt, InferenceOutcome(models, bits_of(guesses.guesses), report)


@dataclass
class _InferenceTrial(Trial):
    deal: InferenceDeal
    request: inference.SubmitModelsRequest | None = None
    models: SubmittedModels | None = None
    guesses: Bytes | None = None

    @property
    def ended(self) -> bool:
        return self.guesses is not None

    @property
    def missing(self) -> str:
        if self.deal.compliance is not None and not self.served:
            return "compliance"
        if self.models is None:
            return "developer"
        return "adversary" if self.guesses is None else "compliance"


def _arrays(rows: DrawnPeople) -> Arrays:
    return {"features": rows.features, "labels": rows.labels, "groups": rows.groups}


_ITERATIONS = {"steps": inference.ITERATIONS_STEPS, "epochs": inference.ITERATIONS_EPOCHS}


def training_of(deal: InferenceDeal, strength: float) -> inference.Training:
    """Return the public settings of the training of a deal's models."""
    developer = deal.scenario.developer
    return inference.Training(
        defence=developer.defence,
        strength=strength,
        rehearsal=developer.rehearsal,
        purity=developer.purity,
        epsilon=developer.training_epsilon,
        delta=developer.training_delta,
        rows=developer.rows,
        other_rows=developer.other_rows,
        steps=developer.steps,
        tune_steps=developer.tune_steps,
        adaptive_clipping=developer.adaptive_clipping,
        iterations=_ITERATIONS[developer.iterations],
        small_table=deal.table_rows <= developer.small_table,
    )


def _training_deal(trial: _InferenceTrial) -> tuple[inference.TrainingDeal, Arrays]:
    deal = trial.deal
    told = inference.TrainingDeal(
        seed=deal.seeds["developer"],
        training=training_of(deal, deal.scenario.developer.strength),
        holds_protected=True,
        labels_only=deal.scenario.adversary.answers == "labels",
        member_rows=deal.member_rows,
        strengths=deal.scenario.developer.lambdas,
        metric=number_of(deal.scenario.compliance.metric),
        audit_epsilon=deal.scenario.epsilon,
    )
    arrays = {"bits": deal.bits, **_arrays(deal.developer), "test_features": deal.test.features}
    return told, arrays if deal.audited is None else {**arrays, "audited_features": deal.audited.features}


def _attack_deal(trial: _InferenceTrial) -> tuple[inference.AttackDeal, Arrays]:
    deal, adversary = trial.deal, trial.deal.scenario.adversary
    told = inference.AttackDeal(
        seed=deal.seeds["adversary"],
        attacks=adversary.attack,
        models=len(deal.bits),
        probes=adversary.probes,
        shadows=adversary.shadows,
        labels_only=adversary.answers == "labels",
        training=training_of(deal, given(trial.models).strength),
        adapts=adversary.adapts,
    )
    return told, _arrays(deal.adversary)


def _scores(message: array_pb2.Array, shape: tuple[int, int]) -> Floats:
    scores = take_array(message, shape, np.float32).astype(np.float64)
    if not ((scores >= 0) & (scores <= 1)).all():  # NaN is neither
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return scores


class InferenceDealer(TableDealer[_InferenceTrial, InferenceDeal, InferenceOutcome], InferenceServiceServicer):
    """The InferenceService, for one deal at a time; compliance's cards are dealt by `sim.games.referee`."""

    kind, serve = _InferenceTrial, staticmethod(add_InferenceServiceServicer_to_server)

    TakeTrainingDeal = deals(inference.TakeTrainingDealResponse, _training_deal, lambda trial: trial.opened)
    TakeAttackDeal = deals(inference.TakeAttackDealResponse, _attack_deal, lambda trial: trial.models is not None)

    def SubmitModels(
        self, request: inference.SubmitModelsRequest, context: ServicerContext
    ) -> inference.SubmitModelsResponse:
        """Take the scores of the developer's models, which from now on answer the adversary."""
        # The adversary learns lambda and queries these models: they may be sent again, but not changed.
        with self.turn(request.deal_id, lambda trial: trial.opened and trial.request in (None, request)) as trial:
            deal, developer = trial.deal, trial.deal.scenario.developer
            test, members = (len(deal.bits), len(deal.test.labels)), (len(deal.bits), deal.member_rows)
            if request.strength not in (developer.lambdas or (developer.strength,)):
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.models = SubmittedModels(
                scores=_scores(request.scores, test),
                base_scores=_scores(request.base_scores, test),
                member_scores=_scores(request.member_scores, members),
                base_member_scores=_scores(request.base_member_scores, members),
                strength=request.strength,
                queries=request.queries,
            )
            trial.request = request
            return inference.SubmitModelsResponse()

    def SubmitGuesses(
        self, request: inference.SubmitGuessesRequest, context: ServicerContext
    ) -> inference.SubmitGuessesResponse:
        """Take the adversary's guesses."""
        with self.turn(request.deal_id, lambda trial: trial.models is not None) as trial:
            shape = (len(trial.deal.scenario.adversary.attack), len(trial.deal.bits))
            guesses = take_guess(request.guesses, shape)
            # Guesses may be sent again, too, but not changed; the trial has ended.
            if trial.guesses is not None and not np.array_equal(trial.guesses, guesses):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.guesses = guesses
            return inference.SubmitGuessesResponse()

    def outcome(self, trial: _InferenceTrial) -> InferenceOutcome:
        """Return the outcome of a finished trial; TrialFailed if the numbers of queries disagree."""
        models = given(trial.models)
        if trial.report is not None:
            check_queries(models.queries, trial.report)
        return InferenceOutcome(models, given(trial.guesses), trial.report)


def record(cell: Cell[InferenceScenario], trial: int, dealt: InferenceDeal, outcome: InferenceOutcome) -> list[Line]:
    """Return the trial's lines, one per attack.

    Rates and bounds are those of the models' decisions on the test rows, averaged over the victims; gaps are in
    percentage points, accuracies in percent. Bounds are checked for every victim, within the sampling error of the
    corrected bounds.
    """
    scenario, models = cell.scenario, outcome.models
    base, tuned = (_measured(scores, dealt) for scores in (models.base_scores, models.scores))
    ones, zeros = dealt.bits == 1, dealt.bits == 0
    common = {
        "split_seed": scenario.scenario.seed + trial,
        "holds_protected": True,
        "defence": scenario.developer.defence,
        "lambda": models.strength,
        "rehearsal": scenario.developer.rehearsal,
        "attacks": len(scenario.adversary.attack),
        "people": sum(len(rows.labels) for rows in (dealt.developer, dealt.adversary, dealt.test)),
        "victims": len(dealt.bits),
        "victims_b1": int(ones.sum()),
        "ppr_gap": _points(tuned.ppr_gap),
        "label_gap": 100 * tuned.dpi,
        "w": tuned.w,
        "accuracy_base": _points(base.accuracy.mean(axis=0)),
        "accuracy": _points(tuned.accuracy.mean(axis=0)),
        "below_tau": int((tuned.gap <= TAU).sum()),
        **_bounds(base, tuned),
        **_by_bit(base, tuned, dealt.bits),
        "membership_base": _membership(models.base_scores, models.base_member_scores, dealt),
        "membership": _membership(models.scores, models.member_scores, dealt),
        **(_procedure(base, tuned, dealt) if scenario.developer.defence.startswith("fft") else {}),
        **(_attributes(models, dealt) if len(dealt.test.groups) > 1 else {}),
        **(_audits(outcome.report, scenario) if outcome.report is not None else {}),
    }
    lines: list[Line] = []
    for attack, guesses in zip(scenario.adversary.attack, outcome.guesses, strict=True):
        says = float(guesses[ones].mean() - guesses[zeros].mean())
        lines.append(
            {
                **common,
                "attack": attack,
                "correct_b0": int((guesses[zeros] == 0).sum()),
                "correct_b1": int((guesses[ones] == 1).sum()),
                "advantage": abs(says),
                "signed_advantage": says,
            }
        )
    return lines


def _measured(scores: Floats, dealt: InferenceDeal) -> Leakage:
    sampled = dealt.sides >= 0
    test = dealt.test
    return leakage(scores[:, sampled] >= 0.5, test.labels[sampled], test.groups[0][sampled], dealt.sides[sampled])


def _bounds(base: Leakage, tuned: Leakage) -> dict[str, Any]:
    """Return the gaps, and whether the bounds hold for every victim."""
    # A constant predictor meets the corrected bound with equality, up to rounding.
    slack = tuned.drift + 1e-9
    gaps = np.maximum(tuned.gap, tuned.ppr_gap)
    corrected = (tuned.ppr_gap <= tuned.ppr_bound + slack) & (tuned.gap <= tuned.accuracy_bound + slack)
    return {
        "gap_base": _points(base.gap),
        "gap": _points(tuned.gap),
        "eo_base": _points(base.eo),
        "eo": _points(tuned.eo),
        "bound_holds": bool((gaps <= tuned.printed_bound + slack).all()),
        "corrected_bound_holds": bool(corrected.all()),
        "sampling_error": float(tuned.drift.max()),
    }


def _by_bit(base: Leakage, tuned: Leakage, bits: Bytes) -> dict[str, Any]:
    """Return the gaps of the victims of each group: all models of the papers are trained on one group."""
    told: dict[str, Any] = {}
    for b in (0, 1):
        own = bits == b
        told |= {f"gap_base_b{b}": _points(base.gap[own]), f"gap_b{b}": _points(tuned.gap[own])}
        told |= {f"eo_base_b{b}": _points(base.eo[own]), f"eo_b{b}": _points(tuned.eo[own])}
        told[f"below_tau_b{b}"] = int((tuned.gap[own] <= TAU).sum())
    return told


def _procedure(base: Leakage, tuned: Leakage, dealt: InferenceDeal) -> dict[str, Any]:
    """Return Algorithm 1's results: the victims that needed tuning, and those of them accepted afterwards."""
    needed = base.gap > TAU
    accepted = needed & (tuned.gap <= TAU)
    own, asked = dealt.developer, dealt.scenario.developer
    settings = Settings(purity=asked.purity, rows=asked.rows or None, other_rows=asked.other_rows or None)
    hands = hands_of(DefenceTask(TrainingSplit(own.features, own.labels, own.groups), (0, 1), (0, 0), settings))
    ratios = np.array([len(hand.other) / len(hand.own) for hand in hands])
    return {
        "needed": int(needed.sum()),
        "accepted": int(accepted.sum()),
        "rejected": int((needed & ~accepted).sum()),
        "size_ratio": float(ratios[dealt.bits].mean()),
    }


def _attributes(models: SubmittedModels, dealt: InferenceDeal) -> dict[str, Any]:
    """Return the bounds for each attribute by itself (Theorem 3), between its pure groups."""
    data, test = dealt.scenario.data, dealt.test
    names = [data.protected or "protected", *data.also_protected]
    measured = []
    for name, group in zip(names, test.groups, strict=True):
        base, tuned = (leakage(scores >= 0.5, test.labels, group) for scores in (models.base_scores, models.scores))
        measured.append({"attribute": name, **_bounds(base, tuned)})
    return {"attributes": measured}


def _audits(report: AuditReport, scenario: InferenceScenario) -> dict[str, Any]:
    exact, released = (
        np.concatenate([getattr(audit, name) for audit in report.audits]) for name in ("exact", "released")
    )
    return {
        "metric": scenario.compliance.metric,
        "mechanism": scenario.compliance.mechanism,
        "epsilon": plain(scenario.epsilon),
        "epsilon_spent": plain(report.epsilon_spent),
        "queries": report.answered,
        "query_error_mean": float(np.abs(released - exact).mean()),
    }


def _points(values: Floats) -> float:
    return 100 * float(np.mean(values))


def _membership(scores: Floats, member_scores: Floats, dealt: InferenceDeal) -> float:
    """Return the mean AUC of the loss threshold test of membership within a group; 0.5 is a coin.

    The test is Yeom et al.'s (CSF 2018). Fairness constraints can raise it (Chang and Shokri, EuroS&P 2021).
    """
    own, test = dealt.developer, dealt.test
    areas = []
    for b in (0, 1):
        victims = dealt.bits == b
        inside, outside = own.groups[0][: dealt.member_rows] == b, test.groups[0] == b
        candidates = np.hstack([member_scores[victims][:, inside], scores[victims][:, outside]])
        labels = np.concatenate([own.labels[: dealt.member_rows][inside], test.labels[outside]])
        member = np.arange(len(labels)) < inside.sum()
        areas.append(auc(by_loss(candidates, labels), np.broadcast_to(member, candidates.shape)))
    return float(np.mean(np.concatenate(areas)))


_MEANS = (
    "lambda",
    "gap_base",
    "gap",
    "eo_base",
    "eo",
    "ppr_gap",
    "label_gap",
    "w",
    "accuracy_base",
    "accuracy",
    "membership_base",
    "membership",
)

FAMILY_LEVEL = 0.001
"""Probability with which any interval of one family, those of all attacks, may miss."""


def summarise(swept: Mapping[str, Any], lines: Sequence[Line]) -> Line:
    """Return the summary of one attack on one cell, from its lines of `trials.jsonl`.

    - `accuracy_b` is the balanced accuracy at guessing b in percent, with 95% limits `accuracy_b_low` and `_high`, and
      `family_low` and `_high`, which hold for all attacks of the cell at once at 99.9%. `advantage` has 95% limits too.
    - Other keys of a line are means over the splits, `membership` with 95% limits. With fewer than five splits all
      limits are None.
    - `below_tau` counts the victims whose gap is at most 0.05, `needed`, `accepted` and `rejected` those of Algorithm
      1. `bound_holds` and `corrected_bound_holds` count splits; `sampling_error` is the largest.
    - `attributes`, for several attributes, has the same figures of each.
    - `lambdas`, where compliance's answers chose lambda, has each value with its number of splits, and the cost is
      added.
    """
    first = lines[0]
    bits, guesses, splits = (np.concatenate(parts) for parts in zip(*map(_victims, lines), strict=True))
    # Every cell has the same number of attacks.
    attacks = int(first["attacks"])
    own = measure(bits, guesses, splits)
    family = measure(bits, guesses, splits, level=FAMILY_LEVEL, attacks=attacks)
    cell: dict[str, Any] = dict(swept)
    cell |= {key: first[key] for key in ("attack", "defence", "rehearsal", "people")}
    cell |= {"splits": len(lines), "trials": len(lines), "victims": len(bits)}
    enough = len(lines) >= FEWEST
    for name, interval in (("accuracy_b", own.accuracy), ("family", family.accuracy), ("advantage", own.advantage)):
        cell[f"{name}_low"], cell[f"{name}_high"] = (interval.low, interval.high) if enough else (None, None)
    cell["accuracy_b"], cell["advantage"] = own.accuracy.mean, own.advantage.mean
    for key in _MEANS:
        cell[key] = mean(lines, key)
    for key in ("below_tau", "bound_holds", "corrected_bound_holds", "needed", "accepted", "rejected"):
        if key in first:
            cell[key] = sum(line[key] for line in lines)
    cell["sampling_error"] = max(line["sampling_error"] for line in lines)
    membership = estimate([line["membership"] for line in lines], SHARE)
    cell["membership_low"], cell["membership_high"] = membership.low, membership.high
    if "size_ratio" in first:
        cell["size_ratio"] = mean(lines, "size_ratio")
    if "attributes" in first:
        cell["attributes"] = [_attribute(parts) for parts in zip(*(line["attributes"] for line in lines), strict=True)]
    if "epsilon_spent" in first:
        chosen = Counter(line["lambda"] for line in lines)
        cell["lambdas"] = [[value, count] for value, count in sorted(chosen.items())]
        cell |= {key: first[key] for key in ("metric", "mechanism", "epsilon", "epsilon_spent", "queries")}
        cell["query_error_mean"] = mean(lines, "query_error_mean")
    return cell


def _attribute(measured: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    means = {key: mean(measured, key) for key in ("gap_base", "gap", "eo_base", "eo")}
    held = {key: sum(one[key] for one in measured) for key in ("bound_holds", "corrected_bound_holds")}
    return {"attribute": measured[0]["attribute"], **means, **held}


def _victims(line: Mapping[str, Any]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    b1, total = line["victims_b1"], line["victims"]
    b0 = total - b1
    bits = np.repeat([0, 1], [b0, b1])
    ones = b0 - line["correct_b0"]
    guesses = np.repeat([1, 0, 1, 0], [ones, b0 - ones, line["correct_b1"], b1 - line["correct_b1"]])
    return bits, guesses, np.full(total, line["split_seed"])
