"""Compliance in a game: it takes a deal, opens accounts, serves the trial and reports."""

from collections.abc import Mapping

from compliance.games import audits, curator, disclosure, groups, overfit, release, training, wash
from compliance.games.trial import Open
from fairwall.game.v1.referee_service_pb2 import (
    GAME_CURATOR,
    GAME_DISCLOSURE,
    GAME_GROUPS,
    GAME_INFERENCE,
    GAME_OVERFIT,
    GAME_RELEASE,
    GAME_REVEAL,
    GAME_TRAINING,
    GAME_WASH,
    Game,
)

GAMES: Mapping[Game, Open] = {
    GAME_REVEAL: audits.open_trial,
    GAME_INFERENCE: audits.open_trial,
    GAME_RELEASE: release.open_trial,
    GAME_DISCLOSURE: disclosure.open_trial,
    GAME_TRAINING: training.open_trial,
    GAME_GROUPS: groups.open_trial,
    GAME_WASH: wash.open_trial,
    GAME_OVERFIT: overfit.open_trial,
    GAME_CURATOR: curator.open_trial,
}
