"""The adversary process: ``python -m adversary --config FILE``."""

from __future__ import annotations

from adversary import inference, player
from fairwall.game.v1.inference_service_pb2_grpc import InferenceServiceStub
from fairwall.game.v1.referee_service_pb2 import GAME_INFERENCE
from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceStub
from fairwall.rpc import channel, process
from fairwall.rpc.turns import join


def main() -> None:
    """Play the referee's deals until the run is over."""
    config = process.start("adversary")
    with process.playing(config):
        process.announce("")
        with channel.connect(config.referee, "referee", config.credentials) as referee:
            table = RefereeServiceStub(referee)
            entered = join(table)
            if entered.game == GAME_INFERENCE:
                inference.play(InferenceServiceStub(referee), config.credentials, entered.counterpart_address)
            else:
                player.play(table, config.credentials, entered.counterpart_address)


if __name__ == "__main__":
    main()
