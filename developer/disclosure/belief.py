"""What a release says of Alice: Bayes's posterior by the public law, and which record may be hers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.game.v1 import disclosure_service_pb2 as wire
from fairwall.laws.disclosure import PRIOR, Known, posterior

MODES = {
    wire.DISCLOSURE_MODE_IDENTITY: "identity",
    wire.DISCLOSURE_MODE_ATTRIBUTE: "attribute",
    wire.DISCLOSURE_MODE_INFERENTIAL: "inferential",
    wire.DISCLOSURE_MODE_PRESENCE: "presence",
}
"""The modes' names, by their numbers on the wire."""


@dataclass(frozen=True)
class Belief:
    """P(the secret is 1), the guess that follows, the record taken for Alice's, and among how many it was one."""

    posterior: float
    guess: bool
    record: int | None
    candidates: int


def known(deal: wire.DisclosureDeal) -> Known:
    """Give what a deal tells beforehand."""
    return Known(
        MODES[deal.mode],
        deal.terms.epsilon,
        deal.others,
        deal.others_yes if deal.HasField("others_yes") else None,
        deal.takes_part if deal.HasField("takes_part") else None,
        deal.rate,
    )


def believe(deal: wire.DisclosureDeal, table: NDArray[np.float64]) -> Belief:
    """Read a release.

    Parameters
    ----------
    table : (cells,) or, of records, (people, 2), as it was released.
    """
    if not deal.terms.records:
        believed = posterior(known(deal), float(table[deal.cell]))
        return Belief(believed, believed >= PRIOR, None, 0)
    (alike,) = np.nonzero(table[:, 0] == deal.cell)
    believed = posterior(known(deal), float(table[alike, 1].sum()))
    # Records stand in no order, so that of those alike the first is as good as any.
    first = int(alike[0]) if deal.takes_part and len(alike) else None
    return Belief(believed, believed >= PRIOR, first, len(alike) if first is not None else 0)
