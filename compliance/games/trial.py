"""What each game opens for a trial, and what it has to open it with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import grpc
from numpy.typing import NDArray

from compliance.answers.accounts import Accounts
from compliance.noise.draw_log import DrawLog
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceStub
from fairwall.game.v1 import referee_service_pb2 as game

Cards: TypeAlias = Mapping[str, NDArray[Any]]
"""A deal's arrays by name."""


@dataclass(frozen=True)
class Around:
    """Whom compliance may ask: the developer's models, and the referee.

    And the log of the operating system's draws, if one is kept.
    """

    models: ModelServiceStub
    referee: grpc.Channel
    draws: DrawLog | None


@dataclass(frozen=True)
class OpenTrial:
    """What may be asked while a trial lasts, and what makes the referee's report of it once it has ended."""

    accounts: Accounts
    report: Callable[[], game.SubmitAuditReportRequest]


class Open(Protocol):
    """How a game opens a trial."""

    def __call__(self, deal: game.ComplianceDeal, cards: Cards, around: Around, /) -> OpenTrial:
        """Open what a deal deals."""


def seed_of(deal: game.ComplianceDeal) -> bytes | None:
    """Give the seed of a deal's noise; None where the operating system draws it."""
    return deal.seed if deal.noise_seeded else None
