"""The referee's service, which deals to compliance, and the base class of the dealers to the other parties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

import grpc
from numpy.typing import NDArray

from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceServicer
from fairwall.rpc.arrays import chunks_of, header_of
from fairwall.rpc.errors import Refusal
from fairwall.rpc.identity import caller_of
from fairwall.rpc.turns import PROTOCOL_VERSION
from fairwall.wire.metrics import number_of
from fairwall.wire.numbers import to_message
from fairwall.wire.v1 import error_pb2
from sim.games.cards import ComplianceCards, Deal, ReleaseCards, StatisticsCards, StudyCards
from sim.games.game import Watch
from sim.games.submissions import AuditReport, take_audit
from sim.games.table import GameTable, Trial, TrialFailed
from sim.scenarios.scenario import QUERIES_MAX


@dataclass
class Referee(RefereeServiceServicer):
    """The RefereeService: `scenario_digest` is sent to the parties, and the game's dealer deals at the same `table`."""

    run: str
    scenario_digest: str
    played: game.Game
    table: GameTable = field(repr=False)
    _addresses: dict[str, str] | None = None

    # Called by the runner.

    def seat(self, addresses: dict[str, str]) -> None:
        """Set each party's address, or as "<caller>-<party>" the one for a single caller; Join blocks until then."""
        with self.table.changing():
            self._addresses = addresses

    # Called by the parties.

    def Join(self, request: game.JoinRequest, context: grpc.ServicerContext) -> game.JoinResponse:
        """Admit a party and send it the game and the address of its counterpart."""
        if request.protocol_version != PROTOCOL_VERSION:
            raise Refusal(error_pb2.REASON_PROTOCOL_VERSION)
        self.table.wait(lambda: self._addresses is not None)
        if self._addresses is None:
            return game.JoinResponse(turn=game.TURN_WAIT)
        caller = caller_of(context, self.run)
        counterpart = "compliance" if caller == "developer" else "developer"
        return game.JoinResponse(
            scenario_digest=self.scenario_digest,
            game=self.played,
            counterpart_address=self._addresses.get(f"{caller}-{counterpart}", self._addresses[counterpart]),
        )

    def AwaitEnd(self, request: game.AwaitEndRequest, context: grpc.ServicerContext) -> game.AwaitEndResponse:
        """Reply when the run is over."""
        turn = self.table.take(Trial, "", lambda _: False)
        assert not isinstance(turn, Trial), "no trial is let through"
        return game.AwaitEndResponse(turn=turn)

    def TakeComplianceDeal(
        self,
        request: game.TakeComplianceDealRequest,
        context: grpc.ServicerContext,
    ) -> Iterator[game.TakeComplianceDealResponse]:
        """Deal to compliance."""
        response: Any = game.TakeComplianceDealResponse
        trial = self.table.take(Trial, request.after_deal_id, lambda trial: trial.dealable)
        if not isinstance(trial, Trial):
            yield response(turn=trial)
            return
        cards = trial.deal.compliance
        assert cards is not None, "just waited for"
        dealt, arrays = _dealt(trial.deal, cards)
        yield response(deal=dealt)
        yield from in_chunks(response, arrays)

    def ServeTrial(self, request: game.ServeTrialRequest, context: grpc.ServicerContext) -> game.ServeTrialResponse:
        """Open the trial to the developer, and reply whether it has ended."""
        with self.table.changing():
            trial = self._audited(request.deal_id)
            trial.served = True
        return game.ServeTrialResponse(ended=self.table.wait(lambda: trial.ended))

    def SubmitAuditReport(
        self,
        request: game.SubmitAuditReportRequest,
        context: grpc.ServicerContext,
    ) -> game.SubmitAuditReportResponse:
        """Take compliance's report of an ended trial."""
        with self.table.changing():
            trial = self._audited(request.deal_id)
            if not trial.ended:
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            audits = tuple(take_audit(record) for record in request.audits)
            if not (request.epsilon_spent >= 0 and request.release_spent >= 0):
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            if not all(0 <= share <= 1 for share in (*request.utilities, *request.group_rates)):
                raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
            trial.report = AuditReport(
                audits,
                request.epsilon_spent,
                tuple(request.utilities),
                request.release_spent,
                tuple(request.group_rates),
                tuple(take_audit(record) for record in request.release_audits),
            )
            return game.SubmitAuditReportResponse()

    def _audited(self, deal_id: str) -> Trial:
        """Return the trial that is being played; Refusal if compliance is not in the game."""
        trial = self.table.playing(Trial, deal_id)
        if trial.deal.compliance is None:
            raise Refusal(error_pb2.REASON_OUT_OF_TURN)
        return trial


def check_queries(queries: int, report: AuditReport) -> None:
    """Raise TrialFailed if the developer's number of queries differs from the number that compliance answered."""
    if queries != report.answered:
        raise TrialFailed(
            f"developer says that it asked {queries} queries, compliance that it answered {report.answered}"
        )


Arrays: TypeAlias = dict[str, NDArray[Any]]
"""Arrays of a deal, by name."""


def _dealt(deal: Deal, cards: ComplianceCards) -> tuple[game.ComplianceDeal, Arrays]:
    """Return compliance's deal, and the arrays that its headers announce, by name."""
    arrays: Arrays
    made: dict[str, Any]
    if cards.study is not None:
        arrays = {"study_cells": cards.study.cells, "study_answers": cards.study.answers}
        made = {"study": game.StudyCards(terms=study_terms_of(cards.study), **announced(arrays))}
    elif cards.statistics is not None:
        arrays = {"protected": cards.protected}
        made = {"statistics": game.StatisticsCards(terms=statistics_terms_of(cards.statistics), **announced(arrays))}
    elif (groups := cards.groups) is not None:
        arrays = {"groups": groups.codes}
        about: dict[str, Any] = {
            "names": groups.names,
            "sizes": groups.sizes,
            "epsilon": groups.epsilon,
            "queries_max": QUERIES_MAX,
        }
        made = {"groups": game.GroupCards(**about, **announced(arrays))}
    else:
        arrays = cards.tested
        audits = _audits(deal, arrays, cards.sealed)
        made = {"audits": audits}
        if cards.release is not None:
            released = {"sensitive": cards.release.tested, "release": cards.release.values}
            made = {"release": game.ReleaseCards(audits=audits, terms=terms_of(cards.release), **announced(released))}
            arrays |= released
        if cards.curator is not None:
            made = {"curator": game.CuratorCards(audits=audits, **cards.curator)}
    seeded = deal.scenario.compliance.noise == "seeded"
    seed = cards.seed if seeded else b""
    return game.ComplianceDeal(deal_id=deal.deal_id, noise_seeded=seeded, seed=seed, **made), arrays


def announced(arrays: Arrays) -> dict[str, Any]:
    """Return the headers of arrays, by name. A deal carries the headers, and the arrays follow it."""
    return {name: header_of(array) for name, array in arrays.items()}


def in_chunks(response: Callable[..., Any], arrays: Arrays) -> Iterator[Any]:
    """Yield the messages that carry the announced arrays."""
    for name, array in arrays.items():
        yield from (response(**{f"{name}_chunk": chunk}) for chunk in chunks_of(array))


def _audits(deal: Deal, arrays: Arrays, sealed: bytes) -> game.AuditCards:
    scenario = deal.scenario
    return game.AuditCards(
        metrics=[number_of(metric) for metric in scenario.metrics],
        mechanism=scenario.compliance.mechanism,
        epsilon=scenario.epsilon,
        delta=scenario.compliance.delta,
        batch_delta=scenario.batch_delta,
        bounding=scenario.compliance.bounding,
        reveal_max=scenario.compliance.reveal_max if scenario.compliance.reveal_max < 1 else None,
        precision=to_message(scenario.compliance.precision),
        differencing=scenario.compliance.differencing,
        queries_max=max(QUERIES_MAX, arrays["labels"].shape[-1]),
        sealed=sealed,
        **announced(arrays),
    )


def statistics_terms_of(statistics: StatisticsCards) -> game.StatisticsTerms:
    """Return the budget of sums by group as a message."""
    return game.StatisticsTerms(epsilon=statistics.epsilon, delta=statistics.delta)


def study_terms_of(study: StudyCards) -> game.StudyTerms:
    """Return the terms of a study's release as a message."""
    return game.StudyTerms(cells=study.width, records=study.records, epsilon=study.epsilon)


def terms_of(cards: ReleaseCards) -> game.ReleaseTerms:
    """Return the terms of the release of sensitive columns as a message."""
    return game.ReleaseTerms(
        protocol=cards.protocol,
        columns=[
            game.SensitiveColumn(
                name=column.name,
                place=column.place,
                domain=column.domain,
                share=column.share,
                groups=column.protected,
            )
            for column in cards.columns
        ],
        sizes=cards.sizes,
        epsilon=cards.epsilon,
        budget=cards.budget,
        queried=None if cards.queried is None else game.QueryTerms(**vars(cards.queried)),
    )


T = TypeVar("T", bound=Trial)
D = TypeVar("D")
O = TypeVar("O")  # noqa: E741 - a game's outcome


class TableDealer(Generic[T, D, O]):
    """Base class of the games' dealers, which add their service's methods; `kind` is the class of their trials."""

    kind: type[T]
    serve: Callable[[Any, grpc.Server], None]

    def __init__(self, table: GameTable) -> None:
        self.table = table

    def register(self, server: grpc.Server, watch: Watch) -> None:
        """Register the game's service with a server."""
        type(self).serve(watch(self), server)

    def play(self, deal: D, seconds: float) -> O:
        """Play one deal to its end, see `Dealer.play`."""
        trial = self.kind(deal)  # type: ignore[arg-type]  # a trial of this kind has such a deal
        self.table.play(trial, seconds)
        return self.outcome(trial)

    def outcome(self, trial: T) -> O:
        """Return the outcome of a finished trial; TrialFailed if the parties' submissions contradict one another."""
        raise NotImplementedError

    @contextmanager
    def turn(self, deal_id: str, ready: Callable[[T], bool]) -> Iterator[T]:
        """Yield the trial that is being played, locked for changes; Refusal (out of turn) if it is not `ready`."""
        with self.table.changing():
            trial = self.table.playing(self.kind, deal_id)
            if not ready(trial):
                raise Refusal(error_pb2.REASON_OUT_OF_TURN)
            yield trial


def deals(
    response: Any, cards: Callable[[T], tuple[Any, Arrays]], ready: Callable[[T], bool]
) -> Callable[[TableDealer[T, Any, Any], Any, grpc.ServicerContext], Iterator[Any]]:
    """Return the service method that deals to a party once a trial is `ready`.

    `cards` returns a trial's message and, by name, the arrays that follow it; the method adds their headers and the
    deal's id.
    """

    def take(dealer: TableDealer[T, Any, Any], request: Any, _: grpc.ServicerContext) -> Iterator[Any]:
        trial = dealer.table.take(dealer.kind, request.after_deal_id, ready)
        if not isinstance(trial, dealer.kind):
            yield response(turn=trial)
            return
        deal, arrays = cards(trial)
        deal.deal_id = trial.deal.deal_id
        for name, array in arrays.items():
            getattr(deal, name).CopyFrom(header_of(array))
        yield response(deal=deal)
        yield from in_chunks(response, arrays)

    return take
