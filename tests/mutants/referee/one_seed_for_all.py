"""Deals every party the same seed."""

from dataclasses import replace

from sim.conformance import reference_referee
from sim.conformance.reference_referee import main

KILLED_BY = "R106"

sound = reference_referee.GAME.deal


def deal(*given, **named):
    dealt = sound(*given, **named)
    cards = dealt.developer
    return replace(dealt, developer=replace(cards, seed=dealt.compliance.seed))


reference_referee.GAME = replace(reference_referee.GAME, deal=deal)

if __name__ == "__main__":
    main()
