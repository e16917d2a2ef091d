"""The adversary process: ``python -m adversary --config FILE``."""

from __future__ import annotations

from fairwall.rpc import kernels
from fairwall.rpc.program import importing


def main() -> None:
    """Play the referee's deals until the run is over."""
    kernels.fix()
    with importing("adversary"):
        from fairwall.rpc import process
    config, layers = process.start("adversary")
    # Imported here: all of it runs confined, and there is no thread before.
    with importing("adversary"):
        from adversary import inference, play
        from fairwall.game.v1 import referee_service_pb2 as referee
        from fairwall.rpc.turns import choose, enter, wait_for_the_end

    games = {
        referee.GAME_REVEAL: play.play_reveal,
        referee.GAME_INFERENCE: inference.play,
        referee.GAME_RELEASE: wait_for_the_end,  # it deals no outsider in
        referee.GAME_DISCLOSURE: wait_for_the_end,
        referee.GAME_GROUPS: wait_for_the_end,
        referee.GAME_OVERFIT: wait_for_the_end,
        referee.GAME_CURATOR: wait_for_the_end,
        referee.GAME_TRAINING: play.play_training,
        referee.GAME_WASH: play.play_wash,
    }
    with process.playing(config, layers) as recorder:
        process.announce("", layers)
        with enter(config.referee, config.credentials, recorder) as (game, seat):
            choose(games, game)(seat)


if __name__ == "__main__":
    main()
