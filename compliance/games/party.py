"""Compliance as a party of a run: its services answer from what the referee deals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compliance.answers.audit_service import AuditService
from compliance.answers.audits import Case
from compliance.answers.group_service import GroupService
from compliance.answers.groups import GroupCase
from compliance.answers.release_service import ReleaseCase, ReleaseService
from compliance.answers.statistics import Cohort
from compliance.answers.statistics_service import StatisticsService
from compliance.answers.tables import Study
from compliance.games import play as game
from fairwall.compliance.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from fairwall.compliance.v1.group_service_pb2_grpc import add_GroupServiceServicer_to_server
from fairwall.compliance.v1.release_service_pb2_grpc import add_ReleaseServiceServicer_to_server
from fairwall.compliance.v1.statistics_service_pb2_grpc import add_StatisticsServiceServicer_to_server
from fairwall.rpc import process, server
from fairwall.rpc.confine import Layer
from fairwall.rpc.turns import enter

if TYPE_CHECKING:
    import grpc


def play(config: process.PartyConfig, layers: Sequence[Layer]) -> None:
    """Take the referee's deals, until the run is over.

    Parameters
    ----------
    config : PartyConfig
    layers : sequence of Layer
        What the process is confined by, and what not.
    """
    cases: dict[str, Case] = {}
    releases: dict[str, ReleaseCase] = {}
    studies: dict[str, Study] = {}
    cohorts: dict[str, Cohort] = {}
    grouped: dict[str, GroupCase] = {}

    def register(grpc_server: grpc.Server) -> None:
        add_AuditServiceServicer_to_server(AuditService(cases), grpc_server)
        add_ReleaseServiceServicer_to_server(ReleaseService(releases, studies), grpc_server)
        add_StatisticsServiceServicer_to_server(StatisticsService(cohorts), grpc_server)
        add_GroupServiceServicer_to_server(GroupService(grouped), grpc_server)

    with process.playing(config, layers) as recorder:
        listening = server.serve(register, config.credentials, config.listen, recorder=recorder)
        process.announce(listening.address, layers)
        with enter(config.referee, config.credentials, recorder) as (_, seat):
            game.play(seat, cases, releases, studies, cohorts, grouped)
        listening.stop()
