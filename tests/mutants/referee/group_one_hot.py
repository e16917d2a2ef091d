"""Deals each group's indicator, times a random number."""

from dataclasses import replace

import numpy as np

from sim.conformance import reference_referee
from sim.conformance.reference_referee import main

KILLED_BY = "R106"

sound = reference_referee.GAME.deal


def deal(*given, **named):
    dealt = sound(*given, **named)
    cards, groups = dealt.developer, dealt.compliance.protected
    r = np.random.default_rng().random(len(groups))
    return replace(
        dealt, developer=replace(cards, features=np.column_stack([cards.features, groups * r, (1 - groups) * r]))
    )


reference_referee.GAME = replace(reference_referee.GAME, deal=deal)

if __name__ == "__main__":
    main()
