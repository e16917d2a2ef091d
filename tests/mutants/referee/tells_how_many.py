"""Tells how many people are disadvantaged."""

from dataclasses import replace

from sim.conformance import reference_referee
from sim.conformance.reference_referee import main

KILLED_BY = "R106"

sound = reference_referee.GAME.deal


def deal(*given, **named):
    dealt = sound(*given, **named)
    cards, groups = dealt.developer, dealt.compliance.protected
    return replace(dealt, developer=replace(cards, disadvantaged=(int((groups == 0).sum()),)))


reference_referee.GAME = replace(reference_referee.GAME, deal=deal)

if __name__ == "__main__":
    main()
