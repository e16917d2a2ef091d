"""A trial of the release game: its outcome, the dealer that takes it, its line, and the summary of a cell's lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grpc import ServicerContext

from fairwall.arrays import Bytes, Floats
from fairwall.game.v1 import release_game_service_pb2 as release
from fairwall.game.v1.release_game_service_pb2_grpc import (
    ReleaseGameServiceServicer,
    add_ReleaseGameServiceServicer_to_server,
)
from fairwall.laws.local import CLEAN, LOCAL_LAWS
from fairwall.laws.metrics.utility import RATED, UTILITIES
from fairwall.rpc.errors import Refusal
from fairwall.wire.metrics import number_of
from fairwall.wire.v1 import error_pb2
from sim.games.game import Line
from sim.games.referee import Arrays, TableDealer, check_queries, deals, terms_of
from sim.games.release.deal import ReleaseDeal, deal
from sim.games.release.scenario import CONSTANT, ReleaseScenario
from sim.games.submissions import AuditReport, bits_of, drawn_again, report_of, submission_of, take_guess
from sim.games.summary import means
from sim.games.table import Trial, TrialFailed, given
from sim.scenarios.scenario import plain
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class SubmittedGuesses:
    """The developer's guesses at the people trained on, 1 = advantaged, shape (people,).

    `consistent` is the share of them whose released columns are each the encoding of one value; `queries` counts the
    audits requested. `from_mixture` is None where no query was about these people.
    """

    from_release: Bytes
    from_everything: Bytes
    consistent: float
    queries: int
    from_mixture: Bytes | None = None


@dataclass(frozen=True, eq=False)
class ReleaseOutcome:
    """The developer's guesses, and compliance's report."""

    beliefs: SubmittedGuesses
    report: AuditReport


def from_messages(
    cell: Cell[ReleaseScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[ReleaseDeal, ReleaseOutcome]:
    """Return a trial's deal, drawn again and checked against the messages, and its outcome from the messages."""
    request, report = submission_of(trial, "SubmitBeliefs"), report_of(trial)
    dealt = drawn_again(
        deal,
        *(cell, number, trial, secret),
        lambda dealt: {
            "labels": dealt.compliance.labels,
            "release": dealt.release.values,
            "sensitive": dealt.release.tested,
        },
    )
    beliefs = SubmittedGuesses(
        from_release=bits_of(request.from_release),
        from_everything=bits_of(request.from_everything),
        consistent=request.consistent,
        queries=request.queries,
        from_mixture=bits_of(request.from_mixture) if request.HasField("from_mixture") else None,
    )
    return dealt, ReleaseOutcome(beliefs, report)


@dataclass
class _ReleaseTrial(Trial):
    deal: ReleaseDeal
    submitted: SubmittedGuesses | None = None


def _mixture(request: release.SubmitBeliefsRequest, deal: ReleaseDeal) -> Bytes | None:
    """Decode the guess from release and queries; Refusal unless it comes exactly where there are queries."""
    there = request.HasField("from_mixture")
    if there != (deal.release.queried is not None):
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return take_guess(request.from_mixture, (len(deal.labels),)) if there else None


def _release_deal(trial: _ReleaseTrial) -> tuple[release.ReleaseDeal, Arrays]:
    deal, scenario, boosting = trial.deal, trial.deal.scenario, trial.deal.boosting
    constant = deal.release.protocol == CONSTANT
    without = release.TRAINING_INPUT_CONSTANT if constant else release.TRAINING_INPUT_DROPPED
    return release.ReleaseDeal(
        input=release.TRAINING_INPUT_RELEASED if deal.releases else without,
        terms=terms_of(deal.release),
        boosting=release.Boosting(seed=deal.seed, depth=boosting.depth, rate=boosting.rate, trees=boosting.trees),
        metrics=[number_of(metric) for metric in scenario.metrics],
        audit_epsilon=scenario.epsilon / len(scenario.metrics),
        searches=scenario.release.asked == "searched",
    ), {"features": deal.features, "labels": deal.labels}


class ReleaseDealer(TableDealer[_ReleaseTrial, ReleaseDeal, ReleaseOutcome], ReleaseGameServiceServicer):
    """The ReleaseGameService, for one deal at a time."""

    kind, serve = _ReleaseTrial, staticmethod(add_ReleaseGameServiceServicer_to_server)

    TakeReleaseDeal = deals(release.TakeReleaseDealResponse, _release_deal, lambda trial: trial.served)

    def SubmitBeliefs(
        self, request: release.SubmitBeliefsRequest, context: ServicerContext
    ) -> release.SubmitBeliefsResponse:
        """Take the developer's guesses."""
        with self.turn(request.deal_id, lambda trial: trial.served) as trial:
            people = (len(trial.deal.labels),)
            if not 0 <= request.consistent <= 1:
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.submitted = SubmittedGuesses(
                from_release=take_guess(request.from_release, people),
                from_everything=take_guess(request.from_everything, people),
                consistent=request.consistent,
                queries=request.queries,
                from_mixture=_mixture(request, trial.deal),
            )
            return release.SubmitBeliefsResponse()

    def outcome(self, trial: _ReleaseTrial) -> ReleaseOutcome:
        """Return the outcome of a finished trial; TrialFailed if numbers of queries differ or figures are missing."""
        beliefs, report = given(trial.submitted), given(trial.report)
        check_queries(beliefs.queries, report)
        if (len(report.utilities), len(report.group_rates)) != (len(UTILITIES), 2 * len(RATED)):
            raise TrialFailed(
                "compliance reports no figures of a model: the developer handed none over, or they are lost"
            )
        return ReleaseOutcome(beliefs, report)


GROUP_RATES = tuple(f"{metric}_{group}" for metric in RATED for group in ("advantaged", "disadvantaged"))
"""Keys of the groups' rates behind the gaps, in the order of compliance's report."""


def record(cell: Cell[ReleaseScenario], _trial: int, dealt: ReleaseDeal, outcome: ReleaseOutcome) -> list[Line]:
    """Return the trial's line.

    Fairness figures and utilities are compliance's, of the test rows; leakage is in percent of the people trained on.
    """
    scenario, beliefs, report = cell.scenario, outcome.beliefs, outcome.report
    release, protected = dealt.release, dealt.release.protected
    (column,) = (column for column in release.columns if column.protected)
    queried = release.queried.epsilon if release.queried else 0.0
    # Queries are about the protected attribute alone.
    own = math.inf if release.protocol == CLEAN else column.share * release.epsilon + queried
    # Where nothing is released there is nothing to guess from.
    told = dealt.releases and report.release_spent

    def right(guess: Bytes | None) -> float | None:
        return None if guess is None else 100 * float((guess == protected).mean())

    return [
        {
            "split_seed": dealt.seed,
            "people": len(dealt.labels),
            "tested": len(dealt.compliance.labels),
            "protocol": release.protocol,
            "split": scenario.release.split,
            "sensitive": [each.name for each in release.columns],
            "epsilon": plain(release.budget),
            "epsilon_queried": queried,
            "epsilon_protected": plain(own),
            "loss": plain(_loss(dealt, queried)),
            "release_spent": plain(report.release_spent),
            "audit_epsilon_spent": plain(report.epsilon_spent),
            "queries": beliefs.queries,
            **{audit.metric: _number(audit.exact) for audit in report.audits},
            **{f"{audit.metric}_released": _number(audit.released) for audit in report.audits},
            **dict(zip(GROUP_RATES, report.group_rates, strict=True)),
            **dict(zip(UTILITIES, report.utilities, strict=True)),
            "consistent": beliefs.consistent,
            "leakage_baseline": 100 * float(max(protected.mean(), 1 - protected.mean())),
            "leakage_release": right(beliefs.from_release) if told else None,
            "leakage": right(beliefs.from_everything) if told else None,
            "leakage_mixture": right(beliefs.from_mixture),
        }
    ]


_MEANS = (
    "epsilon",
    "epsilon_protected",
    *("sp", "di", "eo", "oad"),
    *GROUP_RATES,
    *UTILITIES,
    "consistent",
    "leakage_baseline",
    "leakage_release",
    "leakage",
    "leakage_mixture",
)


def summarise(swept: Mapping[str, Any], lines: Sequence[Line]) -> Line:
    """Return the summary of a cell: means and standard deviations over the trials that have a number."""
    return {**swept, "trials": len(lines), "protocol": lines[0]["protocol"], **means(lines, _MEANS)}


def _loss(dealt: ReleaseDeal, queried: float) -> float:
    """Return the exact loss of release and queries, for some protocols less than epsilon."""
    release = dealt.release
    if release.protocol not in LOCAL_LAWS:
        return math.inf if release.protocol == CLEAN else 0.0
    law, columns = LOCAL_LAWS[release.protocol], release.columns if dealt.releases else ()
    return queried + math.fsum(law.loss(column.domain, column.share * release.epsilon) for column in columns)


def _number(measured: Floats) -> float | None:
    value = float(measured[0])
    return value if math.isfinite(value) else None
