"""Compliance at the referee's table: it takes a deal, opens a case, serves the trial, and reports."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import MutableMapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compliance.answers.audits import Case, game_case, values_of
from compliance.answers.black_box import Asked, Models
from compliance.answers.exposure import limited
from compliance.answers.groups import GroupCase
from compliance.answers.release_service import ReleaseCase
from compliance.answers.releases import Column, HandedModel, Release, game_release
from compliance.answers.statistics import Cohort, game_cohort
from compliance.answers.tables import Study, game_study
from compliance.ledger.accountant import Budget, Neighbours
from compliance.mechanisms import find_mechanism
from compliance.mechanisms.bounding import bounded
from compliance.noise.draw_log import DrawLog
from compliance.records.groups import Attribute, Grouped
from compliance.records.people import Records
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceStub
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceStub
from fairwall.laws.exposure import Limit
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import Seat, deals
from fairwall.wire.metrics import name_of, number_of
from fairwall.wire.precision import from_message
from fairwall.wire.queries import trained_on

LOG = logging.getLogger(__name__)


def play(
    seat: Seat,
    cases: MutableMapping[str, Case],
    releases: MutableMapping[str, ReleaseCase],
    studies: MutableMapping[str, Study],
    cohorts: MutableMapping[str, Cohort],
    grouped: MutableMapping[str, GroupCase],
) -> None:
    """Serve every trial of a run, whatever the game.

    Parameters
    ----------
    seat : Seat
        The log of the operating system's noise is kept beside its recorder's transcript.
    cases : mutable mapping of str to Case
        Where the open case stands while its trial lasts; AuditService answers from it.
    releases : mutable mapping of str to ReleaseCase
        The same of ReleaseService, in the release game.
    studies : mutable mapping of str to Study
        The same, in the disclosure game.
    cohorts : mutable mapping of str to Cohort
        The same of StatisticsService, in the training game.
    grouped : mutable mapping of str to GroupCase
        The same of GroupService, in the game of groups.
    """
    referee = RefereeServiceStub(seat.referee)
    draws = DrawLog(seat.recorder.path.with_suffix(".draws.jsonl")) if seat.recorder is not None else None
    takes = deals(
        lambda last: referee.TakeComplianceDeal(
            game.TakeComplianceDealRequest(after_deal_id=last), timeout=CALL_SECONDS
        )
    )
    # Nothing is sent before the first model is asked.
    with seat.reach("developer") as connection:
        models = ModelServiceStub(connection)
        for deal, cards in takes:
            if deal.HasField("study") or deal.HasField("statistics") or deal.HasField("group_columns"):
                told: Study | Cohort | GroupCase
                if deal.HasField("study"):
                    told = studies[deal.deal_id] = open_study(deal, cards)
                elif deal.HasField("statistics"):
                    told = cohorts[deal.deal_id] = open_cohort(deal, cards)
                else:
                    told = grouped[deal.deal_id] = open_groups(deal, cards)
                _serve(referee, deal.deal_id)
                studies.clear()
                cohorts.clear()
                grouped.clear()
                spent = game.SubmitAuditReportRequest(deal_id=deal.deal_id, epsilon_spent=told.spent)
                referee.SubmitAuditReport(spent, timeout=CALL_SECONDS)
                continue
            release = open_release(deal, cards) if deal.HasField("terms") else None
            audited = release.model if release is not None else _models(deal, cards, models)
            case = open_case(deal, cards, audited, draws)
            cases[deal.deal_id] = case
            trained = None
            if release is not None:
                releases[deal.deal_id] = release
                trained = open_trained(deal, release.release, draws)
            if trained is not None:
                cases[trained.dataset] = trained
            LOG.info("deal %s: %d people, mechanism %s", deal.deal_id, case.records.people, case.mechanism.name)
            _serve(referee, deal.deal_id)
            cases.clear()
            releases.clear()
            report = _report(deal.deal_id, case)
            if release is not None:
                report.utilities.extend(release.model.utilities)
                report.group_rates.extend(release.model.group_rates(case.records))
                report.release_spent = release.release.spent
            if trained is not None:
                report.release_audits.extend(_audits(trained))
            referee.SubmitAuditReport(report, timeout=CALL_SECONDS)


def _serve(referee: RefereeServiceStub, deal_id: str) -> None:
    """Admit the developer, until the trial has ended."""
    while not referee.ServeTrial(game.ServeTrialRequest(deal_id=deal_id), timeout=CALL_SECONDS).ended:
        pass


def open_study(deal: game.ComplianceDeal, cards: dict[str, NDArray[Any]]) -> Study:
    """Open what a deal of the disclosure game deals; ``cards`` are its arrays by name."""
    return game_study(
        deal.deal_id,
        cards["study_cells"].astype(np.intp),
        cards["study_answers"].astype(np.uint8, copy=False),
        deal.study.cells,
        deal.study.epsilon,
        deal.seed if deal.noise_seeded else None,
        records=deal.study.records,
    )


def open_cohort(deal: game.ComplianceDeal, cards: dict[str, NDArray[Any]]) -> Cohort:
    """Open what a deal of the training game deals; ``cards`` are its arrays by name."""
    return game_cohort(
        deal.deal_id,
        cards["protected"].astype(np.uint8, copy=False),
        deal.statistics.epsilon,
        deal.statistics.delta,
        deal.seed if deal.noise_seeded else None,
    )


def open_groups(deal: game.ComplianceDeal, cards: dict[str, NDArray[Any]]) -> GroupCase:
    """Open what a deal of the game of groups deals; ``cards`` are its arrays by name."""
    codes = cards["groups"].astype(np.uint8, copy=False)
    nobody = np.zeros(codes.shape[1], np.uint8)
    columns = zip(deal.group_columns.names, deal.group_columns.sizes, strict=True)
    attributes = tuple(Attribute(name, tuple(map(str, range(size)))) for name, size in columns)
    # No gap is asked for: labels and the two groups of an audit are nobody's.
    case = game_case(
        deal.deal_id,
        Records.imagined(nobody, nobody, metrics=("sp",)),
        find_mechanism("counts"),
        Budget(deal.epsilon),
        0.0,
        deal.queries_max,
        deal.seed if deal.noise_seeded else None,
    )
    return GroupCase(case, Grouped(attributes, codes, nobody), least_share=0.0)


def _models(deal: game.ComplianceDeal, cards: dict[str, NDArray[Any]], models: ModelServiceStub) -> Models | None:
    if "features" not in cards:
        return None
    return Models(models, deal.deal_id, cards["features"].astype(np.float64, copy=False))


def open_release(deal: game.ComplianceDeal, cards: dict[str, NDArray[Any]]) -> ReleaseCase:
    """Open what a deal of the release game deals; ``cards`` are its arrays by name."""
    terms = deal.terms
    columns = [Column(column.place, column.domain, column.share, column.name) for column in terms.columns]
    labels, values, sensitive = (
        cards[name].astype(np.uint8, copy=False) for name in ("labels", "release", "sensitive")
    )
    seed = deal.seed if deal.noise_seeded else None
    return ReleaseCase(
        game_release(trained_on(deal.deal_id), terms.protocol, columns, values, terms.budget, seed),
        HandedModel(labels, cards["features"].astype(np.int64), sensitive, columns, terms.sizes),
        tells_utilities=find_mechanism(deal.mechanism).guarantee == "none",
    )


def open_trained(deal: game.ComplianceDeal, release: Release, draws: DrawLog | None = None) -> Case | None:
    """Open the audits of the people whose attributes are released; None where no query is dealt.

    One budget, for one person's attributes against any others (`Neighbours.ATTRIBUTES`), pays for both in one ledger.
    The release loses epsilon_r in this unit. A batch of queries that loses epsilon_q for one flip of A loses as much in
    it: it depends on A alone of what changes, and A changes by one flip or not at all. What is asked may depend on what
    was released and answered before; by the composition of adaptively chosen mechanisms losses still add up, so that

        epsilon_r + sum of the batches' epsilon_q <= release.epsilon,

    which the ledger holds whatever the developer asks, and in whatever order.
    """
    if not deal.terms.HasField("queried"):
        return None
    asked = deal.terms.queried
    (groups,) = (place for place, column in enumerate(deal.terms.columns) if column.groups)
    protected = release.values[:, groups]
    # The labels are the developer's; statistical parity looks at none.
    records = Records(labels=np.zeros_like(protected), protected=protected, metrics=("sp",))
    return Case(
        dataset=release.dataset,
        records=records,
        mechanism=find_mechanism(asked.mechanism),
        ledger=release.ledger,
        queries_max=asked.queries,
        # Of a seed of its own: request ids tell noise apart within one case.
        seed=hmac.digest(deal.seed, b"trained", hashlib.sha256) if deal.noise_seeded else None,
        exact={},
        draws=draws,
        neighbours=Neighbours.ATTRIBUTES,
    )


def open_case(
    deal: game.ComplianceDeal,
    cards: dict[str, NDArray[Any]],
    models: Asked | None = None,
    draws: DrawLog | None = None,
) -> Case:
    """Open the audits that a deal deals; ``cards`` are its arrays by name."""
    records = Records(
        labels=cards["labels"].astype(np.uint8, copy=False),
        protected=cards["protected"].astype(np.uint8, copy=False),
        metrics=tuple(name_of(number) for number in deal.metrics),
    )
    limit = deal.reveal_max if deal.HasField("reveal_max") else 1.0
    return game_case(
        deal.deal_id,
        records,
        bounded(limited(find_mechanism(deal.mechanism), Limit(limit)), deal.bounding),  # type: ignore[arg-type]  # an unknown one is refused
        Budget(deal.epsilon, deal.delta),
        deal.batch_delta,
        deal.queries_max,
        deal.seed if deal.noise_seeded else None,
        from_message(deal.precision) or "float64",
        deal.differencing,
        models,
        draws,
    )


def _report(deal_id: str, case: Case) -> game.SubmitAuditReportRequest:
    return game.SubmitAuditReportRequest(
        deal_id=deal_id, audits=_audits(case), epsilon_spent=case.ledger.standing(deal_id).spent
    )


def _audits(case: Case) -> list[game.AuditRecord]:
    assert case.exact is not None, "a game's case keeps them"
    return [
        game.AuditRecord(
            request_id=entry.request.request_id,
            metric=number_of(entry.request.metric),
            exact=to_message(case.exact[entry.request.request_id]),
            released=to_message(values_of(entry)),
            epsilon=entry.request.loss.epsilon,
            flagged=case.detector.flagged.get(entry.request.request_id, 0),
        )
        for entry in case.ledger.entries(case.dataset)
        # A ledger may also have paid for a release.
        if entry.request.request_id in case.exact
    ]
