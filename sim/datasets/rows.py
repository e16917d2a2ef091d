"""The people a game is played on: features, outcomes and groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bytes, Floats
from fairwall.tables.people import LeftOut


class Features(Protocol):
    """A source of feature rows, by their numbers: an array, or a table that is not written out yet."""

    def __getitem__(self, rows: NDArray[np.intp], /) -> Floats:
        """Return rows: shape (rows, d)."""


@dataclass(frozen=True)
class EncodedRows:
    """N people of a table under the public encoding, and the rows of its file left out, by reason.

    encoded : N rows of d features: categorical columns one-hot, named ``column=value``; numeric columns with mean 0 and
        standard deviation 1 (a constant one is 0).
    labels, protected : (N,); 1 is the favourable outcome; 1 is the advantaged group, 0 the disadvantaged one.
    scored : whether the one feature is itself the base model's score in [0, 1], so that there is nothing to train.
    """

    name: str
    encoded: Features
    labels: Bytes
    protected: Bytes
    feature_names: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()
    scored: bool = False

    @property
    def features(self) -> Floats:
        """All rows, written out: shape (N, d)."""
        return self.encoded[np.arange(len(self.labels))]
