"""Alice's posterior given a release, by Bayes's rule, and the record that may be hers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.game.v1 import disclosure_service_pb2 as wire
from fairwall.laws.disclosure import PRIOR, PriorKnowledge, posterior

MODES = {
    wire.DISCLOSURE_MODE_IDENTITY: "identity",
    wire.DISCLOSURE_MODE_ATTRIBUTE: "attribute",
    wire.DISCLOSURE_MODE_INFERENTIAL: "inferential",
    wire.DISCLOSURE_MODE_PRESENCE: "presence",
}
"""The modes' names, by their numbers on the wire."""


@dataclass(frozen=True)
class SecretBelief:
    """P(the secret is 1), the resulting guess, the record taken for Alice's, and the number of candidate records."""

    posterior: float
    guess: bool
    record: int | None
    candidates: int


def known(deal: wire.DisclosureDeal) -> PriorKnowledge:
    """Return a deal's public prior knowledge."""
    return PriorKnowledge(
        MODES[deal.mode],
        deal.terms.epsilon,
        deal.others,
        deal.others_yes if deal.HasField("others_yes") else None,
        deal.takes_part if deal.HasField("takes_part") else None,
        deal.rate,
    )


def believe(deal: wire.DisclosureDeal, table: NDArray[np.float64]) -> SecretBelief:
    """Return the belief given a release: (cells,) or, for records, (people, 2)."""
    if not deal.terms.records:
        believed = posterior(known(deal), float(table[deal.cell]))
        return SecretBelief(believed, believed >= PRIOR, None, 0)
    (alike,) = np.nonzero(table[:, 0] == deal.cell)
    believed = posterior(known(deal), float(table[alike, 1].sum()))
    # Records are in no order, so the first of the equal ones is as good as any.
    first = int(alike[0]) if deal.takes_part and len(alike) else None
    return SecretBelief(believed, believed >= PRIOR, first, len(alike) if first is not None else 0)
