"""A real service of a client's own, about people who do not exist: see `AuditClient.rehearsal`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from fairwall.errors import UserError

__tracebackhide__ = True
"""pytest shows the arguments of what failed, and these are rows about people."""

DATA = "rehearsal-of-nobody"
"""What the data set is called: terms, answers and cards say so."""


class Service:
    """A service of one's own, which ends with who has begun it.

    Parameters
    ----------
    rows : int or frame
        As of `fairwall.client.audit_client.AuditClient.rehearsal`, and so are the others.

    Attributes
    ----------
    address, credentials : str
        Where it is, and the folder by which it knows its one developer.

    Raises
    ------
    ValueError
        For rows that cannot be people.
    UserError
        If it does not start, with its one line.
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
            process_group=0,  # Ctrl-C is the caller's, who may go on; the service ends with its client
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
        """End it: what it was told and what it answered is gone."""
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            assert pipe is not None
            pipe.close()
        self._child.wait()


def _people(rows: Any, id_column: str | None, label: str | None) -> dict[str, Any]:
    """Say how many people there are, with ids and labels where rows have them; nothing else of rows is looked at."""
    if isinstance(rows, int | np.integer):
        if id_column is not None or label is not None:
            raise ValueError("id and label name columns of rows, and rows are a number")
        return {"people": int(rows), "ids": None, "labels": None}
    ids = _column(rows, id_column)
    if ids is None and hasattr(rows, "iloc") and type(rows.index).__name__ != "RangeIndex":
        ids = rows.index
    labels = _column(rows, label)
    if labels is not None and not all(one in (0, 1) for one in labels):
        raise ValueError(f"label {label!r}: must be 0 or 1 in every row")
    return {
        "people": len(rows),
        "ids": None if ids is None else [str(one) for one in ids],
        "labels": None if labels is None else [int(one) for one in labels],
    }


def _column(rows: Any, name: str | None) -> list[Any] | None:
    if name is None:
        return None
    try:
        column = rows[name]
    except KeyError:
        raise ValueError(f"rows have no column {name!r}") from None
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column)
