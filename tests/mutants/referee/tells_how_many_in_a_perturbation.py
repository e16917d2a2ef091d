"""Tells how many people are disadvantaged in a number that means something else."""

from sim.conformance.reference_referee import main
from sim.games.reveal import referee

KILLED_BY = "R106"

sound = referee._developer_deal


def deal(dealt):
    told = sound(dealt)
    told.public_disadvantaged_rows = int((dealt.compliance.protected == 0).sum())
    return told


referee._developer_deal = deal

if __name__ == "__main__":
    main()
