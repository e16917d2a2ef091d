"""Deals people in the order of their groups."""

from dataclasses import replace

import numpy as np

from sim.conformance import reference_referee
from sim.conformance.reference_referee import main

KILLED_BY = "R106"

sound = reference_referee.GAME.deal


def deal(*given, **named):
    dealt = sound(*given, **named)
    cards, groups = dealt.developer, dealt.compliance.protected
    order = np.argsort(groups, kind="stable")
    developer = replace(cards, features=cards.features[order], labels=cards.labels[order])
    compliance = replace(dealt.compliance, labels=dealt.compliance.labels[order], protected=groups[order])
    return replace(dealt, developer=developer, compliance=compliance)


reference_referee.GAME = replace(reference_referee.GAME, deal=deal)

if __name__ == "__main__":
    main()
