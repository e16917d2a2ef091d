"""Interface of games and trials: inputs of a game's function, and the accounts that it opens."""

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
    """The parties that compliance may call: the developer's models, and the referee.

    Also the log of the operating system's draws, if one is kept.
    """

    models: ModelServiceStub
    referee: grpc.Channel
    draws: DrawLog | None


@dataclass(frozen=True)
class OpenTrial:
    """The accounts that are open while a trial lasts, and the function that makes its report."""

    accounts: Accounts
    report: Callable[[], game.SubmitAuditReportRequest]


class Open(Protocol):
    """A game's function that opens a trial."""

    def __call__(self, deal: game.ComplianceDeal, cards: Cards, around: Around, /) -> OpenTrial:
        """Open the accounts of a deal."""


def seed_of(deal: game.ComplianceDeal) -> bytes | None:
    """Return the seed of a deal's noise; None if the operating system draws it."""
    return deal.seed if deal.noise_seeded else None
