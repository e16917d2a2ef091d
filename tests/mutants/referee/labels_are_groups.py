"""Deals the groups for labels."""

from dataclasses import replace

from sim.conformance import reference_referee
from sim.conformance.reference_referee import main

KILLED_BY = "R106"

sound = reference_referee.GAME.deal


def deal(*given, **named):
    dealt = sound(*given, **named)
    return replace(dealt, developer=replace(dealt.developer, labels=dealt.compliance.protected))


reference_referee.GAME = replace(reference_referee.GAME, deal=deal)

if __name__ == "__main__":
    main()
