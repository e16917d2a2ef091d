"""A trial of the wash game: its outcome, the dealer that takes it, its line, and the summary of a cell's lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from grpc import ServicerContext

from compliance.games.wash import WashVerdict
from developer.wash.shown_decisions import flips_to_pass, gap, order
from fairwall.arrays import Bytes, Floats
from fairwall.game.v1 import wash_service_pb2 as wire
from fairwall.game.v1.wash_service_pb2_grpc import WashServiceServicer, add_WashServiceServicer_to_server
from fairwall.laws.studies.cheat_detection import detection, least
from fairwall.rpc.errors import Refusal
from fairwall.wire.commitment import BYTES
from fairwall.wire.queries import AUDITED
from fairwall.wire.v1 import error_pb2
from sim.games.game import Line
from sim.games.referee import Arrays, TableDealer, deals
from sim.games.submissions import (
    AuditReport,
    bits_of,
    drawn_again,
    floats_of,
    report_of,
    submission_of,
    take_guess,
    take_numbers,
)
from sim.games.summary import means, percent
from sim.games.table import Trial, given
from sim.games.wash.deal import WashDeal, deal
from sim.games.wash.scenario import DEPLOYED_OVER, WashScenario
from sim.scenarios.scenario import plain
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class WashOutcome:
    """The developer's shown and deployed decisions and its belief, each (n,), and compliance's verdict and report."""

    shown: Bytes
    deployed: Bytes
    belief: Floats
    verdict: WashVerdict
    report: AuditReport

    @classmethod
    def of(cls, request: wire.SubmitWashRequest, verdict: WashVerdict, report: AuditReport) -> WashOutcome:
        """Decode the developer's submission."""
        return cls(bits_of(request.shown), bits_of(request.deployed), floats_of(request.belief), verdict, report)


def from_messages(
    cell: Cell[WashScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[WashDeal, WashOutcome]:
    """Return a trial's deal, drawn again, and its outcome from the messages; NotRecorded where a value is missing."""
    told, request = submission_of(trial, "SubmitVerdict"), submission_of(trial, "SubmitWash")
    dealt = drawn_again(deal, cell, number, trial, secret, lambda dealt: dealt.compliance.tested)
    verdict = WashVerdict(told.contradictions, told.broken, told.accused)
    return dealt, WashOutcome.of(request, verdict, report_of(trial))


@dataclass
class _WashTrial(Trial):
    """State of a trial; a commitment or a report may be sent again, but not changed."""

    deal: WashDeal
    commitment: bytes | None = None
    seen: Bytes | None = None
    submitted: wire.SubmitWashRequest | None = None
    verdict: WashVerdict | None = None

    @property
    def asked(self) -> bool:
        """Whether the customer may check: the deployed model answers, and there are rows to check."""
        return self.commitment is not None and len(self.deal.checked) > 0

    @property
    def checked(self) -> bool:
        """Whether the customer has reported, where it must."""
        return self.commitment is not None and (self.seen is not None or not self.asked)

    @property
    def over(self) -> bool:
        return super().over and self.verdict is not None

    @property
    def missing(self) -> str:
        return "adversary" if self.commitment is not None and not self.checked else super().missing


def _wash_deal(trial: _WashTrial) -> tuple[wire.WashDeal, Arrays]:
    deal, scenario = trial.deal, trial.deal.scenario
    asked, known = scenario.wash, deal.known
    told_groups = asked.knows == "given"
    told: dict[str, Any] = {key: getattr(asked, key) for key in ("strategy", "knows", "evades", "committed", "tau")}
    return wire.WashDeal(
        **told,
        seed=deal.seeds["developer"],
        mechanism=scenario.compliance.mechanism,
        epsilon=scenario.epsilon,
        batch_delta=scenario.batch_delta,
        disadvantaged_rows=known.disadvantaged,
        holds_protected=told_groups,
    ), {
        "features": deal.features,
        "training_features": known.training_features,
        "training_labels": known.training_labels,
        "sample_features": known.sample_features,
        **({"protected": deal.compliance.protected} if told_groups else {}),
    }


def _check_deal(trial: _WashTrial) -> tuple[wire.CheckDeal, Arrays]:
    deal = trial.deal
    told = wire.CheckDeal(seed=deal.seeds["adversary"], wrong=deal.scenario.wash.wrong)
    return told, {"features": deal.features[deal.checked]}


def _audit_deal(_: _WashTrial) -> tuple[wire.AuditDeal, Arrays]:
    return wire.AuditDeal(), {}


def _sighting_deal(trial: _WashTrial) -> tuple[wire.SightingDeal, Arrays]:
    asked, salt = trial.deal.scenario.wash, given(trial.submitted).salt
    told = wire.SightingDeal(wrong=asked.wrong, alarm=asked.alarm, committed=asked.committed, salt=salt)
    told.rows.extend(trial.deal.checked.tolist())
    told.commitment = given(trial.commitment)
    return told, {"seen": np.empty(0, np.uint8) if trial.seen is None else trial.seen}


class WashDealer(TableDealer[_WashTrial, WashDeal, WashOutcome], WashServiceServicer):
    """The WashService, for one deal at a time."""

    kind, serve = _WashTrial, staticmethod(add_WashServiceServicer_to_server)

    TakeWashDeal = deals(wire.TakeWashDealResponse, _wash_deal, lambda trial: trial.served)
    TakeCheckDeal = deals(wire.TakeCheckDealResponse, _check_deal, lambda trial: trial.asked)
    TakeAuditDeal = deals(wire.TakeAuditDealResponse, _audit_deal, lambda trial: trial.checked)
    TakeSightingDeal = deals(wire.TakeSightingDealResponse, _sighting_deal, lambda trial: trial.ended)

    # Called by the parties. Method names are the protocol's.

    def SubmitCommitment(
        self, request: wire.SubmitCommitmentRequest, context: ServicerContext
    ) -> wire.SubmitCommitmentResponse:
        """Take the developer's commitment, or an empty one; the customer's checks can begin."""
        with self.turn(request.deal_id, lambda trial: trial.served) as trial:
            if len(request.commitment) != (BYTES if trial.deal.scenario.wash.committed else 0):
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            if trial.commitment not in (None, request.commitment):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.commitment = request.commitment
            return wire.SubmitCommitmentResponse()

    def SubmitSighting(
        self, request: wire.SubmitSightingRequest, context: ServicerContext
    ) -> wire.SubmitSightingResponse:
        """Take the customer's report."""
        with self.turn(request.deal_id, lambda trial: trial.asked) as trial:
            seen = take_guess(request.seen, trial.deal.checked.shape)
            if trial.seen is not None and not np.array_equal(trial.seen, seen):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            trial.seen = seen
            return wire.SubmitSightingResponse()

    def SubmitWash(self, request: wire.SubmitWashRequest, context: ServicerContext) -> wire.SubmitWashResponse:
        """Take the developer's shown and deployed decisions, its belief and its salt."""
        with self.turn(request.deal_id, lambda trial: trial.checked) as trial:
            people = (len(trial.deal.features),)
            for decisions in (request.shown, request.deployed):
                take_guess(decisions, people)
            belief = take_numbers(request.belief, *people)
            salts = (BYTES if trial.deal.scenario.wash.committed else 0,)
            if not ((belief >= 0) & (belief <= 1)).all() or len(request.salt) not in salts:
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.submitted = request
            return wire.SubmitWashResponse()

    def SubmitVerdict(self, request: wire.SubmitVerdictRequest, context: ServicerContext) -> wire.SubmitVerdictResponse:
        """Take compliance's verdict."""
        with self.turn(request.deal_id, lambda trial: trial.ended) as trial:
            if request.contradictions > len(trial.deal.checked):
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.verdict = WashVerdict(request.contradictions, request.broken, request.accused)
            return wire.SubmitVerdictResponse()

    def outcome(self, trial: _WashTrial) -> WashOutcome:
        """Return the outcome of a finished trial."""
        return WashOutcome.of(given(trial.submitted), given(trial.verdict), given(trial.report))


_ASKED = ("strategy", "knows", "checks", "committed", "evades", "wrong")


def record(_cell: Cell[WashScenario], _trial: int, dealt: WashDeal, outcome: WashOutcome) -> list[Line]:
    """Return the trial's line, with its scores.

    `deployed_gap` and `shown_gap` are exact, `audited_gap` is compliance's answer. The audit is `passed` where that is
    at most tau in absolute value; the developer `won` if, moreover, the deployed gap is at least `DEPLOYED_OVER` above
    tau and it is not `accused`. `flips` counts the rows shown with another decision than deployed; `contradictions` the
    rows where the customer's report differed, rightly or wrongly. `detection` is the probability, in percent, of an
    accusation with this number of flips if the checked rows are drawn afterwards. `flips_to_pass` is the smallest
    number of flips, in the developer's order, that brings the exact gap down to tau; null if none does. `learned` is
    the balanced accuracy, in percent, of naming as disadvantaged the right number of people, those with the highest
    belief.
    """
    asked, truly = dealt.scenario.wash, dealt.disadvantaged
    deployed, shown = outcome.deployed, outcome.shown
    (audited,) = (float(one.released[0]) for one in outcome.report.audits if one.request_id == AUDITED)
    deployed_gap, shown_gap = float(gap(deployed, truly)), float(gap(shown, truly))
    flips, verdict = int((deployed != shown).sum()), outcome.verdict
    passed = abs(audited) <= asked.tau
    cheated = abs(deployed_gap) >= asked.tau + DEPLOYED_OVER
    taken = np.zeros(len(truly), np.bool_)
    taken[np.argsort(-outcome.belief, kind="stable")[: int(truly.sum())]] = True
    rights = [float((taken == truly)[truly == group].mean()) for group in (0, 1)]
    from_on = least(asked.checks, asked.wrong, asked.alarm)
    return [
        {
            **{key: getattr(asked, key) for key in _ASKED},
            "epsilon": plain(dealt.scenario.epsilon),
            "people": len(truly),
            "tau": asked.tau,
            "deployed_gap": deployed_gap,
            "shown_gap": shown_gap,
            "audited_gap": audited,
            "flips": flips,
            "flips_to_pass": flips_to_pass(deployed, order(deployed, outcome.belief), truly, asked.tau),
            "learned": 50.0 * sum(rights),
            "passed": passed,
            "contradictions": verdict.contradictions,
            "broken": verdict.broken,
            "accused": verdict.accused,
            "detection": 100.0 * detection(len(truly), flips, asked.checks, asked.wrong, from_on),
            "won": passed and cheated and not verdict.accused,
            "epsilon_spent": plain(outcome.report.epsilon_spent),
        }
    ]


def summarise(swept: Mapping[str, Any], lines: Sequence[Line]) -> Line:
    """Return the summary of a cell; `flips_to_pass` is the median, null where half of the trials never pass."""
    numbers = [math.inf if line["flips_to_pass"] is None else line["flips_to_pass"] for line in lines]
    median = float(np.median(numbers)) if math.isfinite(sorted(numbers)[len(numbers) // 2]) else None
    return {
        **swept,
        "trials": len(lines),
        **{key: lines[0][key] for key in ("people", "tau", "epsilon", *_ASKED)},
        "flips_to_pass": median,
        **means(lines, ("deployed_gap", "shown_gap", "flips", "learned", "detection")),
        **percent(lines, ("passed", "accused", "won")),
    }
