"""A local compliance service about made-up people: see `AuditClient.rehearsal`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairwall.client.predictions import in_order, numbers
from fairwall.client.rows import column_of, labels_of, say
from fairwall.errors import UserError
from fairwall.wire.rows import ids_of, listed

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: rows about people."""

DATA = "rehearsal-of-nobody"
"""The data set's name, which terms, answers and model cards show."""


class RehearsalService:
    """A local compliance service, with an address and a folder of credentials, that ends with its client.

    The parameters are those of `fairwall.client.audit_client.AuditClient.rehearsal`. ValueError for rows that cannot be
    people; UserError, with the service's one line, if it does not start.
    """

    def __init__(
        self,
        rows: Any,
        *,
        id: str | None,  # noqa: A002
        label: str | None,
        metrics: Sequence[str],
        mechanism: str,
        epsilon: float,
        seed: int,
    ) -> None:
        asked = _people(rows, id, label) | {"data": DATA, "metrics": list(metrics), "mechanism": mechanism}
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-m", "sim.deployment.rehearsal"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,  # Ctrl-C is for the caller, who may go on; the service ends with its client
        )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        try:
            print(json.dumps(asked | {"epsilon": epsilon, "seed": seed}), file=self._child.stdin, flush=True)
            line = self._child.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            *_, said = self._child.stderr.read().strip().splitlines() or [""]
            self.end()
            raise UserError(f"no rehearsal: {said}")
        told = json.loads(line)
        self.address: str = told["address"]
        self.credentials: str = told["credentials"]

    def end(self) -> None:
        """Stop the service; nothing is kept."""
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            assert pipe is not None
            pipe.close()
        self._child.wait()


def _people(rows: Any, id_column: str | None, label: str | None) -> dict[str, Any]:
    """Return the number of people, with ids and labels if rows have them; other columns are not read."""
    rows = in_order(rows, "rows")
    if isinstance(rows, int | np.integer):
        if id_column is not None or label is not None:
            raise ValueError("id and label name columns of rows, and rows are a number")
        return {"people": int(rows), "ids": None, "labels": None}
    if isinstance(rows, Mapping):
        rows = {name: in_order(column, f"rows: column {name!r}") for name, column in rows.items()}
    index = labels_of(rows)
    ids = column_of(rows, id_column, "rows") if id_column is not None else index if say(index) else None
    labels = None if label is None else numbers(column_of(rows, label, "rows"), f"label {label!r}")
    if labels is not None and not np.isin(labels, (0, 1)).all():
        raise ValueError(f"label {label!r}: must be 0 or 1 in every row")
    first = next(iter(rows.values()), ()) if isinstance(rows, Mapping) else rows
    return {
        "people": len(first),
        "ids": None if ids is None else [one.decode() for one in ids_of(listed(ids))],
        "labels": None if labels is None else labels.astype(int).tolist(),
    }
