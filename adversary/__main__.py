"""The adversary process: ``python -m adversary --config FILE``."""

from __future__ import annotations

from fairwall.rpc.importing import importing


def main() -> None:
    """Play the referee's deals until the run is over."""
    with importing("adversary"):
        from fairwall.rpc import process
    config, layers = process.start("adversary")
    # Imported here: all of it runs confined, and there is no thread before.
    with importing("adversary"):
        from adversary import inference, player
        from fairwall.game.v1.inference_service_pb2_grpc import InferenceServiceStub
        from fairwall.game.v1.referee_service_pb2 import GAME_INFERENCE
        from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceStub
        from fairwall.game.v1.reveal_service_pb2_grpc import RevealServiceStub
        from fairwall.rpc import channel
        from fairwall.rpc.turns import join

    with process.playing(config) as recorder:
        process.announce("", layers)
        with channel.connect(config.referee, "referee", config.credentials, recorder) as referee:
            entered = join(RefereeServiceStub(referee))
            if entered.game == GAME_INFERENCE:
                inference.play(InferenceServiceStub(referee), config.credentials, entered.counterpart_address, recorder)
            else:
                player.play(RevealServiceStub(referee), config.credentials, entered.counterpart_address, recorder)


if __name__ == "__main__":
    main()
