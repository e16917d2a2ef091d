"""A shard: a part of a run that is played separately, and merged with the others afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fairwall.errors import UserError
from sim.runs.trials import Turn
from sim.scenarios.sweep import Sweep


class ShardError(UserError):
    """A number of no shard. Its text is one line that names the option."""


@dataclass(frozen=True)
class Shard:
    """Part ``number``, from 1, of ``of`` parts of a run: every ``of``-th trial, so trials of every cell."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse a shard such as 2/3, or raise `ShardError`."""
        found = re.fullmatch(r"([0-9]{1,7})/([0-9]{1,7})", text)
        if found is None:
            raise ShardError(f"--shard: {text!r}: is to be NUMBER/OF, as 2/3")
        number, of = (int(part) for part in found.groups())
        if not 1 <= number <= of:
            raise ShardError(f"--shard: {text}: of {of} shards the number is from 1 to {of}")
        return cls(number, of)

    def require_key(self, sweep: Sweep, key: Path | None) -> None:
        """Raise `ShardError` for a part with random draws that the other parts cannot share: there is no common key."""
        if self.of > 1 and key is None and sweep.scenario.scenario.secret == "random":  # noqa: S105 - the name of a mode
            raise ShardError(
                f'--shard: with scenario.secret = "random" all {self.of} shards are drawn from one key: give each '
                "the same file of 32 random bytes by --secret"
            )

    def turns(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        """Return the trials of a run that are in the shard."""
        return (turn for turn in turns if (turn[2] - self.number) % self.of == 0)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


WHOLE = Shard(1, 1)
"""The whole run."""
