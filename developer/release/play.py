"""The developer in the release game: it trains on the release, hands its model over, and guesses."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from developer.release.beliefs import AttributeGuesses, believe, by_column
from developer.release.mixture import from_mixture, tossed
from developer.release.searched import found
from developer.release.training import constant, train
from developer.service import Shelf
from fairwall.arrays import Bytes, Floats
from fairwall.client.gaps import Audits, ask, ask_models
from fairwall.compliance.v1 import release_service_pb2 as wire
from fairwall.compliance.v1.release_service_pb2_grpc import ReleaseServiceStub
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1 import release_game_service_pb2 as release
from fairwall.game.v1.release_game_service_pb2_grpc import ReleaseGameServiceStub
from fairwall.laws.local import LOCAL_LAWS
from fairwall.learning.design import design
from fairwall.learning.forest import Boosting, Forest, to_array
from fairwall.rpc.arrays import chunks_of, gathered, header_of, to_message
from fairwall.rpc.turns import Seat, deals
from fairwall.wire.metrics import name_of
from fairwall.wire.queries import request_id, trained_on

LOG = logging.getLogger(__name__)

SUBMIT_SECONDS = 300.0


def play(seat: Seat, _shelf: Shelf) -> None:
    """Play every trial of a run."""
    referee = ReleaseGameServiceStub(seat.referee)
    with seat.reach("compliance") as connection:
        for deal, cards in deals(referee.TakeReleaseDeal, release.TakeReleaseDealRequest):
            features, labels = cards["features"].astype(np.float64, copy=False), cards["labels"].astype(np.uint8)
            LOG.info("deal %s: %d people, protocol %s", deal.deal_id, len(labels), deal.terms.protocol)
            released = None
            if deal.input == release.TRAINING_INPUT_RELEASED:
                released = _take(ReleaseServiceStub(connection), deal)
            forest = _trained(deal, features, labels, released)
            _hand(ReleaseServiceStub(connection), deal.deal_id, forest, sees_attributes=released is not None)
            queries = _audit(Audits(connection), deal)
            believed = believe(deal.terms, features, labels, released)
            mixed = None
            if deal.terms.HasField("queried"):
                guess, asked = _ask(Audits(connection), deal, believed)
                mixed, queries = to_message(guess), queries + asked
            referee.SubmitBeliefs(
                release.SubmitBeliefsRequest(
                    deal_id=deal.deal_id,
                    from_release=to_message(believed.from_release),
                    from_everything=to_message(believed.from_everything),
                    consistent=believed.consistent,
                    queries=queries,
                    from_mixture=mixed,
                ),
                timeout=SUBMIT_SECONDS,
            )


def _take(compliance: ReleaseServiceStub, deal: release.ReleaseDeal) -> NDArray[Any]:
    """Buy the release and return it, shape (people, values of all columns)."""
    request = wire.SanitiseRequest(request_id="release-1", deal_id=deal.deal_id, epsilon=deal.terms.epsilon)
    parts = iter(compliance.Sanitise(request, timeout=SUBMIT_SECONDS))
    return gathered(next(parts).header.encoded, (part.encoded_chunk for part in parts))


def _trained(deal: release.ReleaseDeal, features: Floats, labels: Bytes, released: NDArray[Any] | None) -> Forest:
    if deal.input == release.TRAINING_INPUT_CONSTANT:
        return constant(labels)
    encodings = {column.place: _bits(deal, column, encoded) for column, encoded in by_column(deal.terms, released)}
    how = Boosting(deal.boosting.depth, deal.boosting.rate, deal.boosting.trees)
    LOG.info("training %d trees on %d rows", how.trees, len(labels))
    rows = design(features.astype(np.int64), deal.terms.sizes, encodings)
    return train(rows, labels, how, deal.boosting.seed)


def _bits(deal: release.ReleaseDeal, column: game.SensitiveColumn, encoded: NDArray[Any]) -> Bytes:
    """Return a column's release as zeros and ones."""
    if encoded.dtype == np.uint8:
        return encoded
    law = LOCAL_LAWS[deal.terms.protocol].law(column.domain, column.share * deal.terms.epsilon)
    bits: Bytes = law.thresholded(encoded)
    return bits


def _hand(compliance: ReleaseServiceStub, deal_id: str, forest: Forest, *, sees_attributes: bool) -> None:
    nodes = to_array(forest)

    def parts() -> Iterator[wire.HandModelRequest]:
        header = wire.ModelHeader(deal_id=deal_id, sees_attributes=sees_attributes, nodes=header_of(nodes))
        yield wire.HandModelRequest(header=header)
        yield from (wire.HandModelRequest(nodes_chunk=chunk) for chunk in chunks_of(nodes))

    compliance.HandModel(parts(), timeout=SUBMIT_SECONDS)


def _audit(audits: Audits, deal: release.ReleaseDeal) -> int:
    """Query every metric of the model that was handed over, and return the number of queries."""
    for number, metric in enumerate(deal.metrics, start=1):
        ask_models(audits, deal.deal_id, request_id("metric", number), name_of(metric), 1, deal.audit_epsilon)
    return len(deal.metrics)


def _ask(audits: Audits, deal: release.ReleaseDeal, believed: AttributeGuesses) -> tuple[Bytes, int]:
    """Query the training people, and return new guesses, (people,), and the number of queries."""
    asked = deal.terms.queried
    queries = found(asked, believed) if deal.searches else asked.queries
    predictions = tossed(len(believed.probability), queries, deal.boosting.seed)
    answer = ask(audits, trained_on(deal.deal_id), request_id("metric", 1), "sp", predictions, asked.epsilon)
    return from_mixture(asked, believed, predictions, answer.gaps), queries
