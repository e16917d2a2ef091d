"""The tray of a run whose sessions are played at once: files in the run's folder, which every one of them can reach.

A session takes a trial by making a file that must not exist yet: that holds on network file systems too, where locks do
not. What it finished it lays down whole. The run's own process alone collects that into ``trials.jsonl``; while it
does, it keeps the tray's pulse going, and when the pulse is gone every session leaves.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.runs.trials import Lines, as_text, whole_lines

_OPEN, _PULSE = "open", "pulse"


@dataclass(frozen=True)
class Tray:
    """A tray, by its folder."""

    path: Path

    @classmethod
    def new(cls, folder: Path) -> Tray:
        """Make the tray of sessions that are about to be played, in the run's folder."""
        path = folder / f"tray-{secrets.token_hex(4)}"
        for part in ("taken", "done", "starts"):
            (path / part).mkdir(parents=True)
        (path / _PULSE).write_text("0")
        return cls(path)

    @classmethod
    def left_in(cls, folder: Path) -> list[Tray]:
        """List the trays of a run that have not been cleared: that of a run which was killed is still full."""
        return [cls(path) for path in sorted(folder.glob("tray-*"))]

    # What a session does.

    def is_open(self) -> bool:
        """Whether trials may be played, which a run's process says once it has found the data well."""
        return (self.path / _OPEN).exists()

    def take(self, number: int) -> bool:
        """Take a trial, by its number in the run; whether nobody had."""
        try:
            (self.path / "taken" / str(number)).open("xb").close()
        except FileExistsError:
            return False
        return True

    def lay(self, number: int, lines: Sequence[Mapping[str, Any]]) -> None:
        """Lay down the lines of a finished trial."""
        new = self.path / "done" / f"{number}.new"
        new.write_text(as_text(lines), encoding="utf-8")
        new.replace(new.with_suffix(".jsonl"))

    def start(self, session: str, layers: Mapping[str, Any]) -> None:
        """Note what confines the parties of a session, which is named by its transcripts' number, if it has any."""
        path = self.path / "starts" / f"{session or 0}-{secrets.token_hex(4)}.json"
        path.write_text(json.dumps(layers), encoding="utf-8")

    def pulse(self) -> str | None:
        """Read the pulse, which changes as long as the run's process lives; None when it is gone."""
        try:
            return (self.path / _PULSE).read_text()
        except FileNotFoundError:
            return None

    def end(self) -> bool:
        """Take the pulse away, by which every session is told to leave; whether it was still there."""
        try:
            (self.path / _PULSE).unlink()
        except FileNotFoundError:
            return False
        return True

    # What the run's process does.

    def open(self) -> None:
        """Let sessions play."""
        (self.path / _OPEN).touch()

    def beat(self, count: int) -> None:
        """Let the pulse change, unless it is gone."""
        with contextlib.suppress(FileNotFoundError), (self.path / _PULSE).open("r+") as file:
            file.write(str(count))

    def finished(self) -> list[int]:
        """List the trials that lie in the tray, by their number in the run, in order."""
        return sorted(int(path.stem) for path in self.path.glob("done/*.jsonl"))

    def lines(self, number: int) -> Lines:
        """Read the lines of a trial that lies in the tray."""
        return whole_lines((self.path / "done" / f"{number}.jsonl").read_bytes())

    def drop(self, number: int) -> None:
        """Take a trial's lines out, which are in ``trials.jsonl`` by now. It stays taken."""
        (self.path / "done" / f"{number}.jsonl").unlink()

    def starts(self) -> Iterator[dict[str, Any]]:
        """Read what confined the parties of each session, in the order of their transcripts."""
        for path in sorted(self.path.glob("starts/*.json"), key=lambda path: int(path.stem.partition("-")[0])):
            yield from whole_lines(path.read_bytes() + b"\n")

    def clear(self) -> None:
        """Remove it with what is in it."""
        shutil.rmtree(self.path, ignore_errors=True)  # a session that was not told yet may be writing
