"""The developer process: ``python -m developer --config FILE``."""

from __future__ import annotations

from fairwall.rpc.importing import importing


def main() -> None:
    """Serve ModelService, and play the referee's deals until the run is over."""
    with importing("developer"):
        from fairwall.rpc import process
    config, layers = process.start("developer")
    # Imported here: all of it runs confined, and there is no thread before.
    with importing("developer"):
        from developer import inference, player
        from developer.service import Audited, ModelService, Released
        from fairwall.developer.v1.model_service_pb2_grpc import add_ModelServiceServicer_to_server
        from fairwall.game.v1.inference_service_pb2_grpc import InferenceServiceStub
        from fairwall.game.v1.referee_service_pb2 import GAME_INFERENCE
        from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceStub
        from fairwall.game.v1.reveal_service_pb2_grpc import RevealServiceStub
        from fairwall.rpc import channel, server
        from fairwall.rpc.turns import join

    released: dict[str, Released] = {}
    audited: dict[tuple[str, str], Audited] = {}
    with process.playing(config) as recorder:
        listening = server.serve(
            lambda grpc_server: add_ModelServiceServicer_to_server(ModelService(released, audited), grpc_server),
            config.credentials,
            config.listen,
            recorder=recorder,
        )
        process.announce(listening.address, layers)
        with channel.connect(config.referee, "referee", config.credentials, recorder) as referee:
            entered = join(RefereeServiceStub(referee))
            if entered.game == GAME_INFERENCE:
                inference.play(
                    InferenceServiceStub(referee), entered.counterpart_address, config.credentials, released, recorder
                )
            else:
                reveal = RevealServiceStub(referee)
                player.play(reveal, entered.counterpart_address, config.credentials, released, audited, recorder)
        listening.stop()


if __name__ == "__main__":
    main()
