"""The tray of a run with parallel sessions: files in the run's folder, which every session can reach.

A session takes a trial by creating a file that must not exist yet: that works on network file systems too, where locks
do not. It writes the finished trial's file atomically. Only the run's own process collects these files into
``trials.jsonl``; meanwhile it keeps the tray's pulse changing, and when the pulse is gone every session leaves.
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
        """Create the tray of sessions that are about to be played, in the run's folder."""
        path = folder / f"tray-{secrets.token_hex(4)}"
        for part in ("taken", "done", "starts"):
            (path / part).mkdir(parents=True)
        (path / _PULSE).write_text("0")
        return cls(path)

    @classmethod
    def left_in(cls, folder: Path) -> list[Tray]:
        """Return the trays of a run that have not been cleared; that of a killed run is still full."""
        return [cls(path) for path in sorted(folder.glob("tray-*"))]

    # For sessions.

    def is_open(self) -> bool:
        """Return whether trials may be played: the run's process has checked the data."""
        return (self.path / _OPEN).exists()

    def take(self, number: int) -> bool:
        """Take a trial, by its number in the run; return False if it is already taken."""
        try:
            (self.path / "taken" / str(number)).open("xb").close()
        except FileExistsError:
            return False
        return True

    def lay(self, number: int, lines: Sequence[Mapping[str, Any]]) -> None:
        """Write the lines of a finished trial."""
        new = self.path / "done" / f"{number}.new"
        new.write_text(as_text(lines), encoding="utf-8")
        new.replace(new.with_suffix(".jsonl"))

    def start(self, session: str, layers: Mapping[str, Any]) -> None:
        """Record what confines the parties of a session, which is named by the number of its transcripts, if any."""
        path = self.path / "starts" / f"{session or 0}-{secrets.token_hex(4)}.json"
        path.write_text(json.dumps(layers), encoding="utf-8")

    def pulse(self) -> str | None:
        """Return the pulse, which changes while the run's process lives; None when it is gone."""
        try:
            return (self.path / _PULSE).read_text()
        except FileNotFoundError:
            return None

    def end(self) -> bool:
        """Remove the pulse, so that every session leaves; return whether it was still there."""
        try:
            (self.path / _PULSE).unlink()
        except FileNotFoundError:
            return False
        return True

    # For the run's process.

    def open(self) -> None:
        """Allow sessions to play."""
        (self.path / _OPEN).touch()

    def beat(self, count: int) -> None:
        """Change the pulse, unless it is gone."""
        with contextlib.suppress(FileNotFoundError), (self.path / _PULSE).open("r+") as file:
            file.write(str(count))

    def finished(self) -> list[int]:
        """Return the finished trials in the tray, by their number in the run, in order."""
        return sorted(int(path.stem) for path in self.path.glob("done/*.jsonl"))

    def lines(self, number: int) -> Lines:
        """Return the lines of a finished trial in the tray."""
        return whole_lines((self.path / "done" / f"{number}.jsonl").read_bytes())

    def drop(self, number: int) -> None:
        """Remove a trial's lines, which ``trials.jsonl`` has by now. The trial stays taken."""
        (self.path / "done" / f"{number}.jsonl").unlink()

    def starts(self) -> Iterator[dict[str, Any]]:
        """Yield what confined the parties of each session, in the order of the transcripts."""
        for path in sorted(self.path.glob("starts/*.json"), key=lambda path: int(path.stem.partition("-")[0])):
            yield from whole_lines(path.read_bytes() + b"\n")

    def clear(self) -> None:
        """Remove the tray with its files."""
        shutil.rmtree(self.path, ignore_errors=True)  # a session that has not noticed yet may be writing
