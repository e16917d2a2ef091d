"""The matrix that the release game's models are trained and audited on: every column of codes as 0/1 columns.

The paper's code encodes all columns, sensitive or not, in the order of its tables (which
`tests/unit/developer/test_release_training.py` finds by matching the official figures). A sanitised encoding takes the
clean one's place, so that a model trained on the former can be asked about the latter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bools, Bytes


def one_hot(codes: NDArray[np.integer], size: int) -> Bytes:
    """Return codes below `size` as (rows, size): 1 at the code, else 0; ValueError, without the code, for others."""
    if ((codes < 0) | (codes >= size)).any():
        raise ValueError(f"a code is outside its domain of {size:,}")
    encoded: Bools = codes[:, None] == np.arange(size)
    return encoded.astype(np.uint8)


def design(columns: NDArray[np.integer], sizes: Sequence[int], encodings: Mapping[int, Bytes]) -> Bytes:
    """Return public columns, one-hot, side by side with sensitive columns, as given."""
    rows, others = columns.shape
    if len(sizes) != others:
        raise ValueError(f"{others} columns need as many domain sizes, not {len(sizes)}")
    for place, encoding in encodings.items():
        if encoding.ndim != 2 or len(encoding) != rows:
            raise ValueError(f"the encoding at place {place} has shape {encoding.shape}, not ({rows}, k)")
        if not ((encoding == 0) | (encoding == 1)).all():
            raise ValueError(f"the encoding at place {place} is not 0 or 1")
    if any(not 0 <= place < others + len(encodings) for place in encodings):
        raise ValueError(f"places {sorted(encodings)} are not among {others + len(encodings)}")
    clear = iter(range(others))
    parts = []
    for place in range(others + len(encodings)):
        if place in encodings:
            parts.append(encodings[place].astype(np.uint8, copy=False))
        else:
            column = next(clear)
            parts.append(one_hot(columns[:, column], sizes[column]))
    return np.concatenate(parts, axis=1) if parts else np.zeros((rows, 0), np.uint8)
