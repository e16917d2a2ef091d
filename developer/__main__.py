"""The developer process: ``python -m developer --config FILE``."""

from __future__ import annotations

from fairwall.rpc import kernels
from fairwall.rpc.program import importing


def main() -> None:
    """Serve ModelService, and play the referee's deals until the run is over."""
    kernels.fix()
    with importing("developer"):
        from fairwall.rpc import process
    config, layers = process.start("developer")
    # Imported here: all of it runs confined, and there is no thread before.
    with importing("developer"):
        from developer import curator, disclosure, inference, overfit
        from developer.groups import play as groups
        from developer.release import play as release
        from developer.reveal import play as reveal
        from developer.service import ModelService, Shelf
        from developer.training import play as training
        from developer.wash import play as wash
        from fairwall.developer.v1.model_service_pb2_grpc import add_ModelServiceServicer_to_server
        from fairwall.game.v1 import referee_service_pb2 as referee
        from fairwall.rpc import server
        from fairwall.rpc.turns import choose, enter

    games = {
        referee.GAME_REVEAL: reveal.play,
        referee.GAME_INFERENCE: inference.play,
        referee.GAME_RELEASE: release.play,
        referee.GAME_DISCLOSURE: disclosure.play,
        referee.GAME_TRAINING: training.play,
        referee.GAME_GROUPS: groups.play,
        referee.GAME_WASH: wash.play,
        referee.GAME_OVERFIT: overfit.play,
        referee.GAME_CURATOR: curator.play,
    }
    shelf = Shelf()
    with process.playing(config, layers) as recorder:
        listening = server.serve(
            lambda grpc_server: add_ModelServiceServicer_to_server(
                ModelService(shelf.released, shelf.audited), grpc_server
            ),
            config.credentials,
            config.listen,
            recorder=recorder,
        )
        process.announce(listening.address, layers)
        with enter(config.referee, config.credentials, recorder) as (game, seat):
            choose(games, game)(seat, shelf)
        listening.stop()


if __name__ == "__main__":
    main()
