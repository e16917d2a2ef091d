"""The developer process: ``python -m developer --config FILE``."""

from __future__ import annotations

from developer import inference, player
from developer.service import Audited, ModelService, Released
from fairwall.developer.v1.model_service_pb2_grpc import add_ModelServiceServicer_to_server
from fairwall.game.v1.inference_service_pb2_grpc import InferenceServiceStub
from fairwall.game.v1.referee_service_pb2 import GAME_INFERENCE
from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceStub
from fairwall.rpc import channel, process, server
from fairwall.rpc.turns import join


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
            table = RefereeServiceStub(referee)
            entered = join(table)
            if entered.game == GAME_INFERENCE:
                inference.play(InferenceServiceStub(referee), released)
            else:
                player.play(table, entered.counterpart_address, config.credentials, released, audited)
        listening.stop()


if __name__ == "__main__":
    main()
