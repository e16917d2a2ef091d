"""The adversary process: ``python -m adversary --config FILE``."""

from __future__ import annotations

from adversary.player import play
from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceStub
from fairwall.rpc import channel, process


def main() -> None:
    """Play the referee's deals until the run is over."""
    config = process.start("adversary")
    with process.playing(config):
        process.announce("")
        with channel.connect(config.referee, "referee", config.credentials) as referee:
            play(RefereeServiceStub(referee), config.credentials)


if __name__ == "__main__":
    main()
