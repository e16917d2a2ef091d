"""A shard: the part of a run that is played on its own, to be merged with the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fairwall.errors import UserError
from sim.runs.trials import Turn
from sim.scenarios.sweep import Sweep


class ShardError(UserError):
    """A shard that there is none of. Its text is one line that names the option."""


@dataclass(frozen=True)
class Shard:
    """One of so many parts of a run, from 1: every so many-th trial, so that each has its share of every cell."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read a shard as it is written, 2/3; refuse what is none by a `ShardError`."""
        found = re.fullmatch(r"([0-9]{1,7})/([0-9]{1,7})", text)
        if found is None:
            raise ShardError(f"--shard: {text!r}: is to be NUMBER/OF, as 2/3")
        number, of = (int(part) for part in found.groups())
        if not 1 <= number <= of:
            raise ShardError(f"--shard: {text}: of {of} shards the number is from 1 to {of}")
        return cls(number, of)

    def require_key(self, sweep: Sweep, key: Path | None) -> None:
        """Refuse, by a `ShardError`, a part of a run whose draws the other parts could not share."""
        if self.of > 1 and key is None and sweep.scenario.scenario.secret == "random":  # noqa: S105 - the name of a mode
            raise ShardError(
                f'--shard: with scenario.secret = "random" all {self.of} shards are drawn from one key: give each '
                "the same file of 32 random bytes by --secret"
            )

    def turns(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        """Give the trials of a run that are in the shard."""
        return (turn for turn in turns if (turn[2] - self.number) % self.of == 0)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


WHOLE = Shard(1, 1)
"""All of a run."""
