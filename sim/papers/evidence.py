"""The evidence for a claim, in a small file from which its verdict can be computed again without a replay.

Digests of its content and of its test make a changed number, or a changed test, noticed. Neither is a signature: with a
number and the digest both changed it is other evidence, which only measuring again tells from ours.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fairwall.errors import UserError
from sim.papers.claim import ClaimTest, Paper, PaperClaim

_BYTES_MAX = 2**20


@dataclass(frozen=True)
class ClaimEvidence:
    """The evidence for a claim, by its id, measured by one version of the code.

    ``test`` is a digest of what was measured and how, not of what was predicted. ``source`` is what was played or read,
    with its settings; ``data`` the SHA-256 of the tables, by name; ``values`` the value of each unit, for each
    prediction. A check has ``figures``, its result in words, and a counterexample, empty if it found none.
    """

    claim: str
    test: str
    verdict: str
    code: str
    source: Mapping[str, Any]
    data: Mapping[str, str]
    seconds: float
    values: tuple[tuple[float, ...], ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    found: str = ""
    counterexample: str = ""

    def text(self) -> str:
        """Return the file's content."""
        content = asdict(self)
        for key in ("values", "figures", "found", "counterexample"):
            if not content[key]:
                del content[key]
        return json.dumps({**content, "digest": _digest(content)}, indent=1, allow_nan=False) + "\n"


def digest_of(test: ClaimTest) -> str:
    """Return the digest of what a test measures and how."""
    content = test.model_dump(
        mode="json", include={"play", "table", "measure", "check", "set", "trials", "seed", "unit"}
    )
    content["values"] = [[each.value, each.of, each.pair] for each in test.predicts]
    return _digest(content)[:16]


def read(paper: Paper, claim: PaperClaim) -> ClaimEvidence | None:
    """Read a claim's evidence; None if there is none, UserError if the file was changed."""
    path = place(paper.evidence, claim.id)
    try:
        if path.stat().st_size > _BYTES_MAX:
            raise UserError(f"{path}: more than {_BYTES_MAX:,} bytes")
        content = json.loads(path.read_bytes())
        stated = content.pop("digest")
        if stated != _digest(content):
            raise UserError(f"{path}: its digest is another: a number was changed since it was measured")
        values = tuple(tuple(map(float, units)) for units in content.pop("values", ()))
        if not all(math.isfinite(value) for units in values for value in units):
            raise ValueError
        return ClaimEvidence(**content, values=values)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UserError(f"{path}: is no evidence as `fairwall papers run` writes it") from None


def write(folder: Path, evidence: ClaimEvidence) -> Path:
    """Write a claim's evidence to a folder; UserError if it cannot be written."""
    path = place(folder, evidence.claim)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(evidence.text(), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}; name another folder with --out") from None
    return path


def place(folder: Path, claim: str) -> Path:
    """Return the path of a claim's evidence."""
    return folder / f"{claim}.json"


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=list).encode()).hexdigest()
