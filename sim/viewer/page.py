"""The page of a run: its index with trials and findings, and blocks of messages."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwall.errors import UserError
from fairwall.rpc.identity import PARTIES
from sim.games import GAMES
from sim.games import read as read_sweep
from sim.games.game import Line
from sim.replay.differences import first_difference
from sim.replay.recorded import Session
from sim.report.columns import Measure
from sim.report.notation import setting
from sim.runs.trials import finished, read_trials, schedule
from sim.scenarios.sweep import Sweep
from sim.transcripts.boundary import CLEARANCE, level_name
from sim.transcripts.captions import Caption, shared
from sim.transcripts.captions import number as number_text
from sim.transcripts.files import FOLDER, Transcript, by_number, paths, read
from sim.verify.check import verify
from sim.verify.finding import NoRun, VerifyFinding
from sim.viewer.blocks import PAGE_BYTES_MAX, Blobs, Blocks
from sim.viewer.document import document
from sim.viewer.message_timeline import Places, Reel, Where, reels
from sim.viewer.visibility import ALL, Sight

_SHADES = 5
"""Number of shades of an outcome; the page's style has a colour for each."""


def cells_of(sweep: Sweep) -> list[str]:
    """Return the names of cells: the swept values, or the scenario's name if there are none."""
    return [
        ", ".join(f"{key.rpartition('.')[2]} {_shown(value)}" for key, value in cell.swept.items())
        or cell.scenario.scenario.name
        for cell in sweep.cells
    ]


def _shown(value: Any) -> str:
    return " and ".join(map(setting, value)) if isinstance(value, list | tuple) else setting(value)


def outcomes(folder: Path, sweep: Sweep) -> dict[str, dict[str, Any]]:
    """Return each trial's cell, number and outcome, by deal, and whether it was finished."""
    lines = finished(sweep, read_trials(folder / "trials.jsonl"))
    headline = GAMES[sweep.game].headline
    cells = {id(cell): place for place, cell in enumerate(sweep.cells)}
    return {
        f"deal-{position}": {
            "cell": cells[id(cell)],
            "trial": trial,
            "finished": position in lines,
            **_outcome(headline, lines.get(position, ())),
        }
        for cell, trial, position in schedule(sweep)
    }


def _outcome(headline: Measure[Line] | None, lines: Sequence[Line]) -> dict[str, Any]:
    """Return the largest of a trial's figures: a trial may have a line for each attack."""
    if headline is None or headline.scale is None:
        return {}
    least, most = headline.scale
    found = [line.get(headline.name) for line in lines]
    values = [value for value in found if isinstance(value, int | float) and math.isfinite(value)]
    if not values:
        return {}
    value = float(max(values))
    share = (value - least) / (most - least)
    return {"value": f"{number_text(value)}{headline.unit}", "step": min(max(int(_SHADES * share), 0), _SHADES - 1)}


def record_of(scripts: Mapping[str, Any] | Session) -> list[str]:
    """Return the gaps in a session's record: "open" if it breaks off, "digest only" if arrays lack bytes."""
    known = []
    if not all(script.is_whole for script in scripts.values()):
        known.append("open")
    if any(script.header is not None and script.header.record == "digest" for script in scripts.values()):
        known.append("digest only")
    return known


_ENTRY = re.compile(rf"{FOLDER}/([\w-]+)/([\w-]+)\.bin entry (\d+)")
_DEAL = re.compile(r"\bdeal-\d+\b")


def checked(folder: Path, scripts: Sequence[Transcript], places: Places, trials: Mapping[str, str]) -> dict[str, Any]:
    """Return a run's checks, except of its report, with each finding's message; ``trials`` has trial names by deal."""
    found = verify(folder, scripts=scripts, page=False)
    return {
        "findings": [
            {"check": one.check, "where": one.where, "text": one.text, "at": _at(one, places, trials)}
            for one in found.findings
        ],
        "notes": [*found.notes, "not checked here: whether report.html is what would be written now"],
        "messages": found.messages,
        "columns": found.columns,
    }


def _at(finding: VerifyFinding, places: Places, trials: Mapping[str, str]) -> Where | None:
    entry = _ENTRY.search(finding.where)
    if entry is not None:
        party, session, number = entry.groups()
        return places.at(session, party, int(number))
    deal = _DEAL.search(f"{finding.where} {finding.text}")
    return Where(trials[deal.group()], 1) if deal is not None and deal.group() in trials else None


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
