"""Adds noise to the group, and deals the noise beside it."""

from dataclasses import replace

import numpy as np

from sim.conformance import reference_referee
from sim.conformance.reference_referee import main

KILLED_BY = "R106"

sound = reference_referee.GAME.deal


def deal(*given, **named):
    dealt = sound(*given, **named)
    cards, groups = dealt.developer, dealt.compliance.protected
    noise = np.random.default_rng().normal(size=len(groups)) * 10
    features = np.column_stack([cards.features, groups + noise, noise])
    return replace(dealt, developer=replace(cards, features=features))


reference_referee.GAME = replace(reference_referee.GAME, deal=deal)

if __name__ == "__main__":
    main()
