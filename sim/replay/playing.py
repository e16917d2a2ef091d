"""Replays a recorded run: the whole game from its seeds, or one party alone, answered from its transcript."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from compliance.mechanisms import MECHANISMS
from fairwall.plugins import require
from fairwall.rpc.kernels import left_to_choose
from sim.games.table import TrialFailed
from sim.play import runner
from sim.play.launch import PartyDied, Plugged
from sim.play.session import play_turns, require_layers
from sim.replay.alone import Layers, play_alone
from sim.replay.differences import Difference, first_difference
from sim.replay.recorded import Recorded, ReplayError, Session, dealt_in, require_answers, require_ours
from sim.runs.folder import RunFolder
from sim.runs.trials import alike, finished, read_trials, schedule
from sim.scenarios.sweep import Cell, Sweep
from sim.transcripts.files import FOLDER, Transcript, paths, read
from sim.transcripts.findings import TOLERANCE


@dataclass(frozen=True)
class Replayed:
    """The result of a replay: trials played, recorded messages compared, and the first difference, if any.

    If not ``bit_for_bit``, floats were compared up to ``TOLERANCE``. ``notes`` say why, and what was not compared.
    """

    trials: int
    messages: int
    bit_for_bit: bool
    notes: tuple[str, ...]
    difference: Difference | None


def again(recorded: Recorded, on_trial: Callable[[int], None] = lambda _: None, keep: Path | None = None) -> Replayed:
    """Play the whole run again, and compare all that the parties send and receive.

    Parties that were started more than once, because a run was resumed, are started as often, for the trials that they
    finished. No faults are injected. ``on_trial`` gets the number of trials played. The folder ``keep`` gets the new
    transcripts, each session's in a folder named by its number.
    """
    require_ours(recorded)
    require(RunFolder(recorded.folder, recorded.run).plugins())
    RunFolder(recorded.folder, recorded.run).secret(recorded.sweep)
    runner.check(recorded.sweep)
    played, messages = 0, 0
    notes: list[str] = []
    bit_for_bit = True
    difference = None

    def tell(done: int) -> None:
        on_trial(played + done)

    for session in recorded.finished:
        turns = _turns(recorded, session)
        if not turns:
            continue
        with _place(keep, session) as place:
            folder = new_folder(place, recorded, session)
            _give_draws(recorded, session, folder)
            failure = _play(recorded.sweep, folder, turns, tell)
            now = {path.parent.name: read(path) for path in paths(folder.path)}
            session_notes, same_bits = circumstances(session, now)
            notes += [note for note in session_notes if note not in notes]
            bit_for_bit &= same_bits
            difference = first_difference(session, now, bit_for_bit=same_bits)
            if difference is None and failure is not None and all(script.closed for script in session.values()):
                by = "".join(f" ({note})" for note in notes)
                raise ReplayError(f"{recorded.folder}: cannot be played to its end any more{by}: {failure}")
            difference = difference or _rescored(recorded, folder.path, bit_for_bit=same_bits)
        played += len(turns)
        messages += sum(len(script.messages) for script in session.values())
        if difference is not None:
            break
    return Replayed(played, messages, bit_for_bit, (*notes, *recorded.left_out), difference)


def _place(keep: Path | None, session: Session) -> AbstractContextManager[str]:
    if keep is None:
        return tempfile.TemporaryDirectory(prefix="fairwall-replay-")
    (number,) = {script.number for script in session.values()}
    (keep / number).mkdir()
    return nullcontext(str(keep / number))


def alone(recorded: Recorded, party: str) -> Replayed:
    """Run one live party against its recorded messages.

    Raises ReplayError; ConfinementMissing if a layer that the scenario demands is not active; PartyDied if the party
    ends early without a difference before that.
    """
    require_ours(recorded, party)
    require_answers(recorded, party)
    require(RunFolder(recorded.folder, recorded.run).plugins())
    trials, messages = 0, 0
    notes: list[str] = []
    bit_for_bit = True
    difference = None
    for session in recorded.finished:
        script = session[party]
        with tempfile.TemporaryDirectory(prefix="fairwall-replay-") as place:
            folder = new_folder(place, recorded, session)
            if party == "compliance":
                _give_draws(recorded, session, folder)
            failure = play_alone(script, folder, demand(recorded), plugged=Plugged.of(recorded.sweep))
            now = {path.parent.name: read(path) for path in paths(folder.path)}
            session_notes, same_bits = circumstances({party: script}, now)
            difference = first_difference({party: script}, now, bit_for_bit=same_bits)
        notes += [note for note in session_notes if note not in notes]
        bit_for_bit &= same_bits
        trials += len(dealt_in([script]))
        messages += len(script.messages)
        if difference is not None:
            break
        if failure is not None and script.closed:
            raise PartyDied(failure)
    return Replayed(trials, messages, bit_for_bit, (*notes, *recorded.left_out), difference)


def _play(
    sweep: Sweep, folder: RunFolder, turns: Sequence[tuple[Cell, int, int]], on_trial: Callable[[int], None]
) -> Exception | None:
    """Play trials and return a failure instead of raising it: the recording shows more than the failure does."""
    try:
        play_turns(sweep, folder, turns, on_trial)
    except (TrialFailed, PartyDied) as error:
        return error
    return None


def _turns(recorded: Recorded, session: Session) -> list[tuple[Cell, int, int]]:
    dealt = dealt_in(session.values())
    turns = [turn for turn in schedule(recorded.sweep) if f"deal-{turn[2]}" in dealt]
    if len(turns) < len(dealt):
        raise ReplayError(
            f"{recorded.folder}: its scenario.toml has fewer trials than were recorded: bring the old one back"
        )
    return turns


def _give_draws(recorded: Recorded, session: Session, folder: RunFolder) -> None:
    """Copy compliance's log of its system draws into the new folder; ReplayError if a needed log is missing."""
    (number,) = {script.number for script in session.values()}
    log, again = (
        place / FOLDER / "compliance" / f"{name}.draws.jsonl"
        for place, name in ((recorded.folder, number), (folder.path, "1"))
    )
    if log.exists():
        again.parent.mkdir(parents=True)
        shutil.copyfile(log, again)
    elif any(_draws(cell) for cell in recorded.sweep.cells):
        raise ReplayError(f"{log}: is missing, and the noise was the operating system's: it cannot be drawn again")


def _draws(cell: Cell) -> bool:
    """Return whether compliance draws noise from the operating system in this cell."""
    policy = cell.scenario.compliance
    return (
        policy.noise == "system"
        and MECHANISMS[policy.mechanism].guarantee != "none"
        and cell.scenario.epsilon < math.inf
    )


def _rescored(recorded: Recorded, place: Path, *, bit_for_bit: bool) -> Difference | None:
    """Compare the lines of ``trials.jsonl``, except for each trial's seconds."""
    sweep = recorded.sweep
    before, now = (finished(sweep, read_trials(folder / "trials.jsonl")) for folder in (recorded.folder, place))
    # Percentages and their means have 100 times the absolute tolerance.
    tolerances = (0.0, 0.0) if bit_for_bit else (TOLERANCE, 100 * TOLERANCE)
    for number, lines in now.items():
        for old, new in zip(before.get(number, ()), lines, strict=False):
            for key in old.keys() & new.keys() - {"seconds"}:
                if not alike(old[key], new[key], *tolerances):
                    what = f"trials.jsonl, trial {new['trial']}, {key}"
                    before_that, by_now = (json.dumps(line[key])[:48] for line in (old, new))
                    return Difference("referee", None, what, before_that, by_now, is_sent=True)
    return None


def demand(recorded: Recorded) -> Callable[[Layers], None]:
    """Return a check that a single party has the confinement that the scenario demands."""
    return lambda layers: require_layers(recorded.sweep, layers)


def new_folder(place: str, recorded: Recorded, session: Session) -> RunFolder:
    """Create a folder for the new recording, whose run has the same name and key as the session's."""
    (run, *_) = {script.header.run for script in session.values() if script.header is not None}
    folder = RunFolder(Path(place), run)
    folder.logs.mkdir()
    key = RunFolder(recorded.folder, recorded.run).key_of(run)
    if key:
        folder.keep(key)
    return folder


def circumstances(recorded: Mapping[str, Transcript], now: Mapping[str, Transcript]) -> tuple[list[str], bool]:
    """Return what the game ran on then and runs on now, where these differ, and whether the numbers have the same bits.

    They have if all versions but fairwall's are the same, and fixed kernels computed the numbers both times.
    """
    changes: dict[str, tuple[str, str]] = {}
    loose: dict[str, None] = {}
    for party in recorded.keys() & now.keys():
        then, today = recorded[party], now[party]
        if not then.numerics:
            loose["what computed the numbers was not recorded"] = None
        for before, after in ((then.versions, today.versions), (then.numerics, today.numerics)):
            changes |= {
                name: (before[name], after[name])
                for name in sorted(before.keys() & after.keys())
                if before[name] != after[name]
            }
        for when, script in (("recorded", then), ("played", today)):
            left = left_to_choose(script.numerics)
            if "processor" in left:
                loose[f"{when} where there are no fixed kernels: {left['processor']}"] = None
            else:
                loose |= dict.fromkeys(f"{when} without fixed kernels: {name} {value}" for name, value in left.items())
    notes = [f"recorded with {name} {old}, this is {new}" for name, (old, new) in changes.items()] + sorted(loose)
    same_bits = not loose and not changes.keys() - {"fairwall"}
    if not same_bits:
        notes.append(f"so floats are compared up to {TOLERANCE:g} of the larger one, or of 1")
    return notes, same_bits
