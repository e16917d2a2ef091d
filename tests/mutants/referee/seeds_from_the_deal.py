"""Makes seeds of the deal's name."""

import hashlib
from dataclasses import replace

from sim.conformance import reference_referee
from sim.conformance.reference_referee import main

KILLED_BY = "R106"

sound = reference_referee.GAME.deal


def deal(*given, **named):
    dealt = sound(*given, **named)
    seed = hashlib.sha256(f"{dealt.deal_id}/compliance".encode()).digest()
    return replace(dealt, compliance=replace(dealt.compliance, seed=seed))


reference_referee.GAME = replace(reference_referee.GAME, deal=deal)

if __name__ == "__main__":
    main()
