"""The overfit game: audits of a test set, where the developer may have handed over sealed models."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import grpc
import numpy as np

from compliance.answers.accounts import Accounts
from compliance.answers.audits import AuditCase
from compliance.games.audits import open_case, report_of
from compliance.games.trial import Around, Cards, OpenTrial
from fairwall.arrays import Floats
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.laws.privacy.amounts import part_of, total
from fairwall.learning.sealed import sealed_decisions
from fairwall.wire.queries import round_of


@dataclass(frozen=True, eq=False)
class SealedGame:
    """Sealed models, scored by compliance on rows, shape (people, d), that the developer never sees."""

    key: bytes
    features: Floats = field(repr=False)

    def scores(self, _request_id: str, count: int, _context: grpc.ServicerContext | None) -> Floats:
        """Return decisions of the first `count` models, shape (count, people)."""
        return sealed_decisions(self.key, self.features, count).astype(np.float64)


def open_trial(deal: game.ComplianceDeal, cards: Cards, around: Around) -> OpenTrial:
    """Open the audits of a test set, or of each round's, and of sealed models if the developer handed any over."""
    key = deal.audits.sealed
    sealed = SealedGame(key, cards["features"].astype(np.float64, copy=False)) if key else None
    cases = [open_case(each, each.audits, own, sealed, around.draws) for each, own in rounds_of(deal, cards)]
    return OpenTrial(Accounts(audits={case.dataset: case for case in cases}), lambda: _report(cases))


def rounds_of(deal: game.ComplianceDeal, cards: Cards) -> Iterator[tuple[game.ComplianceDeal, Cards]]:
    """Yield a deal for each round, if rounds have different people: with its own name, noise and equal part of epsilon.

    All rounds together then cost at most epsilon, by each round's own ledger.
    """
    labels = cards["labels"]
    if labels.ndim == 1:
        yield deal, cards
        return
    for number in range(1, len(labels) + 1):
        own = game.ComplianceDeal()
        own.CopyFrom(deal)
        own.deal_id = round_of(deal.deal_id, number)
        own.audits.epsilon = part_of(deal.audits.epsilon, len(labels))
        # A separate seed: request ids tell noise apart within one case only.
        own.seed = hmac.digest(deal.seed, own.deal_id.encode(), hashlib.sha256)
        yield own, {name: values[number - 1] for name, values in cards.items()}


def _report(cases: Sequence[AuditCase]) -> game.SubmitAuditReportRequest:
    first, *later = reports = [report_of(case) for case in cases]
    first.epsilon_spent = total(report.epsilon_spent for report in reports)
    for report in later:
        for record in report.audits:
            record.case_id = report.deal_id
        first.audits.extend(report.audits)
    return first
