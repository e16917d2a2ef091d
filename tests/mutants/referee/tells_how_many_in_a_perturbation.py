"""Tells how many people are disadvantaged in a number that means something else."""

from fairwall.game.v1.reveal_service_pb2 import TakeDeveloperDealResponse
from sim.conformance.reference_referee import main
from sim.games.dealer import deals
from sim.games.reveal import referee

KILLED_BY = "R106"


def deal(trial):
    told, arrays = referee._developer_deal(trial)
    told.public_disadvantaged_rows = int((trial.deal.compliance.protected == 0).sum())
    return told, arrays


referee.RevealDealer.TakeDeveloperDeal = deals(TakeDeveloperDealResponse, deal, lambda trial: trial.served)

if __name__ == "__main__":
    main()
