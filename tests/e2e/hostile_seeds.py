"""A developer of somebody else's, which knows all of fairwall's code and the shipped tables, and tries all seeds.

``python -I hostile_seeds.py SCENARIO BELOW --config -``: it plays as our developer does, but for its guess: that is the
group that everybody would have been dealt if all were drawn from the seed alone. Which seed, it finds by its own: the
one below BELOW that this follows from; if there is none, it takes the true one, which stands in SCENARIO.
"""

import hashlib
import hmac
import sys
from collections.abc import Iterator
from typing import Any

import developer.__main__ as ours
from fairwall.game.v1 import reveal_service_pb2_grpc
from fairwall.rpc.arrays import to_message
from sim.games import read
from sim.games.cards import WRITTEN_DOWN
from sim.games.reveal.deal import deal

SCENARIO, BELOW = sys.argv[1], int(sys.argv[2])
(CELL,) = read(SCENARIO, []).cells
deal(CELL, 0, "")  # read the table while it can


def seed_behind(own: bytes) -> int | None:
    for seed in range(BELOW):
        trial = hmac.digest(WRITTEN_DOWN, str(seed).encode(), hashlib.sha256)
        if hmac.digest(trial, b"developer", hashlib.sha256) == own:
            return seed
    return None


class Stub(reveal_service_pb2_grpc.RevealServiceStub):
    """Our developer's door to the referee, with an ear and a hand in between."""

    def __init__(self, channel: Any) -> None:
        super().__init__(channel)
        take, submit = self.TakeDeveloperDeal, self.SubmitReveal
        seeds: dict[str, bytes] = {}

        def taking(request: Any, **options: Any) -> Iterator[Any]:
            for part in take(request, **options):
                if part.WhichOneof("part") == "deal":
                    seeds[part.deal.deal_id] = part.deal.seed
                yield part

        def submitting(request: Any, **options: Any) -> Any:
            trial = int(request.deal_id.removeprefix("deal-")) - 1
            found = seed_behind(seeds[request.deal_id])
            print(f"hostile: {request.deal_id}: {found}", file=sys.stderr)  # noqa: T201
            again = deal(CELL, trial if found is None else found - CELL.scenario.scenario.seed, "")
            request.guess.CopyFrom(to_message(again.compliance.protected))
            return submit(request, **options)

        self.TakeDeveloperDeal = taking
        self.SubmitReveal = submitting


if __name__ == "__main__":
    reveal_service_pb2_grpc.RevealServiceStub = Stub
    sys.argv[1:] = sys.argv[3:]
    ours.main()
