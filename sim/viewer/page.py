"""The page of a run: its index, and blocks of messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwall.errors import UserError
from fairwall.rpc.identity import PARTIES
from sim.games import GAMES
from sim.games import read as read_sweep
from sim.replay.differences import first_difference
from sim.replay.recorded import Session
from sim.scenarios.sweep import Sweep
from sim.transcripts.boundary import CLEARANCE, level_name
from sim.transcripts.captions import Caption, shared
from sim.transcripts.files import Transcript, by_number, paths, read
from sim.verify.finding import NoRun
from sim.viewer.blocks import PAGE_BYTES_MAX, Blobs, Blocks
from sim.viewer.document import document
from sim.viewer.findings import checked
from sim.viewer.reel import Places, Reel, Where, reels
from sim.viewer.sight import ALL, Sight
from sim.viewer.trials import cells_of, outcomes, record_of

_MESSAGES_BYTES_MAX = 12_000_000


class ViewError(UserError):
    """A run or trial that cannot be shown. Its text is one line with the reason."""


@dataclass(frozen=True)
class ShownRun:
    """A run to be shown, with its transcripts by number, then by party."""

    folder: Path
    sweep: Sweep
    sessions: dict[str, Session]

    @property
    def name(self) -> str:
        """The run's id, as the parties know it."""
        return next((script.header.run for script in self.scripts if script.header is not None), self.folder.name)

    @property
    def scripts(self) -> list[Transcript]:
        """All transcripts of the run."""
        return [script for scripts in self.sessions.values() for script in scripts.values()]

    @property
    def captions(self) -> Mapping[str, Caption]:
        """Captions of the game's messages, and of those that any game has."""
        return {**shared(), **GAMES[self.sweep.game].captions()}


def open_run(folder: Path) -> ShownRun:
    """Return a run as far as it is readable: one that `fairwall verify` finds fault with can be shown, too."""
    if not (folder / "scenario.toml").is_file():
        raise NoRun(
            f"{folder}: not a run's folder: it has no scenario.toml; name one that fairwall run printed, or latest"
        )
    sessions = _sessions(folder)
    if not sessions:
        raise NoRun(f'{folder}: nothing was recorded: its scenario says record = "none", or it is an old run')
    return ShownRun(folder, read_sweep(str(folder / "scenario.toml")), sessions)


def _sessions(folder: Path) -> dict[str, Session]:
    return by_number(map(read, paths(folder)))


def sessions_in(folder: Path) -> dict[str, Session]:
    """Return the sessions of a replay, each from a folder named by its number."""
    return {place.name: scripts for place in sorted(folder.iterdir()) for scripts in _sessions(place).values()}


@dataclass(frozen=True)
class Other:
    """A run to compare with: another run, or a replay; floats are equal bit for bit, or up to a tolerance."""

    name: str
    sessions: dict[str, Session]
    bit_for_bit: bool = True


def page(run: ShownRun, *, trial: int | None = None, sight: Sight = ALL, other: Other | None = None) -> str:
    """Return the page of a run, or of one trial by its number in the run, from 1, as ``sight`` permits."""
    data = _Data(run, trial, sight)
    index = data.index(other)
    text = document(index, data.blocks.texts)
    if len(text.encode()) > PAGE_BYTES_MAX:
        raise ViewError(
            f"{run.folder}: the page would be larger than {PAGE_BYTES_MAX:,} bytes; show one trial by --trial"
        )
    return text


class _Data:
    """Collects the content of the page."""

    def __init__(self, run: ShownRun, trial: int | None, sight: Sight) -> None:
        self._run = run
        self._sight = sight
        self._deal = None if trial is None else f"deal-{trial}"
        self.blocks = Blocks()
        self._blobs = Blobs(self.blocks)
        self._room = _MESSAGES_BYTES_MAX
        known = {party for scripts in run.sessions.values() for party in scripts}
        if sight.party is not None and sight.party not in known:
            raise ViewError(f"{run.folder}: there is no transcript of {sight.party}'s")

    def index(self, other: Other | None) -> dict[str, Any]:
        """Return the page's first screen as data, with the numbers of the blocks that hold the rest."""
        everything = self._sight.party is None
        trials, places = self._trials(self._run.sessions, keep_digests=other is not None)
        if self._deal is not None and not trials:
            raise ViewError(
                f"{self._run.folder}: there is no trial {self._deal.removeprefix('deal-')} in its transcripts"
            )
        told = outcomes(self._run.folder, self._run.sweep) if everything else {}
        for one in trials:
            one.update(told.get(one["deal"], {}))
            if everything and not one.get("finished", True):
                one["record"] = sorted({*one["record"], "open"})
        against = None if other is None else self._against(other, places)
        game = GAMES[self._run.sweep.game]
        names = {one["deal"]: _name(one["deal"]) for one in trials}
        index = {
            "run": self._run.name,
            "as": self._sight.party,
            "parties": list(PARTIES),
            "levels": [
                {"name": level_name(level), "who": [party for party in PARTIES if CLEARANCE[party] >= level]}
                for level in sorted(set(CLEARANCE.values()))
            ],
            "trials": trials,
            "facts": self._facts(),
            "cells": cells_of(self._run.sweep) if everything else None,
            "headline": {
                "name": game.headline.title or game.headline.name,
                "text": f"{game.headline.head}, {game.headline.about}",
            }
            if everything and game.headline
            else None,
            "about": self._run.sweep.scenario.scenario.about if everything else "",
            "checked": checked(self._run.folder, self._run.scripts, places, names) if everything else None,
            "beside": against,
        }
        self._blobs.close()
        return index

    def _facts(self) -> list[tuple[str, str]]:
        if self._sight.party is not None:
            left_out = "what is above its clearance, what others recorded, outcomes, and what fairwall verify finds"
            return [("Seen by", f"the {self._sight.party}, from its own transcript"), ("Left out", left_out)]
        scenario = self._run.sweep.scenario.scenario
        return [("Scenario", scenario.name), ("Game", scenario.game), ("Seed", str(scenario.seed))]

    def _trials(self, sessions: Mapping[str, Session], *, keep_digests: bool) -> tuple[list[dict[str, Any]], Places]:
        found: list[tuple[str, Session, Reel]] = []
        for number, scripts in sessions.items():
            for reel in reels(scripts, self._run.captions, self._sight, self._blobs, self._deal):
                found.append((number, self._sight.session(scripts), reel))
        last = {reel.deal: number for number, _, reel in found}
        trials: list[dict[str, Any]] = []
        entries: list[tuple[str, str, int, Where]] = []
        for number, scripts, reel in found:
            name = _name(reel.deal) + ("" if last[reel.deal] == number else f"-{number}")
            entries += [(number, party, entry, Where(name, message)) for party, entry, message in reel.entries]
            trials.append(
                {
                    "id": name,
                    "deal": reel.deal,
                    "messages": len(reel.rows),
                    "refused": sum(row["kind"] == "refuses" for row in reel.rows),
                    "record": record_of(scripts) if last[reel.deal] == number else ["open"],
                    "blocks": self._written(reel, keep_digests=keep_digests),
                }
            )
        return sorted(trials, key=_in_order), Places(entries)

    def _written(self, reel: Reel, *, keep_digests: bool) -> tuple[int, list[int]] | None:
        """Put a trial's messages into blocks; None if the page has no room for them."""
        for row in () if keep_digests else reel.rows:
            del row["digest"]
        before = self.blocks.size
        rows, details = reel.write(self.blocks)
        self._room -= self.blocks.size - before
        if self._room >= 0:
            return rows, details
        self._room += self.blocks.size - before
        self.blocks.drop([rows, *details])
        return None

    def _against(self, other: Other, places: Places) -> dict[str, Any]:
        """Return another run's trials, and the first difference with its place."""
        others, _ = self._trials(other.sessions, keep_digests=True)
        found: dict[str, Any] = {"name": other.name, "trials": others, "difference": None}
        for (number, scripts), now in zip(self._run.sessions.items(), other.sessions.values(), strict=False):
            seen = self._sight.session(scripts)
            one = first_difference(seen, self._sight.session(now), bit_for_bit=other.bit_for_bit)
            if one is not None:
                at = places.at(number, one.party, one.entry) if one.entry is not None else None
                # The values may be of a field above the party's clearance.
                text = str(one) if self._sight.party is None else f"{one.party}, entry {one.entry}"
                found["difference"] = {"text": text, "at": at}
                break
        return found


def _name(deal: str) -> str:
    """Return a trial's name in addresses: its number in the run."""
    number = re.fullmatch(r"deal-(\d+)", deal)
    return number[1] if number else re.sub(r"[^\w-]", "-", deal) or "0"


def _in_order(trial: Mapping[str, Any]) -> tuple[int, str]:
    number = re.match(r"\d+", trial["id"])
    return (int(number[0]) if number else 0, trial["id"])
