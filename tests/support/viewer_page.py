"""A page of `fairwall view`, read back from its file as a browser would."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sim.viewer.message_timeline import DETAILS_A_BLOCK

_SCRIPT = re.compile(r"<script([^>]*)>(.*?)</script>", re.DOTALL)


@dataclass(frozen=True)
class Viewed:
    """A page: its text, and what it holds."""

    text: str

    @cached_property
    def index(self) -> dict[str, Any]:
        """What the page shows at first."""
        (found,) = (body for attributes, body in _SCRIPT.findall(self.text) if 'id="index"' in attributes)
        value: dict[str, Any] = json.loads(found)
        return value

    @cached_property
    def blocks(self) -> list[bytes]:
        """The blocks, inflated."""
        held = [body for attributes, body in _SCRIPT.findall(self.text) if 'id="block-' in attributes]
        return [zlib.decompress(base64.b64decode(block)) if block else b"" for block in held]

    @property
    def trials(self) -> list[dict[str, Any]]:
        """The trials."""
        found: list[dict[str, Any]] = self.index["trials"]
        return found

    def rows(self, trial: dict[str, Any]) -> list[dict[str, Any]]:
        """The messages of a trial, as the list shows them."""
        rows: list[dict[str, Any]] = json.loads(self.blocks[trial["blocks"][0]])
        return rows

    def details(self, trial: dict[str, Any]) -> list[dict[str, Any]]:
        """The same, as the inspector shows them."""
        parts = [json.loads(self.blocks[number]) for number in trial["blocks"][1]]
        assert all(len(part) == DETAILS_A_BLOCK for part in parts[:-1])
        return [one for part in parts for one in part]

    def messages(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """All messages: row and details."""
        return [pair for trial in self.trials for pair in zip(self.rows(trial), self.details(trial), strict=True)]

    def bytes_at(self, places: list[list[int]]) -> bytes:
        """The bytes of an array."""
        return b"".join(self.blocks[block][start : start + size] for block, start, size in places)

    @property
    def everything(self) -> list[bytes]:
        """All that the page holds, as it is and inflated."""
        return [self.text.encode(), json.dumps(self.index, ensure_ascii=False).encode(), *self.blocks]
