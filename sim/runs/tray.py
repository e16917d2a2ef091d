"""The tray of a run whose sessions are played at once: files in the run's folder, which every one of them can reach.

A session takes a trial by making a file that must not exist yet: that holds on network file systems too, where locks do
not. What it finished it lays down whole. The run's own process alone collects that into ``trials.jsonl``; while it
does, it keeps the tray's pulse going, and when the pulse is gone every session leaves.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.runs.trials import Lines, as_text, whole_lines


@dataclass(frozen=True)
class Tray:
    """A tray, by its folder."""

    path: Path

    @classmethod
    def new(cls, folder: Path) -> Tray:
        """Make the tray of sessions that are about to be played.

        Parameters
        ----------
        folder : Path
            The run's.
        """
        tray = cls(folder / f"tray-{secrets.token_hex(4)}")
        for part in (tray._taken, tray._done, tray._starts):
            part.mkdir(parents=True)
        tray._pulse.write_text("0")
        return tray

    @classmethod
    def left_in(cls, folder: Path) -> list[Tray]:
        """List the trays of a run that have not been cleared: that of a run which was killed is still full."""
        return [cls(path) for path in sorted(folder.glob("tray-*"))]

    # What a session does.

    def is_open(self) -> bool:
        """Whether trials may be played, which a run's process says once it has found the data well."""
        return self._open.exists()

    def take(self, number: int) -> bool:
        """Take a trial, by its number in the run; whether nobody had."""
        try:
            (self._taken / str(number)).open("xb").close()
        except FileExistsError:
            return False
        return True

    def lay(self, number: int, lines: Sequence[Mapping[str, Any]]) -> None:
        """Lay down the lines of a finished trial."""
        new = self._done / f"{number}.new"
        new.write_text(as_text(lines), encoding="utf-8")
        new.replace(new.with_suffix(".jsonl"))

    def start(self, session: str, layers: Mapping[str, Any]) -> None:
        """Note what confines the parties of a session, which is named by its transcripts' number, if it has any."""
        path = self._starts / f"{session or 0}-{secrets.token_hex(4)}.json"
        path.write_text(json.dumps(layers), encoding="utf-8")

    def pulse(self) -> str | None:
        """Read the pulse, which changes as long as the run's process lives; None when it is gone."""
        try:
            return self._pulse.read_text()
        except FileNotFoundError:
            return None

    def end(self) -> bool:
        """Take the pulse away, by which every session is told to leave; whether it was still there."""
        try:
            self._pulse.unlink()
        except FileNotFoundError:
            return False
        return True

    # What the run's process does.

    def open(self) -> None:
        """Let sessions play."""
        self._open.touch()

    def beat(self, count: int) -> None:
        """Let the pulse change, unless it is gone."""
        try:
            with self._pulse.open("r+") as file:
                file.write(str(count))
        except FileNotFoundError:
            pass

    def finished(self) -> list[int]:
        """List the trials that lie in the tray, by their number in the run, in order."""
        return sorted(int(path.stem) for path in self._done.glob("*.jsonl"))

    def lines(self, number: int) -> Lines:
        """Read the lines of a trial that lies in the tray."""
        return whole_lines((self._done / f"{number}.jsonl").read_bytes())

    def drop(self, number: int) -> None:
        """Take a trial's lines out, which are in ``trials.jsonl`` by now. It stays taken."""
        (self._done / f"{number}.jsonl").unlink()

    def starts(self) -> Iterator[dict[str, Any]]:
        """Read what confined the parties of each session, in the order of their transcripts."""
        for path in sorted(self._starts.glob("*.json"), key=lambda path: int(path.stem.partition("-")[0])):
            yield from whole_lines(path.read_bytes() + b"\n")

    def clear(self) -> None:
        """Remove it with what is in it."""
        shutil.rmtree(self.path, ignore_errors=True)  # a session that was not told yet may be writing

    @property
    def _taken(self) -> Path:
        return self.path / "taken"

    @property
    def _done(self) -> Path:
        return self.path / "done"

    @property
    def _starts(self) -> Path:
        return self.path / "starts"

    @property
    def _open(self) -> Path:
        return self.path / "open"

    @property
    def _pulse(self) -> Path:
        return self.path / "pulse"
