"""The developer process: ``python -m developer --config FILE``."""

from __future__ import annotations

from developer.player import play
from developer.service import Audited, ModelService, Released
from fairwall.developer.v1.model_service_pb2_grpc import add_ModelServiceServicer_to_server
from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceStub
from fairwall.rpc import channel, process, server


def main() -> None:
    """Serve ModelService, and play the referee's deals until the run is over."""
    config = process.start("developer")
    released: dict[str, Released] = {}
    audited: dict[tuple[str, str], Audited] = {}
    with process.playing(config):
        listening = server.serve(
            lambda grpc_server: add_ModelServiceServicer_to_server(ModelService(released, audited), grpc_server),
            config.credentials,
            config.listen,
        )
        process.announce(listening.address)
        with channel.connect(config.referee, "referee", config.credentials) as referee:
            play(RefereeServiceStub(referee), config.credentials, released, audited)
        listening.stop()


if __name__ == "__main__":
    main()
