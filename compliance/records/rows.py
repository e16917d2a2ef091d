"""The rows of a file that predictions are about, in the file's order or in that of its ids."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bools
from fairwall.rpc.memory import LARGE_BYTES, let_go, room
from fairwall.wire.rows import digest_of, ordered_ids

_THREADS = min(os.cpu_count() or 1, 4)


@dataclass(frozen=True)
class Ids:
    """The ids and digests of a file's rows.

    `public_columns`: further columns that both sides hold. `order`: positions of the rows in the order of ids, shape
    (people,). `digests`: the digest of the ids, and that of ids and public columns if there are any. `column_digests`:
    for each public column the digest of the ids and that column.
    """

    column: str
    public_columns: tuple[str, ...]
    order: NDArray[np.intp] = field(repr=False)
    digests: tuple[bytes, ...] = field(repr=False)
    column_digests: tuple[bytes, ...] = field(default=(), repr=False)


def identified(column: str, values: Any, public: Mapping[str, Any]) -> Ids:
    """Return the ids of rows, with digests of the ids and public columns, see `digest_of`; one value a row each.

    RowsError if a row has no id, or that of another.
    """
    ids, order = ordered_ids(values)
    tables = ({}, public) if public else ({},)
    columns = tuple(digest_of(ids, order, {name: values}) for name, values in public.items())
    return Ids(column, tuple(public), order, tuple(digest_of(ids, order, table) for table in tables), columns)


@dataclass(frozen=True)
class FileRows:
    """All rows of a file, of which some are audited.

    Developers predict for every row: they do not learn which are audited.

    `audited`: whether each row has a record, in the order of the file, shape (people,).
    """

    audited: Bools = field(repr=False)
    ids: Ids | None = None

    @property
    def people(self) -> int:
        """Number of predictions that each model has to send."""
        return len(self.audited)

    @property
    def digests(self) -> tuple[bytes, ...]:
        """Digests that a caller's own rows may have; empty if rows have no ids."""
        return self.ids.digests if self.ids is not None else ()

    def of_records(self, predictions: NDArray[Any], *, by_ids: bool) -> NDArray[Any]:
        """Return the predictions about the audited people, in the order of their records.

        `predictions`: shape (models, people). `by_ids`: whether their columns are in the order of ids, rather than of
        the file.
        """
        places = self._places_by_ids if by_ids else self._places
        if places is None:  # nothing is copied where everybody is in place already
            return predictions
        size = predictions.itemsize * len(predictions) * len(places)
        found = room(size).view(predictions.dtype).reshape(len(predictions), len(places))

        def place(model: int) -> None:
            np.take(predictions[model], places, out=found[model], mode="clip")  # there is nothing to clip
            for array in (predictions, found):
                let_go(array)

        with ThreadPoolExecutor(_THREADS) as pool:  # numpy leaves the interpreter to others meanwhile
            list((pool.map if size >= LARGE_BYTES else map)(place, range(len(predictions))))
        return found

    @cached_property
    def _places(self) -> NDArray[np.intp] | None:
        return None if self.audited.all() else np.flatnonzero(self.audited)

    @cached_property
    def _places_by_ids(self) -> NDArray[np.intp] | None:
        assert self.ids is not None, "nobody else has a digest"
        places = np.empty(self.people, np.intp)
        places[self.ids.order] = np.arange(self.people)
        in_place = self.audited.all() and np.array_equal(places, np.arange(self.people))
        return None if in_place else places[self.audited]
