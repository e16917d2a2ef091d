"""The compliance process: ``python -m compliance --config FILE``."""

from __future__ import annotations

from compliance.case import Case
from compliance.player import play
from compliance.service import AuditService
from fairwall.compliance.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceStub
from fairwall.rpc import channel, process, server


def main() -> None:
    """Serve AuditService, and the referee's deals, until the run is over."""
    config = process.start("compliance")
    cases: dict[str, Case] = {}
    with process.playing(config):
        listening = server.serve(
            lambda grpc_server: add_AuditServiceServicer_to_server(AuditService(cases), grpc_server),
            config.credentials,
            config.listen,
        )
        process.announce(listening.address)
        with channel.connect(config.referee, "referee", config.credentials) as referee:
            play(RefereeServiceStub(referee), cases)
        listening.stop()


if __name__ == "__main__":
    main()
