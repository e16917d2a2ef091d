"""A trial of the curator game: its outcome, the dealer that takes it, its line, and the summary of a cell's lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from grpc import ServicerContext

from compliance.games.curator import MISLABELLED
from fairwall.game.v1 import curator_service_pb2 as wire
from fairwall.game.v1.curator_service_pb2_grpc import CuratorServiceServicer, add_CuratorServiceServicer_to_server
from fairwall.laws.studies import cheat_detection
from fairwall.laws.studies.cheat_detection import SAMPLE_LEVEL
from fairwall.laws.studies.commitment import Commitment, CommitmentError, rows_of
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.curator.deal import CuratorDeal, deal
from sim.games.curator.regulator import Answered, Opening, answers, judge, scale
from sim.games.curator.scenario import CuratorScenario
from sim.games.game import Line
from sim.games.referee import Arrays, TableDealer, deals
from sim.games.submissions import (
    AuditReport,
    drawn_again,
    report_of,
    submission_of,
    take_array,
    take_guess,
    take_numbers,
)
from sim.games.summary import counts, means
from sim.games.table import Trial, given
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class CuratorOutcome:
    """Both parties' submissions; `commitment` is None where the scenario requires none."""

    answered: Answered
    commitment: Commitment | None
    opening: Opening
    report: AuditReport


def from_messages(
    cell: Cell[CuratorScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[CuratorDeal, CuratorOutcome]:
    """Return a trial's deal, drawn again, and its outcome from the messages; NotRecorded where a value is missing."""
    dealt = drawn_again(deal, cell, number, trial, secret, lambda dealt: dealt.compliance.tested)
    return dealt, CuratorOutcome(
        answered(submission_of(trial, "SubmitAnswers"), dealt),
        commitment_of(submission_of(trial, "ReleaseCommitment").commitment) if dealt.scenario.committed else None,
        opening(submission_of(trial, "SubmitOpening"), dealt),
        report_of(trial),
    )


def answered(request: wire.SubmitAnswersRequest, dealt: CuratorDeal) -> Answered:
    """Decode the developer's requests and answers; Refusal if they do not fit together, or the deal."""
    asked, ids = dealt.scenario.curator.requests, tuple(request.request_ids)
    predictions = take_array(request.predictions, (asked, dealt.scenario.data.people), np.bool_)
    if not len(set(ids)) == len(ids) == asked:
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return Answered(ids, predictions.astype(np.uint8), take_numbers(request.answers, asked))


def opening(request: wire.SubmitOpeningRequest, dealt: CuratorDeal) -> Opening:
    """Decode compliance's opening; Refusal if it does not fit the deal. Its truth is for the regulator to judge."""
    people, rows = dealt.scenario.data.people, take_numbers(request.sample, dealt.scenario.curator.sample)
    if len(np.unique(rows)) != len(rows) or not np.isin(rows, np.arange(people)).all():
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    attributes = take_guess(request.attributes, (people,))
    return Opening(attributes, request.seed, request.salt_key, rows.astype(np.intp))


def commitment_of(message: wire.Commitment) -> Commitment:
    """Decode a commitment."""
    return Commitment(int(message.rows), message.rows_digest, message.root, message.seed_digest)


@dataclass
class _CuratorTrial(Trial):
    deal: CuratorDeal
    submitted: Answered | None = None
    commitment: Commitment | None = None
    opening: Opening | None = None
    verdict: wire.Verdict = wire.VERDICT_UNSPECIFIED

    @property
    def admits(self) -> bool:
        """Whether the developer may make requests: compliance serves, and has committed if the scenario requires it."""
        return self.served and (self.commitment is not None or not self.deal.scenario.committed)

    @property
    def over(self) -> bool:
        return super().over and self.verdict != wire.VERDICT_UNSPECIFIED


def _curator_deal(trial: _CuratorTrial) -> tuple[wire.CuratorDeal, Arrays]:
    scenario = trial.deal.scenario
    return wire.CuratorDeal(
        seed=trial.deal.seed,
        people=scenario.data.people,
        requests=scenario.curator.requests,
        epsilon=scenario.share_of_epsilon,
        commitment=None if trial.commitment is None else wire.Commitment(**vars(trial.commitment)),
    ), {}


class CuratorDealer(TableDealer[_CuratorTrial, CuratorDeal, CuratorOutcome], CuratorServiceServicer):
    """The CuratorService, for one deal at a time."""

    kind, serve = _CuratorTrial, staticmethod(add_CuratorServiceServicer_to_server)

    TakeCuratorDeal = deals(wire.TakeCuratorDealResponse, _curator_deal, lambda trial: trial.admits)

    # Called by the parties.

    def ReleaseCommitment(
        self, request: wire.ReleaseCommitmentRequest, context: ServicerContext
    ) -> wire.ReleaseCommitmentResponse:
        """Take compliance's commitment, which cannot be changed afterwards."""
        with self.turn(request.deal_id, lambda _: True) as trial:
            commitment = commitment_of(request.commitment)
            try:
                commitment.require(rows_of(trial.deal.compliance.labels))
            except CommitmentError:
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID) from None
            if trial.commitment not in (None, commitment):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.commitment = commitment
            return wire.ReleaseCommitmentResponse()

    def SubmitAnswers(self, request: wire.SubmitAnswersRequest, context: ServicerContext) -> wire.SubmitAnswersResponse:
        """Take the developer's answers, and reply with the verdict once compliance has opened and reported."""
        with self.turn(request.deal_id, lambda trial: trial.admits) as trial:
            trial.submitted = trial.submitted or answered(request, trial.deal)
        if not self.table.wait(lambda: trial.opening is not None and trial.report is not None):
            return wire.SubmitAnswersResponse()
        found = judge(trial.deal, given(trial.submitted), trial.commitment, given(trial.opening))
        with self.table.changing():
            trial.verdict = wire.VERDICT_ACCUSED if found.accused else wire.VERDICT_CLEAR
            return wire.SubmitAnswersResponse(verdict=trial.verdict)

    def SubmitOpening(self, request: wire.SubmitOpeningRequest, context: ServicerContext) -> wire.SubmitOpeningResponse:
        """Take compliance's opening, once no more requests are answered."""
        with self.turn(request.deal_id, lambda trial: trial.ended) as trial:
            trial.opening = opening(request, trial.deal)
            return wire.SubmitOpeningResponse()

    def outcome(self, trial: _CuratorTrial) -> CuratorOutcome:
        """Return the outcome of a finished trial."""
        return CuratorOutcome(given(trial.submitted), trial.commitment, given(trial.opening), given(trial.report))


_SAME = ("cheat", "strength", "share", "defence", "requests", "openings", "sample")
_MEANS = ("shift", "moved", "affected", "flags", "gap_shown", "gap_of_all")
_COUNTED = ("accused", "won", "opened_affected", "missed")


def record(cell: Cell[CuratorScenario], _trial: int, dealt: CuratorDeal, outcome: CuratorOutcome) -> list[Line]:
    """Return the trial's line, with the scores of compliance's cheating. Figures that do not apply are null.

    - `shift`: mean distance of answers from the honest ones, in scales of the noise; `moved`: share of answers that are
      a scale or more away; `affected`: share of answers that differ from the honest one at all.
    - `opened_affected`: whether an affected answer was opened; `accused`: whether compliance was; `missed`: whether an
      affected answer was opened and compliance was not accused.
    - `won`: whether compliance moved an answer, or showed a sample that passes, and was not accused.
    - `flags`, `gap_shown`, `gap_of_all`: the number of a sample's tests below 5%, its gap, and the gap of all people.
    """
    asked, answered, rows = cell.scenario.curator, outcome.answered, outcome.opening.sample
    verdict = judge(dealt, answered, outcome.commitment, outcome.opening)
    labels, protected = dealt.compliance.labels, dealt.compliance.protected
    line: dict[str, Any] = {key: getattr(asked, key) for key in _SAME} | dict.fromkeys((*_MEANS, *_COUNTED))
    line |= {"accused": verdict.accused, "tests": verdict.tests}
    if asked.sample:
        shown, of_all = (
            float(own[some == 1].mean() - own[some == 0].mean()) if 0 < some.mean() < 1 else 0.0
            for own, some in ((labels[rows], protected[rows]), (labels, protected))
        )
        flags = sum(found < SAMPLE_LEVEL for found in verdict.tests.values())
        won = shown <= asked.passes and not verdict.accused
        return [line | {"flags": flags, "gap_shown": shown, "gap_of_all": of_all, "won": won}]
    honest = answers(dealt, answered, protected, dealt.compliance.seed, range(asked.requests))
    moves = (answered.answers - honest) / scale(dealt)
    opened_affected = bool((moves[list(verdict.opened)] != 0).any())
    line |= {
        "shift": float(moves.mean()),
        "moved": float((np.abs(moves) >= 1).mean()),
        "affected": float((moves != 0).mean()),
        "opened_affected": opened_affected,
        "won": bool((np.abs(moves) >= 1).any()) and not verdict.accused,
        "missed": opened_affected and not verdict.accused,
    }
    return [line]


def summarise(swept: Mapping[str, Any], lines: Sequence[Line]) -> Line:
    """Return a cell's summary; `shift_law` and `caught_law` are theoretical values or None, `flagged` is by test."""
    first, trials = lines[0], len(lines)
    cheat, strength, share = (first[key] for key in ("cheat", "strength", "share"))
    bound = first["defence"] == "commitment" and cheat != MISLABELLED
    return {
        **swept,
        "trials": trials,
        **{key: first[key] for key in _SAME},
        "shift_law": share * cheat_detection.expected_shift(strength) if cheat == "best" else None,
        "caught_law": cheat_detection.caught(cheat_detection.affected(cheat, strength, share), first["openings"])
        if bound
        else None,
        **means(lines, _MEANS),
        **counts(lines, _COUNTED),
        "flagged": {test: sum(one["tests"][test] < SAMPLE_LEVEL for one in lines) / trials for test in first["tests"]},
    }
