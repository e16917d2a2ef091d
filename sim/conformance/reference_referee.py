"""Our own referee as the tester starts one: it lets everybody in, and plays one reveal trial.

python -m sim.conformance.reference_referee --policy FILE
"""

from __future__ import annotations

import threading
from typing import Any

import grpc

from fairwall.game.v1.referee_service_pb2_grpc import add_RefereeServiceServicer_to_server
from sim.conformance.reference import serve
from sim.games.reveal.deal import deal
from sim.games.reveal.referee import Referee
from sim.scenarios.sweep import lay_out

_SECONDS = 600.0


def main(service: type[Referee] = Referee) -> None:
    """Serve."""

    def register(server: grpc.Server, policy: dict[str, Any]) -> None:
        game = policy["game"]
        referee = service(policy["deployment"]["name"], "0" * 64)
        add_RefereeServiceServicer_to_server(referee, server)
        referee.seat({**game["addresses"], "adversary": ""})
        cards = deal(lay_out(_scenario(game["people"]), "the tester's").cells[0], 0, game["deal"])
        threading.Thread(target=referee.play, args=(cards, _SECONDS), daemon=True).start()

    serve("referee", register)


def _scenario(people: int) -> dict[str, Any]:
    return {
        "scenario": {"name": "conformance", "game": "reveal", "trials": 1, "seed": 1},
        "data": {"source": "synthetic", "n": people, "n0": people // 4, "scores": "uniform"},
        "compliance": {"metric": "sp", "mechanism": "laplace", "epsilon": 1.0},
        "developer": {"strategy": "sensing", "decoder": "l1", "queries": 2},
    }


if __name__ == "__main__":
    main()
