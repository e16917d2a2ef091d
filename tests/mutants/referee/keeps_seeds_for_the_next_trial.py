"""Deals the second trial's compliance the first one's seed."""

from dataclasses import replace

from sim.conformance import reference_referee
from sim.conformance.reference_referee import main

KILLED_BY = "R107"

first = {}
sound = reference_referee.GAME.deal


def deal(*given, **named):
    dealt = sound(*given, **named)
    return replace(dealt, compliance=replace(dealt.compliance, seed=first.setdefault("seed", dealt.compliance.seed)))


reference_referee.GAME = replace(reference_referee.GAME, deal=deal)

if __name__ == "__main__":
    main()
