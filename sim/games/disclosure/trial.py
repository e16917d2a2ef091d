"""A trial of the disclosure game: its outcome, the dealer that takes it, its line, and a cell's summary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from grpc import ServicerContext

from developer.disclosure import MODES, SecretBelief
from fairwall.game.v1 import disclosure_service_pb2 as disclosure
from fairwall.game.v1.disclosure_service_pb2_grpc import (
    DisclosureServiceServicer,
    add_DisclosureServiceServicer_to_server,
)
from fairwall.laws.studies.disclosure import PRIOR, advantage, bound, bound_applies
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.disclosure.deal import DisclosureDeal, deal
from sim.games.disclosure.scenario import DisclosureScenario
from sim.games.game import Line
from sim.games.referee import Arrays, TableDealer, deals, study_terms_of
from sim.games.submissions import AuditReport, drawn_again, report_of, submission_of
from sim.games.summary import counts, mean
from sim.games.table import Trial, given
from sim.report.estimates import share_interval
from sim.scenarios.scenario import plain
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class DisclosureOutcome:
    """The developer's belief about the secret, and compliance's report."""

    belief: SecretBelief
    report: AuditReport


def from_messages(
    cell: Cell[DisclosureScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[DisclosureDeal, DisclosureOutcome]:
    """Return a trial's deal, drawn again, and its outcome from the messages; NotRecorded where a value is missing."""
    request = submission_of(trial, "SubmitPosterior")
    dealt = drawn_again(
        deal,
        *(cell, number, trial, secret),
        lambda dealt: {"study_cells": dealt.study.cells, "study_answers": dealt.study.answers},
    )
    return dealt, DisclosureOutcome(belief_of(request), report_of(trial))


def belief_of(request: disclosure.SubmitPosteriorRequest) -> SecretBelief:
    """Decode the developer's belief."""
    record = request.record if request.HasField("record") else None
    return SecretBelief(request.posterior, request.guess, record, request.candidates)


_NUMBERS = {name: number for number, name in MODES.items()}


@dataclass
class _DisclosureTrial(Trial):
    deal: DisclosureDeal
    submitted: SecretBelief | None = None


def _disclosure_deal(trial: _DisclosureTrial) -> tuple[disclosure.DisclosureDeal, Arrays]:
    deal, known = trial.deal, trial.deal.known
    told: dict[str, Any] = {} if known.takes_part is None else {"takes_part": known.takes_part}
    return disclosure.DisclosureDeal(
        mode=_NUMBERS[known.mode],
        terms=study_terms_of(deal.study),
        cell=deal.cell,
        others=known.others,
        others_yes=known.others_yes,
        rate=known.rate,
        **told,
    ), {}


class DisclosureDealer(TableDealer[_DisclosureTrial, DisclosureDeal, DisclosureOutcome], DisclosureServiceServicer):
    """The DisclosureService, for one deal at a time."""

    kind, serve = _DisclosureTrial, staticmethod(add_DisclosureServiceServicer_to_server)

    TakeDisclosureDeal = deals(disclosure.TakeDisclosureDealResponse, _disclosure_deal, lambda trial: trial.served)

    def SubmitPosterior(
        self, request: disclosure.SubmitPosteriorRequest, context: ServicerContext
    ) -> disclosure.SubmitPosteriorResponse:
        """Take the developer's belief."""
        with self.turn(request.deal_id, lambda trial: trial.served) as trial:
            belief, named = belief_of(request), request.HasField("record")
            people = len(trial.deal.study.answers) if trial.deal.study.records else 0
            in_range = 0 <= belief.posterior <= 1 and belief.candidates <= people
            if not in_range or named != (belief.candidates > 0) or (named and request.record >= people):
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.submitted = belief
            return disclosure.SubmitPosteriorResponse()

    def outcome(self, trial: _DisclosureTrial) -> DisclosureOutcome:
        """Return the outcome of a finished trial."""
        return DisclosureOutcome(given(trial.submitted), given(trial.report))


def record(
    _cell: Cell[DisclosureScenario], _trial: int, dealt: DisclosureDeal, outcome: DisclosureOutcome
) -> list[Line]:
    """Return the trial's line, with the score of the developer's belief.

    `posterior` is the probability of yes, `posterior_of_truth` that of the true answer; `advantage_law` is the largest
    advantage under the public noise distribution, given the developer's knowledge. Where records were released,
    `linked` is whether the record that the developer named is Alice's, one of `candidates` like hers among `people`.
    """
    belief, known = outcome.belief, dealt.known
    return [
        {
            "mode": known.mode,
            "people": len(dealt.study.answers),
            "takes_part": dealt.place is not None,
            "others": known.others,
            "epsilon": plain(known.epsilon),
            "secret": dealt.secret,
            "prior": PRIOR,
            "posterior": belief.posterior,
            "posterior_of_truth": belief.posterior if dealt.secret else 1 - belief.posterior,
            "guess": int(belief.guess),
            "right": int(belief.guess) == dealt.secret,
            "advantage_law": advantage(known),
            "bound": bound(known.epsilon),
            "bound_applies": bound_applies(known.mode),
            "linked": None if belief.record is None else belief.record == dealt.place,
            "candidates": belief.candidates,
            "epsilon_spent": plain(outcome.report.epsilon_spent),
        }
    ]


def summarise(swept: Mapping[str, Any], lines: Sequence[Line]) -> Line:
    """Return the summary of a cell; the advantage is None where the secret was never 0, or never 1."""
    trials = len(lines)
    found = _advantage(lines)
    named = [line for line in lines if line["linked"] is not None]
    return {
        **swept,
        "trials": trials,
        **{key: lines[0][key] for key in ("mode", "epsilon", "prior", "bound", "bound_applies", "epsilon_spent")},
        "takes_part": sum(line["takes_part"] for line in lines) / trials,
        "posterior_of_truth": mean(lines, "posterior_of_truth"),
        "right": sum(line["right"] for line in lines),
        **dict(zip(("advantage", "advantage_low", "advantage_high"), found, strict=True)),
        "advantage_law": mean(lines, "advantage_law"),
        "named": len(named),
        **counts(named, ["linked"]),
        "linked_prior": 1 / named[0]["people"] if named else None,
        "linked_law": float(np.mean([1 / line["candidates"] for line in named])) if named else None,
        "unique": float(np.mean([line["candidates"] == 1 for line in named])) if named else None,
    }


def _advantage(lines: Sequence[Line]) -> tuple[float, float, float] | tuple[None, None, None]:
    """Return P(guess 1 | secret 1) - P(guess 1 | secret 0) and its 95% interval, or None where a secret never occurred.

    Newcombe's interval for a difference of two independent shares (Statistics in Medicine 1998, 17, 873-890): the
    distances of each share to its limits, squared and added, with Clopper and Pearson's limits in place of Wilson's.
    With 8 or 30 trials of each secret it covers at least 95.8% of the time (exact, on a grid of both probabilities).
    """
    shares = []
    for secret in (1, 0):
        guesses = [line["guess"] for line in lines if line["secret"] == secret]
        if not guesses:
            return None, None, None
        shares.append((sum(guesses) / len(guesses), *share_interval(sum(guesses), len(guesses))))
    (yes, yes_low, yes_high), (no, no_low, no_high) = shares
    difference = yes - no
    low = difference - math.hypot(yes - yes_low, no_high - no)
    return difference, low, difference + math.hypot(yes_high - yes, no - no_low)
