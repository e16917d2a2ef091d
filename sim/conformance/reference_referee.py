"""Serve this project's own referee, as the tester starts it: it admits everybody, and plays two reveal trials.

python -m sim.conformance.reference_referee --policy FILE
"""

from __future__ import annotations

import threading
from typing import Any

import grpc

from fairwall.game.v1.referee_service_pb2_grpc import add_RefereeServiceServicer_to_server
from sim.conformance.reference import serve
from sim.games import lay_out
from sim.games.cards import WRITTEN_DOWN
from sim.games.referee import Referee
from sim.games.reveal import GAME
from sim.games.table import GameTable

_SECONDS = 600.0


def main() -> None:
    """Serve until stopped."""

    def register(server: grpc.Server, policy: dict[str, Any]) -> None:
        asked, table = policy["game"], GameTable()
        referee = Referee(policy["deployment"]["name"], "0" * 64, GAME.wire, table)
        dealer = GAME.dealer(table)
        add_RefereeServiceServicer_to_server(referee, server)
        dealer.register(server, lambda servicer: servicer)
        referee.seat({**asked["addresses"], "adversary": ""})
        cell = lay_out(_scenario(asked["people"]), "the tester's").cells[0]
        names = asked["deal"], f"{asked['deal']}-2"
        deals = [GAME.deal(cell, number, name, WRITTEN_DOWN) for number, name in enumerate(names)]

        def play() -> None:
            for cards in deals:
                dealer.play(cards, _SECONDS)

        threading.Thread(target=play, daemon=True).start()

    serve("referee", register)


def _scenario(people: int) -> dict[str, Any]:
    return {
        "scenario": {"name": "conformance", "game": "reveal", "trials": 2, "seed": 1},
        "data": {"source": "synthetic", "n": people, "n0": people // 4 + 2, "scores": "uniform"},
        "compliance": {"metric": "sp", "mechanism": "laplace", "epsilon": 1.0},
        "developer": {"strategy": "sensing", "decoder": "l1", "queries": 2},
    }


if __name__ == "__main__":
    main()
