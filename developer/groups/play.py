"""The developer in the game of groups: it queries counts of models made for that purpose, and guesses the groups."""

from __future__ import annotations

import logging

import numpy as np

from developer.groups.decode import decode
from developer.groups.subsets import SEARCHED, SUBSETS, SearchBounds, SubsetPlan, found
from developer.service import Shelf
from fairwall.arrays import Floats
from fairwall.client import by_group
from fairwall.compliance.v1.group_service_pb2 import GroupRelease
from fairwall.game.v1 import group_game_service_pb2 as wire
from fairwall.game.v1.group_game_service_pb2_grpc import GroupGameServiceStub
from fairwall.laws.privacy.amounts import part_of
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import Seat, deals, generator

LOG = logging.getLogger(__name__)


def play(seat: Seat, _shelf: Shelf) -> None:
    """Play every trial of a run."""
    referee = GroupGameServiceStub(seat.referee)
    with seat.reach("compliance") as connection:
        compliance = by_group.GroupStub(connection)
        for deal, _ in deals(referee.TakeGroupDeal, wire.TakeGroupDealRequest):
            guess = decode(_asked(compliance, deal), np.array(deal.shares))
            LOG.info("deal %s: %d people, %d groups", deal.deal_id, len(guess), len(deal.shares))
            referee.SubmitGroups(
                wire.SubmitGroupsRequest(deal_id=deal.deal_id, guess=to_message(guess)), timeout=CALL_SECONDS
            )


def _asked(compliance: by_group.GroupStub, deal: wire.GroupDeal) -> list[tuple[Floats, GroupRelease]]:
    """Send all batches, each for its part of epsilon."""
    terms, rng = by_group.terms(compliance, deal.deal_id), generator(deal.seed)
    plan = _plan(deal, terms.people)
    epsilon = part_of(deal.epsilon, plan.batches)
    asked = []
    for number in range(1, plan.batches + 1):
        decisions = SUBSETS[plan.subsets](rng, terms.people, plan.parts)
        by, name = tuple(terms.attributes), f"counts-{number}"
        bought = by_group.count(compliance, deal.deal_id, name, decisions, by, ("selection_rate",), epsilon)
        asked.append((decisions, bought.release))
    return asked


def _plan(deal: wire.GroupDeal, people: int) -> SubsetPlan:
    if deal.strategy != SEARCHED:
        return SubsetPlan(deal.strategy, 2**deal.models if deal.strategy == "blocks" else deal.models, deal.batches)
    plan = found(SearchBounds(tuple(deal.shares), people, deal.epsilon, deal.batches, deal.models))
    LOG.info("deal %s: %d batches of %d %s", deal.deal_id, plan.batches, plan.parts, plan.subsets)
    return plan
