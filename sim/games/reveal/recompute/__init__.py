"""What the developer and the adversary report of a reveal trial, computed again from its messages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sim.games.game import Compare
from sim.games.reveal.recompute import loss_test, statistics
from sim.games.reveal.recompute.base_model import BaseModel
from sim.transcripts.messages import Session


def comparisons(session: Session) -> Sequence[Compare]:
    """Give the comparisons for the trials of a session; a base model is trained once for all of them."""
    return (partial(statistics.compare, base=BaseModel(session)), loss_test.compare)
