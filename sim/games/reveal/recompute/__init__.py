"""Recomputation of the developer's and the adversary's reports in a reveal trial from its messages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sim.games.game import Compare
from sim.games.reveal.recompute import loss_test, statistics
from sim.games.reveal.recompute.base_model import BaseModel
from sim.transcripts.messages import PlayedSession


def comparisons(session: PlayedSession) -> Sequence[Compare]:
    """Return the comparisons for the trials of a session; a base model is trained once for all of them."""
    return (partial(statistics.compare, base=BaseModel(session)), loss_test.compare)
