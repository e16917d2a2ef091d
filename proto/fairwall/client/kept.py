"""A developer's record for a regulator: compliance's commitment, and every question with its answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from fairwall.arrays import Floats
from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.errors import UserError
from fairwall.laws.studies.commitment import Commitment

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: rows about people."""

_COMMITMENT = "commitment.json"


class KeptError(UserError):
    """A folder without a valid record. Its text is one line."""


class NotKept(UserWarning):
    """A warning that a question was answered, and could not be recorded for a regulator."""


@dataclass(frozen=True)
class KeptAnswer:
    """A question with its answer: predictions (models, people), gaps (models,)."""

    header: audit.AuditHeader
    predictions: NDArray[np.generic] = field(repr=False)
    gaps: Floats

    @property
    def request_id(self) -> str:
        """The request's id."""
        return self.header.request_id


@dataclass(frozen=True)
class Kept:
    """A folder with the questions asked under one commitment, and their answers.

    ``developer`` asks; ``terms_digest`` is of the terms that the service is bound to as well.
    """

    folder: Path
    data: str
    developer: str
    commitment: Commitment
    terms_digest: bytes

    @classmethod
    def begin(cls, folder: Path, data: str, developer: str, terms: audit.CommitmentTerms) -> Kept:
        """Begin a record in a folder, or continue the one there; KeptError if its commitment is another."""
        commitment = Commitment(int(terms.rows), terms.rows_digest, terms.root, terms.seed_digest)
        begun = cls(folder, data, developer, commitment, terms.terms_digest)
        if (folder / _COMMITMENT).exists():
            if cls.read(folder) != begun:
                raise KeptError(f"{folder}: what compliance commits to has changed since, or this is another's folder")
            return begun
        folder.mkdir(parents=True, exist_ok=True)
        written = {key: value.hex() if isinstance(value, bytes) else value for key, value in asdict(commitment).items()}
        said = {"data": data, "developer": developer, "terms_digest": terms.terms_digest.hex(), **written}
        (folder / _COMMITMENT).write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
        return begun

    @classmethod
    def read(cls, folder: Path) -> Kept:
        """Read a folder; KeptError if it holds no commitment."""
        try:
            said = json.loads((folder / _COMMITMENT).read_text(encoding="utf-8"))
            digests = (bytes.fromhex(said[key]) for key in ("rows_digest", "root", "seed_digest"))
            commitment = Commitment(int(said["rows"]), *digests)
            return cls(folder, said["data"], said["developer"], commitment, bytes.fromhex(said["terms_digest"]))
        except (OSError, ValueError, KeyError, TypeError):
            raise KeptError(f"{folder}: no commitment is kept there: {_COMMITMENT}") from None

    def keep(self, header: audit.AuditHeader, predictions: Iterable[NDArray[np.generic]], gaps: Floats) -> None:
        """Write a question and its answer; the same again changes nothing."""
        name = header.request_id.encode().hex()
        np.savez_compressed(
            self.folder / f"{name}.npz",
            header=np.frombuffer(header.SerializeToString(), np.uint8),
            predictions=np.concatenate([np.atleast_2d(block) for block in predictions]),
            gaps=gaps,
        )

    @property
    def request_ids(self) -> frozenset[str]:
        """The ids of all recorded requests."""
        try:
            return frozenset(bytes.fromhex(file.stem).decode() for file in self.folder.glob("*.npz"))
        except ValueError:
            raise KeptError(
                f"{self.folder}: a file is not named by a request: take out what this client did not write"
            ) from None

    def asked(self, request_id: str) -> KeptAnswer:
        """Return a recorded question and its answer; KeptError if it cannot be read."""
        file = self.folder / f"{request_id.encode().hex()}.npz"
        try:
            with np.load(file, allow_pickle=False) as found:
                header = audit.AuditHeader.FromString(found["header"].tobytes())
                return KeptAnswer(header, found["predictions"], found["gaps"])
        except (OSError, ValueError, KeyError, DecodeError):
            raise KeptError(f"{file}: no question and answer can be read") from None
