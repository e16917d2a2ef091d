"""A trial of the training game: its outcome, the dealer that takes it, its line, and the summary of a cell's lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from grpc import ServicerContext

from developer.training.model import TrainingStep
from developer.training.play import RATES, ModelSubmission
from fairwall.arrays import Bools, Bytes
from fairwall.game.v1 import training_service_pb2 as training
from fairwall.game.v1.training_service_pb2_grpc import TrainingServiceServicer, add_TrainingServiceServicer_to_server
from fairwall.rpc.arrays import from_message
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.game import Line
from sim.games.referee import Arrays, TableDealer, deals, statistics_terms_of
from sim.games.submissions import AuditReport, NotRecorded, drawn_again, report_of, take_array
from sim.games.submissions import submission_of as submitted
from sim.games.summary import sd
from sim.games.table import Trial, given
from sim.games.training.canaries import epsilon_refuted
from sim.games.training.deal import TrainingDeal, deal
from sim.games.training.scenario import TrainingScenario
from sim.report.estimates import SHARE, IntervalEstimate, estimate
from sim.scenarios.scenario import plain
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class TrainingOutcome:
    """The developer's submission, the adversary's guesses about canaries, if any, and compliance's report."""

    model: ModelSubmission
    guesses: Bytes | None
    report: AuditReport | None


def from_messages(
    cell: Cell[TrainingScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[TrainingDeal, TrainingOutcome]:
    """Return a trial's deal, drawn again since test rows are in no message, and its outcome from the messages."""
    scenario = cell.scenario
    request = submitted(trial, "SubmitModel")
    guesses = submitted(trial, "SubmitCanaries") if scenario.training.canaries else None
    report = report_of(trial) if scenario.told else None
    dealt = drawn_again(deal, cell, number, trial, secret, lambda dealt: dealt.dealt, "ModelDeal")
    if trial.cards["ModelDeal"].deal.terms != dealt.terms:
        raise NotRecorded("the developer was dealt other terms than the scenario's")
    told = None if guesses is None else from_message(guesses.guesses).astype(np.uint8, copy=False)
    return dealt, TrainingOutcome(submission_of(request), told, report)


def submission_of(request: training.SubmitModelRequest) -> ModelSubmission:
    """Decode the developer's submission."""
    return ModelSubmission(
        scores=from_message(request.scores).astype(np.float32, copy=False),
        decisions=from_message(request.decisions).astype(np.uint8, copy=False),
        epsilon=request.epsilon,
        delta=request.delta,
        group_epsilons=tuple(request.group_epsilons),
        steps=tuple(TrainingStep(step.what, step.epsilon, step.delta, step.of) for step in request.steps),
        asked=request.asked,
        rates=tuple(request.rates),
    )


@dataclass
class _TrainingTrial(Trial):
    deal: TrainingDeal
    request: training.SubmitModelRequest | None = None
    model: ModelSubmission | None = None
    guesses: Bytes | None = None

    @property
    def attackable(self) -> bool:
        """Whether the adversary may guess: the model answers, and there are canaries."""
        return self.model is not None and len(self.deal.inside) > 0

    @property
    def attacked(self) -> bool:
        """Whether the adversary is done, or not in the game."""
        return self.guesses is not None or not len(self.deal.inside)

    @property
    def ended(self) -> bool:
        return self.model is not None and self.attacked

    @property
    def missing(self) -> str:
        if not self.opened:
            return "compliance"
        if self.model is None:
            return "developer"
        return "compliance" if self.attacked else "adversary"


def _model_deal(trial: _TrainingTrial) -> tuple[training.ModelDeal, Arrays]:
    deal = trial.deal
    purse = deal.compliance.statistics if deal.compliance is not None else None
    told = training.ModelDeal(
        seed=deal.seed,
        terms=deal.terms,
        holds_protected=deal.scenario.training.holds_protected,
        statistics=None if purse is None else statistics_terms_of(purse),
        public_rows=deal.public_rows,
        columns=deal.columns,
    )
    return told, deal.dealt


def _canary_deal(trial: _TrainingTrial) -> tuple[training.CanaryDeal, Arrays]:
    canaries = trial.deal.canaries
    return training.CanaryDeal(terms=trial.deal.terms), {"features": canaries.features, "labels": canaries.labels}


def _taken(deal: TrainingDeal, request: training.SubmitModelRequest) -> ModelSubmission:
    model = deal.scenario.training.model != RATES
    rows = len(deal.test.labels) if model else 0
    scores = take_array(request.scores, (rows,), np.float32)
    decisions = take_array(request.decisions, (None, rows), np.uint8)
    numbers = (request.epsilon, request.delta, *request.group_epsilons)
    in_order = (
        ((scores >= 0) & (scores <= 1)).all()
        and (decisions <= 1).all()
        and len(decisions) in (1, 2)
        and all(number >= 0 for number in numbers)
        and request.delta < 1
        and len(request.group_epsilons) in (0, 2)
        and all(step.epsilon >= 0 and 0 <= step.delta < 1 for step in request.steps)
        and len(request.rates) == (0 if model else 2)
        and all(0 <= rate <= 1 for rate in request.rates)
    )
    if not in_order:
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return submission_of(request)


class TrainingDealer(TableDealer[_TrainingTrial, TrainingDeal, TrainingOutcome], TrainingServiceServicer):
    """The TrainingService, for one deal at a time."""

    kind, serve = _TrainingTrial, staticmethod(add_TrainingServiceServicer_to_server)

    TakeModelDeal = deals(training.TakeModelDealResponse, _model_deal, lambda trial: trial.opened)
    TakeCanaryDeal = deals(training.TakeCanaryDealResponse, _canary_deal, lambda trial: trial.attackable)

    def SubmitModel(
        self, request: training.SubmitModelRequest, context: ServicerContext
    ) -> training.SubmitModelResponse:
        """Take the model's decisions and promises; from now on the model answers the adversary."""
        # The adversary queries this model: it may be sent again, but not changed.
        with self.turn(request.deal_id, lambda trial: trial.opened and trial.request in (None, request)) as trial:
            trial.model = _taken(trial.deal, request)
            trial.request = request
            return training.SubmitModelResponse()

    def SubmitCanaries(
        self, request: training.SubmitCanariesRequest, context: ServicerContext
    ) -> training.SubmitCanariesResponse:
        """Take the adversary's guesses."""
        with self.turn(request.deal_id, lambda trial: trial.attackable) as trial:
            guesses = take_array(request.guesses, trial.deal.inside.shape, np.uint8)
            if not (guesses <= 2).all():
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            if trial.guesses is not None and not np.array_equal(trial.guesses, guesses):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.guesses = guesses
            return training.SubmitCanariesResponse()

    def outcome(self, trial: _TrainingTrial) -> TrainingOutcome:
        """Return the outcome of a finished trial."""
        return TrainingOutcome(given(trial.model), trial.guesses, trial.report)


def record(_cell: Cell[TrainingScenario], _trial: int, dealt: TrainingDeal, outcome: TrainingOutcome) -> list[Line]:
    """Return the trial's line, with the scores of the model's decisions on the test rows.

    `gap` is the advantaged group's rate of decision 1 less the disadvantaged one's (risk difference); `accuracies`,
    `positives` (rates of decision 1) and `false_positives` are pairs, the disadvantaged first. `promised` is the
    epsilon promised to records, `epsilon_spent` compliance's charge for flips of A. Where only rates were requested,
    `noise_errors` are the told rates less those of the people trained on, and `sampling_errors` these less the whole
    table's.
    """
    asked, model = dealt.scenario.training, outcome.model
    sizes = [int((dealt.private.protected == group).sum()) for group in (0, 1)]
    return [
        {
            "model": asked.model,
            "practice": asked.practice,
            "holds_protected": asked.holds_protected,
            "people": sum(sizes),
            "sizes": sizes,
            "test_people": len(dealt.test.labels),
            "promised": plain(model.epsilon),
            "promised_delta": model.delta,
            "promised_groups": [plain(epsilon) for epsilon in model.group_epsilons] or None,
            "steps": [[step.what, plain(step.epsilon), step.delta, step.of] for step in model.steps],
            "asked": model.asked,
            "epsilon_spent": None if outcome.report is None else plain(outcome.report.epsilon_spent),
            **(_rates(dealt, outcome) if asked.model == RATES else _decisions(dealt, outcome)),
            **({} if outcome.guesses is None else _canaries(dealt.inside, outcome.guesses)),
        }
    ]


def _decisions(dealt: TrainingDeal, outcome: TrainingOutcome) -> dict[str, Any]:
    test, table = dealt.test, outcome.model.decisions
    # Where decisions depend on the group, a row gets that of its group.
    decided = table[0] if len(table) == 1 else np.where(test.protected == 1, table[1], table[0])
    right = decided == test.labels
    groups = [test.protected == group for group in (0, 1)]
    positives = [float(decided[group].mean()) for group in groups]
    return {
        "accuracy": float(right.mean()),
        "gap": positives[1] - positives[0],
        "accuracies": [float(right[group].mean()) for group in groups],
        "positives": positives,
        "false_positives": [_rate(decided, group & (test.labels == 0)) for group in groups],
        "true_positives": [_rate(decided, group & (test.labels == 1)) for group in groups],
    }


def _rate(decided: Bytes, of: Bools) -> float | None:
    return float(decided[of].mean()) if of.any() else None


def _rates(dealt: TrainingDeal, outcome: TrainingOutcome) -> dict[str, Any]:
    people = dealt.private
    exact = [float(people.labels[people.protected == group].mean()) for group in (0, 1)]
    return {
        "rates": exact,
        "noise_errors": [told - rate for told, rate in zip(outcome.model.rates, exact, strict=True)],
        "sampling_errors": [rate - base for rate, base in zip(exact, dealt.base_rates, strict=True)],
    }


def _canaries(inside: Bytes, guesses: Bytes) -> dict[str, Any]:
    guessed = guesses != 2
    return {
        "canaries": len(guessed),
        "guessed": int(guessed.sum()),
        "right": int((guesses == inside)[guessed].sum()),
    }


_MEANS = ("accuracy", "gap")
_PAIRS = ("accuracies", "positives", "false_positives", "true_positives")


def summarise(swept: Mapping[str, Any], lines: Sequence[Line]) -> Line:
    """Return the summary of a cell.

    Means over the trials, with 95% intervals as `accuracy_low` and so on from five trials on, and standard deviations
    as `accuracy_sd`; pairs of means by group, with intervals. Errors of rates are root mean squares. Counts of canaries
    are over all trials, with the largest epsilon that they refute.
    """
    first = lines[0]
    cell: dict[str, Any] = dict(swept)
    cell |= {key: first[key] for key in ("model", "practice", "holds_protected", "people", "sizes")}
    cell["trials"] = len(lines)
    cell |= {key: first[key] for key in ("promised_delta", "promised_groups", "steps", "asked", "epsilon_spent")}
    # Accountants are deterministic, but batches' rates follow the number of people, which canaries may change.
    cell["promised"] = max((line["promised"] for line in lines), key=float)
    for key in _MEANS if "accuracy" in first else ():
        found = estimate([line[key] for line in lines], SHARE if key == "accuracy" else _SIGNED)
        cell |= {key: found.mean, f"{key}_low": found.low, f"{key}_high": found.high}
        cell[f"{key}_sd"] = sd(lines, key)
    for key in _PAIRS if "accuracy" in first else ():
        pair = [_share([line[key][group] for line in lines]) for group in (0, 1)]
        cell[key] = [None if one is None else one.mean for one in pair]
        cell |= {f"{key}_{end}": [getattr(one, end, None) for one in pair] for end in ("low", "high")}
    if "rates" in first:
        for key in ("noise_errors", "sampling_errors"):
            cell[key] = [float(np.sqrt(np.mean(np.square([line[key][group] for line in lines])))) for group in (0, 1)]
        cell["rates"] = [float(np.mean([line["rates"][group] for line in lines])) for group in (0, 1)]
    if "canaries" in first:
        cell |= {key: sum(line[key] for line in lines) for key in ("canaries", "guessed", "right")}
        cell["epsilon_refuted"] = epsilon_refuted(
            cell["canaries"], cell["guessed"], cell["right"], first["promised_delta"]
        )
    return cell


_SIGNED = (-1.0, 1.0)


def _share(values: Sequence[float | None]) -> IntervalEstimate | None:
    there = [value for value in values if value is not None]
    return estimate(there, SHARE) if there else None
