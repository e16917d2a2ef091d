"""The page that a run is filed as: the game's account of the run, in the frame that all games share."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from fairwall.errors import UserError
from fairwall.tables.people import LeftOut
from sim.games import GAMES, read
from sim.games.game import Line
from sim.report.cells import trials_id
from sim.report.notation import MISSING, number, setting, symbol
from sim.report.page import CellTrials, Frame, Page, render
from sim.report.tables import PageTable, PrintedColumn
from sim.runs.folder import RunFolder
from sim.runs.trials import is_part, read_trials, schedule, summarise
from sim.scenarios.sweep import Sweep

if TYPE_CHECKING:
    from sim.report.drawing import Figure

Played = tuple[Sweep, Sequence[Line]]
"""A run's sweep, and the lines of its trials."""

_TRIALS_LISTED = 1_000
"""Most trials that the page lists one by one; trials.jsonl has all."""

_NAMING = ("trial", "seed")
"""Keys that name the trial of a line."""


def write_report(folder: Path) -> Path:
    """Write ``report.html`` into a run's folder, and return its path. Raises what `rendered` raises."""
    page = folder / "report.html"
    page.write_text(rendered(folder), encoding="utf-8")
    return page


def rendered(folder: Path) -> str:
    """Return the page of a run: the same text for the same files and the same versions of fairwall and matplotlib.

    Every number in it comes from ``trials.jsonl`` and the scenario; the version, whether the run was played to its end,
    the programs and the confinement come from ``result.json``. Both may be missing if a run broke off.
    """
    sweep, trials, page = _told(folder)
    return render(page, _frame(folder, sweep, trials))


def _told(folder: Path) -> tuple[Sweep, Sequence[Line], Page]:
    sweep = read(str(folder / "scenario.toml"))
    trials = read_trials(folder / "trials.jsonl")
    return sweep, trials, GAMES[sweep.game].page(sweep, trials, summarise(sweep, trials))


def figures_of(folder: Path, name: str | None = None) -> dict[str, Figure]:
    """Return the figures of a run's report by name, or one: its number may be left out if it is the only such name."""
    all_of = _told(folder)[2].figures
    if name is None or name in all_of:
        return {key: figure for key, figure in all_of.items() if name in (None, key)}
    meant = [key for key in all_of if re.fullmatch(rf"{re.escape(name)}-\d+", key)]
    if len(meant) == 1:
        return {meant[0]: all_of[meant[0]]}
    names = ", ".join(meant or all_of) or "none: too little was played"
    raise UserError(f"{folder}: {'several figures are' if meant else 'no figure is'} called {name!r}: there is {names}")


def frontier_page(folder: Path, sweep: Sweep, trials: Sequence[Line], page: Page) -> str:
    """Return the page of a run's front: the game's account in the run's frame."""
    frame = _frame(folder, sweep, trials)
    return render(page, replace(frame, name=f"{frame.name}: the front"))


def compared_page(runs: Sequence[tuple[Path, Played]], file: Path, page: Page) -> str:
    """Return the page that compares runs with the published figures of a file."""
    frame, digest = together(runs), hashlib.sha256(file.read_bytes()).hexdigest()
    provenance = (*frame.provenance, (f"SHA-256 of {file.name}", digest))
    return render(page, replace(frame, beside=file.name, provenance=provenance))


def together(runs: Sequence[tuple[Path, Played]]) -> Frame:
    """Return the frame of several runs on one page."""
    frames = [_frame(folder, *run) for folder, run in runs]
    return replace(
        frames[0],
        name=", ".join(dict.fromkeys(frame.name for frame in frames)),
        about=frames[0].about if len(frames) == 1 else "",
        finished=sum(frame.finished for frame in frames),
        planned=sum(frame.planned for frame in frames),
        complete=all(frame.complete for frame in frames),
        left_out=tuple(dict.fromkeys(one for frame in frames for one in frame.left_out)),
        provenance=tuple(row for frame in frames for row in frame.provenance),
        cells=frames[0].cells if len(frames) == 1 else (),
    )


def _frame(folder: Path, sweep: Sweep, trials: Sequence[Line]) -> Frame:
    path = folder / "trials.jsonl"
    result = folder / "result.json"
    recorded = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else MISSING
    scenario, axes = sweep.scenario.scenario, list(sweep.scenario.axes)
    # A game may write several lines per trial.
    finished = len({json.dumps([trial[key] for key in ("trial", *axes)]) for trial in trials})
    shard = RunFolder(folder, folder.name).shard()
    planned = sum(1 for _ in shard.turns(schedule(sweep)))
    programs = recorded.get("programs", {})
    left_out = " ".join(f"{LeftOut(**rows)}." for rows in recorded.get("left_out", ()))
    return Frame(
        name=scenario.name,
        about=scenario.about,
        finished=finished,
        planned=planned,
        complete=bool(recorded.get("complete")) and finished == planned,
        left_out=[("Rows that were left out", left_out)] if left_out else [],
        secrecy=tuple(_secrecy(sweep, programs)),
        confinement=tuple(_confinement(recorded.get("confinement", ()), programs)),
        provenance=_provenance(sweep, finished, planned, recorded, digest),
        cells=tuple(_trials_by_cell(sweep, trials)),
    )


def _trials_by_cell(sweep: Sweep, trials: Sequence[Mapping[str, Any]]) -> Iterator[CellTrials]:
    """Yield each cell's trials, with the numbers in which they differ."""
    if len(trials) > _TRIALS_LISTED:
        return
    for cell in sweep.cells:
        own = [trial for trial in trials if is_part(trial, cell.swept)]
        if own:
            title = ", ".join(f"{symbol(key)} = {setting(value)}" for key, value in cell.swept.items())
            keys = [key for key in own[0] if key in _NAMING or _varies([trial.get(key) for trial in own])]
            columns = [PrintedColumn(key.replace("_", " "), [_written(trial[key]) for trial in own]) for key in keys]
            yield CellTrials(trials_id(cell.swept), title or "all trials", PageTable(columns))


def _varies(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) for value in values) and len(set(values)) > 1


def _written(value: Any) -> str:
    return number(value, 4) if isinstance(value, float) else str(value)


def _provenance(
    sweep: Sweep, finished: int, planned: int, recorded: dict[str, Any], digest: str
) -> tuple[tuple[str, str], ...]:
    scenario = sweep.scenario.scenario
    return (
        ("Scenario", scenario.name),
        ("Scenario digest (without its seed)", sweep.digest),
        ("Seed", str(scenario.seed)),
        ("Secret", f"{scenario.secret}: {_SECRETS[scenario.secret]}"),
        *((f"Program in {party}'s place", command) for party, command in sorted(recorded.get("programs", {}).items())),
        *((f"Plug-in {one['name']}", _plugged(one)) for one in recorded.get("plugins", ())),
        *((f"Not finished, trial {one['trial']}", one["why"]) for one in recorded.get("failures", ())),
        *([("Shard", recorded["shard"])] if "shard" in recorded else []),
        ("Trials", f"{finished:,} of {planned:,}"),
        ("SHA-256 of trials.jsonl", digest),
        ("fairwall", str(recorded.get("version", "version not recorded"))),
        ("Figures drawn with", f"matplotlib {version('matplotlib')}"),
    )


def _plugged(one: Mapping[str, str]) -> str:
    """Return a plug-in's origin; a mechanism is marked as not proved here."""
    proved = "; not proved here" if one["kind"] == "mechanisms" else ""
    return f"{one['kind']}, {one['source']}, SHA-256 {one['digest']}{proved}"


_SECRETS = {
    "seed": "cards, seeds and noise follow from the seed alone",
    "random": "cards, seeds and noise follow from the seed and 32 random bytes, which the run's folder keeps",
}
"""The source of every draw of a run, by ``scenario.secret``."""


def _secrecy(sweep: Sweep, programs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield whether a party could have recomputed what it was not dealt, and what external programs could do."""
    scenario = sweep.scenario.scenario
    if scenario.secret == "seed":  # noqa: S105 - the name of a mode
        yield (
            "Draws that a party could recompute",
            "Everything was drawn from the seed alone. A party that tried all small seeds against its own would know "
            "all cards and all seeded noise. Our parties do not try. scenario.secret = random prevents it.",
        )
    if programs:
        yield (
            f"Programs that are not fairwall's: {_listed(sorted(programs))}",
            "What such a program remembers from trial to trial, or knows of a public table, nothing here limits; cells "
            "of a sweep share their test sets. One that is not confined, and runs as the same user, can read the run's "
            "folder.",
        )


def _confinement(
    starts: Sequence[Mapping[str, Sequence[Mapping[str, Any]]]], programs: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the active layers by party, and a warning about inactive ones, as terms with explanations.

    ``starts`` are the layers by party for each start of the parties. The layers of external programs are their own
    claims.
    """
    active: dict[str, list[str]] = {}
    reasons: dict[tuple[str, str], list[str]] = {}
    for party in dict.fromkeys(party for start in starts for party in start):
        layers = [layer for start in starts for layer in start.get(party, ())]
        missing = dict.fromkeys((layer["name"], layer["why_not"]) for layer in layers if not layer["active"])
        for which in missing:
            reasons.setdefault(which, []).append(party)
        names = dict.fromkeys(layer["name"] for layer in layers)
        own = [name for name in names if name not in {name for name, _ in missing}]
        claimed = ", as the program itself says" if party in programs else ""
        active.setdefault((_listed(own) or "no layer") + claimed, []).append(party)
    if active:
        text = " ".join(f"Around {_listed(parties)}: {names}." for names, parties in active.items())
        again = " Parties were started more than once: these were active each time." if len(starts) > 1 else ""
        yield "Layers of confinement that were active", f"{text}{again} What each stops: docs/confinement.md."
    alike: dict[tuple[str, str], list[str]] = {}
    for (name, why_not), parties in reasons.items():
        alike.setdefault((_listed(parties), why_not), []).append(name)
    if alike:
        walls = (f"{_listed(names)} around {parties} ({why_not})" for (parties, why_not), names in alike.items())
        # A reason may name a path, which must fit a narrow page.
        breakable = escape(f"{'; '.join(walls)}.").replace("/", Markup("/<wbr>"))
        yield "Warning: layers of confinement that were not active", breakable


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
