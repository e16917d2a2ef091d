"""Compliance as a party of a run: its services answer about the referee's deals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compliance.answers.accounts import Accounts
from compliance.answers.audit_service import AuditService
from compliance.answers.group_service import GroupService
from compliance.answers.releases import ReleaseService
from compliance.answers.statistics import StatisticsService
from compliance.games import GAMES
from compliance.games.trial import Around, Open
from compliance.noise.draw_log import DrawLog
from fairwall.compliance.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from fairwall.compliance.v1.group_service_pb2_grpc import add_GroupServiceServicer_to_server
from fairwall.compliance.v1.release_service_pb2_grpc import add_ReleaseServiceServicer_to_server
from fairwall.compliance.v1.statistics_service_pb2_grpc import add_StatisticsServiceServicer_to_server
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceStub
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceStub
from fairwall.rpc import process, server
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.confine import Layer
from fairwall.rpc.turns import Seat, choose, deals, enter

if TYPE_CHECKING:
    import grpc


def play(config: process.PartyConfig, layers: Sequence[Layer]) -> None:
    """Serve the referee's deals, until the run is over.

    `layers`: the layers that confine the process, and those missing.
    """
    accounts = Accounts()

    def register(grpc_server: grpc.Server) -> None:
        add_AuditServiceServicer_to_server(AuditService(accounts.audits), grpc_server)
        add_ReleaseServiceServicer_to_server(ReleaseService(accounts.releases, accounts.tables), grpc_server)
        add_StatisticsServiceServicer_to_server(StatisticsService(accounts.sums), grpc_server)
        add_GroupServiceServicer_to_server(GroupService(accounts.groups), grpc_server)

    with process.playing(config, layers) as recorder:
        listening = server.serve(register, config.credentials, config.listen, recorder=recorder)
        process.announce(listening.address, layers)
        with enter(config.referee, config.credentials, recorder) as (played, seat):
            play_trials(seat, accounts, choose(GAMES, played))
        listening.stop()


def play_trials(seat: Seat, accounts: Accounts, open_trial: Open) -> None:
    """Serve every trial of a run: open its accounts, admit the developer until the trial has ended, and report.

    `seat`: with a recorder, the log of the operating system's noise is kept beside its transcript. `accounts`: holds a
    trial's accounts while it lasts.
    """
    referee = RefereeServiceStub(seat.referee)
    draws = DrawLog(seat.recorder.path.with_suffix(".draws.jsonl")) if seat.recorder is not None else None
    # The connection is made at the first query of a model.
    with seat.reach("developer") as connection:
        around = Around(ModelServiceStub(connection), seat.referee, draws)
        for deal, cards in deals(referee.TakeComplianceDeal, game.TakeComplianceDealRequest):
            trial = open_trial(deal, cards, around)
            accounts.replace(trial.accounts)
            while not referee.ServeTrial(game.ServeTrialRequest(deal_id=deal.deal_id), timeout=CALL_SECONDS).ended:
                pass
            accounts.replace(Accounts())
            referee.SubmitAuditReport(trial.report(), timeout=CALL_SECONDS)
