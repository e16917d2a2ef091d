"""A recorded run, opened for a replay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fairwall
from fairwall.errors import UserError
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.rpc.recorder import FORMATS_READ, MODES
from sim.games import read as read_sweep
from sim.runs.folder import RunFolder
from sim.runs.trials import key_of, read_trials, schedule, trial_key
from sim.scenarios.sweep import ScenarioError, Sweep
from sim.transcripts.calls import TranscriptCall, calls
from sim.transcripts.files import CallKey, Transcript, by_number, decode, paths, read
from sim.transcripts.methods import short

Session = dict[str, Transcript]
"""The transcripts of parties that played together, by party."""


class ReplayError(UserError):
    """A run that cannot be replayed, or not in the given way. Its text is one line with the reason."""


@dataclass(frozen=True)
class Recorded:
    """A recorded run: one session for each start of the parties.

    ``finished`` are the sessions without the messages of interrupted trials, and ``broken_off`` the numbers of those
    trials within the run, in order.
    """

    folder: Path
    run: str
    sweep: Sweep
    sessions: list[Session]
    finished: list[Session]
    broken_off: tuple[int, ...]

    @property
    def left_out(self) -> list[str]:
        """Notes on what is not compared, if anything."""
        which = ("trial " if len(self.broken_off) == 1 else "trials ") + ", ".join(map(str, self.broken_off))
        return [f"not compared: what was said in {which} before the game broke off there"] if self.broken_off else []


def open_run(folder: Path) -> Recorded:
    """Read a run's folder.

    Raises ReplayError if the folder holds no run or no recording, the recording is damaged or in another format, or the
    scenario can no longer be read.
    """
    if not (folder / "scenario.toml").is_file():
        raise ReplayError(
            f"{folder}: not a run's folder: it has no scenario.toml; name one that fairwall run printed, or latest"
        )
    scripts = [read(path) for path in paths(folder)]
    run = by = ""
    for script in scripts:
        path, by = script.path, script.versions.get("fairwall", "of no version")
        if script.header is not None and script.header.format not in FORMATS_READ:
            raise ReplayError(
                f"{path}: was recorded in format {script.header.format} by fairwall {by}; "
                f"this is fairwall {fairwall.__version__}, which reads {' and '.join(map(str, FORMATS_READ))}"
            )
        if script.header is None or script.problems:
            problem = script.problems[0]
            raise ReplayError(
                f"{path}: entry {problem.entry} {problem.text}; it was recorded by fairwall {by}, "
                f"this is {fairwall.__version__} (`fairwall verify` tells more)"
            )
        run = script.header.run
    if not scripts:
        raise ReplayError(f'{folder}: nothing was recorded: its scenario says record = "none", or it is an old run')
    try:
        sweep = read_sweep(str(folder / "scenario.toml"))
    except ScenarioError as error:
        raise ReplayError(
            f"{folder}: {error}; it was played by fairwall {by}, this is {fairwall.__version__}"
        ) from None
    name = folder.name if RunFolder(folder, run).parts() else run
    return _opened(folder, name, sweep, list(by_number(scripts).values()))


def _opened(folder: Path, run: str, sweep: Sweep, sessions: list[Session]) -> Recorded:
    """Separate interrupted trials from finished ones.

    How far an interrupted trial came is chance, and so is which parties were lost, and what the others received then.
    """
    elsewhere = _unfinished(folder, sweep)
    finished: list[Session] = []
    broken_off: set[str] = set()
    for session in reversed(sessions):
        dealt = dealt_in(session.values())
        broken = dealt & elsewhere
        if broken or not all(_heard_the_end(script) for party, script in session.items() if party != "referee"):
            session = {party: _cut(script, broken) for party, script in session.items()}
        finished.insert(0, session)
        broken_off |= broken
        # A trial that a later session dealt again was not finished before.
        elsewhere |= dealt
    numbers = tuple(number for _, _, number in schedule(sweep) if f"deal-{number}" in broken_off)
    return Recorded(folder, run, sweep, sessions, finished, numbers)


def _unfinished(folder: Path, sweep: Sweep) -> set[str]:
    """Return the deals of trials that ``trials.jsonl`` lacks."""
    there = {key_of(line, sweep.scenario.axes) for line in read_trials(folder / "trials.jsonl")}
    return {f"deal-{number}" for cell, trial, number in schedule(sweep) if trial_key(cell, trial) not in there}


def _heard_the_end(script: Transcript) -> bool:
    """Return whether a party was told that the run is over: one that was ended early may close its transcript too."""
    answers = (answer for call in calls(script) if short(call.method).startswith("Take") for answer in call.answers[:1])
    return any(
        getattr(decode(answer.method, False, script.data(answer)), "turn", None) == game.TURN_OVER for answer in answers
    )


def _cut(script: Transcript, deals: set[str]) -> Transcript:
    """Return a transcript cut off at the dealing of the first of these deals, or else unclosed."""
    taken = [call for call, deal, _ in deals_of(script) if deal.deal_id in deals]
    end = min((call.answered for call in taken), default=script.entries)
    begun: dict[CallKey, int] = {}
    for key, entry in (
        *((message.call, message.entry) for message in script.messages),
        *((key, ending.entry) for key, ending in script.endings.items()),
    ):
        begun.setdefault(key, entry)
    # The call that takes a deal may have begun before the end of the previous trial.
    gone = {call.key for call in taken} | {key for key, entry in begun.items() if entry > end}
    return replace(
        script,
        closed=False,
        messages=[message for message in script.messages if message.call not in gone],
        endings={key: ending for key, ending in script.endings.items() if key not in gone},
    )


def dealt_in(scripts: Iterable[Transcript]) -> set[str]:
    """Return the ids of the deals that these parties took."""
    return {deal.deal_id for script in scripts for _, deal, _ in deals_of(script)}


def deals_of(script: Transcript, kind: str = "") -> Iterator[tuple[TranscriptCall, Any, Iterator[Any]]]:
    """Yield a transcript's deals, of one kind or all: the call, the deal, and the messages that bring its arrays."""
    for call in calls(script):
        method = short(call.method)
        if method.startswith("Take") and method.endswith(f"{kind}Deal"):
            parts = (decode(call.method, False, script.data(message)) for message in call.answers)
            first = next(parts, None)
            if first is not None and first.WhichOneof("part") == "deal":
                yield call, first.deal, parts


def require_answers(recorded: Recorded, party: str) -> None:
    """Raise ReplayError if a party's recording lacks answers: some arrays were kept by digest only."""
    for session in recorded.sessions:
        script = session.get(party)
        if script is None or script.header is None:
            raise ReplayError(f"{recorded.folder}: there is no transcript of {party}'s")
        if script.header.record != MODES[0]:
            raise ReplayError(
                f'{script.path}: kept arrays only by digest (record = "{script.header.record}"): '
                "there are no answers to give again"
            )
        for message in script.messages:
            for _, size, digest in message.large:
                if message.is_received and not script.stores(digest):
                    raise ReplayError(f"{script.path}: entry {message.entry} kept {size} bytes by their digest alone")


def require_ours(recorded: Recorded, party: str | None = None) -> None:
    """Raise ReplayError if the party, or any, was an external program: a folder names no command to run here."""
    for other in RunFolder(recorded.folder, recorded.run).programs():
        if party in (None, other):
            rest = "" if party else "; each other party can be, by --party"
            raise ReplayError(
                f"{recorded.folder}: {other} was a program that is not fairwall's: cannot be replayed{rest}"
            )
