"""Hides the group in the last bit of a feature."""

from dataclasses import replace

import numpy as np

from sim.conformance import reference_referee
from sim.conformance.reference_referee import main

KILLED_BY = "R106"

sound = reference_referee.GAME.deal


def deal(*given, **named):
    dealt = sound(*given, **named)
    cards, groups = dealt.developer, dealt.compliance.protected
    features = np.ascontiguousarray(cards.features)
    bits = features.view(np.uint64)
    bits[:, 0] = (bits[:, 0] & ~np.uint64(1)) | groups
    return replace(dealt, developer=replace(cards, features=features))


reference_referee.GAME = replace(reference_referee.GAME, deal=deal)

if __name__ == "__main__":
    main()
