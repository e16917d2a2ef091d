"""``fairwall replay RUN``: a recorded game, played again.

The whole of it, from the seeds that its scenario holds; or one party alone, whose counterparts answer from its own
transcript (`sim.ghosts`); or the developer with another decoder on the answers already given. What differs is named by
the first message that does (`sim.differences`).
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import fairwall
from compliance.mechanisms import MECHANISMS
from developer.reveal import STRATEGIES
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.rpc.arrays import from_message
from fairwall.rpc.recorder import FORMAT, MODES
from fairwall.rpc.turns import collect
from fairwall.wire.metrics import name_of
from sim import runner
from sim.differences import TOLERANCE, Call, Difference, calls, differences, first_difference, short
from sim.ghosts import Layers, play_alone
from sim.launch import PartyDied
from sim.plan import Cell, Plan, ScenarioError, at_replay_size, shipped
from sim.plan import read as read_plan
from sim.results import RunFolder, read_trials, schedule
from sim.scenario import plain
from sim.scoring import RevealScore, score
from sim.table import TrialFailed
from sim.transcripts import FOLDER, CallKey, Transcript, decode, paths, read
from sim.view import pace, watch

Session = dict[str, Transcript]
"""The transcripts of parties that played together, by party."""


class ReplayError(ValueError):
    """A run that cannot be replayed, or not so. Its text is one line that says why."""


@dataclass(frozen=True)
class Recorded:
    """A run as it was recorded.

    Parameters
    ----------
    folder : Path
    run : str
        The run's id.
    plan : Plan
    sessions : list of dict
        One for each time that parties were started.
    finished : list of dict
        The same, without what was said in a trial until it was broken off.
    broken_off : tuple of int
        The numbers of those trials within the run, in order.
    """

    folder: Path
    run: str
    plan: Plan
    sessions: list[Session]
    finished: list[Session]
    broken_off: tuple[int, ...]

    @property
    def left_out(self) -> list[str]:
        """Say what is not compared, if anything is not."""
        which = ("trial " if len(self.broken_off) == 1 else "trials ") + ", ".join(map(str, self.broken_off))
        return [f"not compared: what was said in {which} before the game broke off there"] if self.broken_off else []


@dataclass(frozen=True)
class Replayed:
    """What came of playing again.

    Parameters
    ----------
    trials, messages : int
        How many were played, and how many recorded messages were compared.
    bit_for_bit : bool
        Whether floats were compared so; else up to ``TOLERANCE``, for the reasons in ``notes``.
    notes : tuple of str
        These, and what was not compared.
    difference : Difference or None
        The first one.
    """

    trials: int
    messages: int
    bit_for_bit: bool
    notes: tuple[str, ...]
    difference: Difference | None


@dataclass(frozen=True)
class Decoded:
    """What a decoder made of a trial's recorded answers, beside what the recorded one did, and no query at all."""

    deal_id: str
    strategy: str
    queries: int
    epsilon: float
    leakage: float
    baseline_leakage: float
    recorded_decoder: str
    recorded_leakage: float


def show(run: str, *, party: str | None, decoder: str | None, speed: float | None, step: bool, as_json: bool) -> None:
    """Do what the command line asks, and end with status 1 where something differs.

    Parameters
    ----------
    run : str
        A run's folder, or the name of a shipped scenario, which is first played at its size for replays.
    party, decoder : str, optional
        Whom to run alone; which decoder to try.
    speed : float, optional
        How many messages a second to show, without playing.
    step : bool
        Whether to show the next message on Enter.
    as_json : bool
    """
    with tempfile.TemporaryDirectory(prefix="fairwall-replay-") as place:
        named = run in shipped() and not Path(run).is_dir()
        recorded = open_run(_at_replay_size(run, Path(place)) if named else Path(run))
        if step or speed is not None:
            # Nobody watches where there is no terminal.
            speed, step = (speed, step) if sys.stdout.isatty() else (None, False)
            watch(recorded.sessions, pace(speed=speed, step=step))
        elif decoder is not None:
            _show_decoded(decoder, decoded(recorded, decoder), as_json=as_json)
        elif party is not None:
            _show_replayed(recorded, party, alone(recorded, party), as_json=as_json)
        else:
            total = sum(len(_dealt(session.values())) for session in recorded.finished)
            hidden = not sys.stderr.isatty()
            with Progress(console=Console(stderr=True), transient=True, disable=hidden) as progress:
                task = progress.add_task(f"{recorded.run}: trials", total=total)
                found = again(recorded, lambda played: progress.update(task, completed=played))
            _show_replayed(recorded, None, found, as_json=as_json)


def _show_replayed(recorded: Recorded, party: str | None, found: Replayed, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"run": recorded.run, "party": party, "same": found.difference is None, **asdict(found)}))
    else:
        for note in found.notes:
            typer.echo(f"note: {note}")
        who = f"{party} alone, " if party else ""
        typer.echo(f"{recorded.run}: {who}{found.trials} trials, {found.messages} messages: {_outcome(found)}")
    if found.difference is not None:
        raise typer.Exit(1)


def _outcome(found: Replayed) -> str:
    if found.difference is not None:
        return f"the first that differs is\n{found.difference}"
    return "the same bit for bit" if found.bit_for_bit else f"the same, floats up to {TOLERANCE:g}"


def _show_decoded(decoder: str, trials: Sequence[Decoded], *, as_json: bool) -> None:
    means = {
        key: float(np.mean([getattr(trial, key) for trial in trials])) if trials else None
        for key in ("leakage", "baseline_leakage", "recorded_leakage")
    }
    if as_json:
        lines = [asdict(trial) | {"epsilon": plain(trial.epsilon)} for trial in trials]
        typer.echo(json.dumps({"decoder": decoder, **means, "trials": lines}, allow_nan=False))
        return
    table = Table("trial", "strategy", "queries", "ε", f"leakage, {decoder}", "no query", "as recorded")
    for trial in trials:
        as_recorded = f"{trial.recorded_leakage:.1f} {trial.recorded_decoder}"
        numbers = (f"{trial.leakage:.1f}", f"{trial.baseline_leakage:.1f}", as_recorded)
        table.add_row(trial.deal_id, trial.strategy, str(trial.queries), f"{trial.epsilon:g}", *numbers)
    table.add_row("mean", "", "", "", *(f"{mean:.1f}" for mean in means.values() if mean is not None))
    Console(highlight=False).print(table)


def open_run(folder: Path) -> Recorded:
    """Read a run's folder.

    Raises
    ------
    ReplayError
        If it is no run's, nothing was recorded, what was is damaged or written in another format, or its scenario is
        none any more.
    OSError
        If a file cannot be read.
    """
    if not (folder / "scenario.toml").is_file():
        raise ReplayError(f"{folder}: not a run's folder: it has no scenario.toml")
    sessions: dict[str, Session] = {}
    run = by = ""
    for path in paths(folder):
        script = read(path)
        if script.header is not None and script.header.format != FORMAT:
            raise ReplayError(
                f"{path}: was recorded in format {script.header.format} by fairwall {_version(script)}; "
                f"this is fairwall {fairwall.__version__}, which reads format {FORMAT}"
            )
        if script.header is None or script.problems:
            problem = script.problems[0]
            raise ReplayError(
                f"{path}: entry {problem.entry} {problem.text}; it was recorded by fairwall {_version(script)}, "
                f"this is {fairwall.__version__} (`fairwall verify` tells more)"
            )
        sessions.setdefault(script.number, {})[script.party] = script
        run, by = script.header.run, _version(script)
    if not sessions:
        raise ReplayError(f'{folder}: nothing was recorded: its scenario says record = "none", or it is an old run')
    try:
        plan = read_plan(str(folder / "scenario.toml"))
    except ScenarioError as error:
        raise ReplayError(
            f"{folder}: {error}; it was played by fairwall {by}, this is {fairwall.__version__}"
        ) from None
    return _opened(folder, run, plan, list(sessions.values()))


def _opened(folder: Path, run: str, plan: Plan, sessions: list[Session]) -> Recorded:
    """Tell the trials that were broken off from those that were finished.

    How far a trial comes that a fault or a signal ends is chance, and so is who is lost, and hears what, because of it.
    """
    elsewhere = _unfinished(folder, plan)
    finished: list[Session] = []
    broken_off: set[str] = set()
    for session in reversed(sessions):
        dealt = _dealt(session.values())
        broken = dealt & elsewhere
        if broken or not all(_heard_the_end(script) for party, script in session.items() if party != "referee"):
            session = {party: _cut(script, broken) for party, script in session.items()}
        finished.insert(0, session)
        broken_off |= broken
        # What a later session dealt again was not finished before.
        elsewhere |= dealt
    numbers = tuple(number for _, _, number in schedule(plan) if f"deal-{number}" in broken_off)
    return Recorded(folder, run, plan, sessions, finished, numbers)


def _unfinished(folder: Path, plan: Plan) -> set[str]:
    """Name the deals of trials that ``trials.jsonl`` does not have."""
    path = folder / "trials.jsonl"
    of = ("trial", "seed", *plan.scenario.axes)
    lines = {json.dumps([line.get(key) for key in of]) for line in (read_trials(path) if path.exists() else [])}
    return {
        f"deal-{number}"
        for cell, trial, number in schedule(plan)
        if json.dumps([trial, cell.scenario.scenario.seed + trial, *cell.swept.values()]) not in lines
    }


def _heard_the_end(script: Transcript) -> bool:
    """Whether a party was told that the run is over: else it was ended, and may have written its own end even so."""
    answers = (answer for call in calls(script) if short(call.method).startswith("Take") for answer in call.answers[:1])
    return any(
        getattr(decode(answer.method, False, script.data(answer)), "turn", None) == game.TURN_OVER for answer in answers
    )


def _cut(script: Transcript, deals: set[str]) -> Transcript:
    """Give a transcript that breaks off where the first of some deals was dealt, or else at its end."""
    taken = [call for call, deal, _ in _deals(script) if deal.deal_id in deals]
    end = min((call.answered for call in taken), default=script.entries)
    begun: dict[CallKey, int] = {}
    for key, entry in (
        *((message.call, message.entry) for message in script.messages),
        *((key, ending.entry) for key, ending in script.endings.items()),
    ):
        begun.setdefault(key, entry)
    # A call for the deal may have begun before what ended the trial before it.
    gone = {call.key for call in taken} | {key for key, entry in begun.items() if entry > end}
    return replace(
        script,
        closed=False,
        messages=[message for message in script.messages if message.call not in gone],
        endings={key: ending for key, ending in script.endings.items() if key not in gone},
    )


def again(recorded: Recorded, on_trial: Callable[[int], None] = lambda _: None) -> Replayed:
    """Play the whole run again, and compare what every party sends and receives.

    Parties that were started more than once, for a run that was gone on with, are started as often, for the trials
    that they finished. Nothing goes wrong on purpose.

    Parameters
    ----------
    recorded : Recorded
    on_trial : callable
        Told how many trials have been played.

    Raises
    ------
    ReplayError
        If it cannot be played to its end, and nothing that was said until then differs.
    DealError, DataError
        If its data are not what they were, or not at hand.
    """
    runner.check(recorded.plan)
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
        with tempfile.TemporaryDirectory(prefix="fairwall-replay-") as place:
            folder = _folder(place, recorded.run)
            _give_draws(recorded, session, folder)
            failure = _play(recorded.plan, folder, turns, tell)
            now = {path.parent.name: read(path) for path in paths(folder.path)}
            session_notes, same_machine = _circumstances(session, now)
            notes += [note for note in session_notes if note not in notes]
            bit_for_bit &= same_machine
            difference = first_difference(session, now, bit_for_bit=same_machine)
            if difference is None and failure is not None and all(script.closed for script in session.values()):
                by = "".join(f" ({note})" for note in notes)
                raise ReplayError(f"{recorded.folder}: cannot be played to its end any more{by}: {failure}")
            difference = difference or _rescored(recorded, folder.path, bit_for_bit=same_machine)
        played += len(turns)
        messages += sum(len(script.messages) for script in session.values())
        if difference is not None:
            break
    return Replayed(played, messages, bit_for_bit, (*notes, *recorded.left_out), difference)


def alone(recorded: Recorded, party: str) -> Replayed:
    """Run one party alone, live: the others answer it, and call it, as its transcript has it.

    Raises
    ------
    ReplayError
    ConfinementMissing
        If a layer is not active around it that the scenario demands.
    PartyDied
        If it ends early, and nothing that it said until then differs.
    """
    _require_answers(recorded, party)
    trials, messages = 0, 0
    notes: list[str] = []
    bit_for_bit = True
    difference = None
    for session in recorded.finished:
        script = session[party]
        with tempfile.TemporaryDirectory(prefix="fairwall-replay-") as place:
            folder = _folder(place, recorded.run)
            if party == "compliance":
                _give_draws(recorded, session, folder)
            failure = play_alone(script, folder, _demand(recorded))
            now = {path.parent.name: read(path) for path in paths(folder.path)}
            session_notes, same_machine = _circumstances({party: script}, now)
            difference = first_difference({party: script}, now, bit_for_bit=same_machine)
        notes += [note for note in session_notes if note not in notes]
        bit_for_bit &= same_machine
        trials += len(_dealt([script]))
        messages += len(script.messages)
        if difference is not None:
            break
        if failure is not None and script.closed:
            raise PartyDied(failure)
    return Replayed(trials, messages, bit_for_bit, (*notes, *recorded.left_out), difference)


def decoded(recorded: Recorded, decoder: str) -> list[Decoded]:
    """Run the developer alone with another decoder, on the answers already given: what could have been learned.

    There is no compliance process, and nothing is charged.

    Returns
    -------
    list of Decoded
        One a trial.

    Raises
    ------
    ReplayError
        If the strategy takes no such decoder, or the answers are not all in the log: it was kept by digest, was broken
        off, or the strategy asks other questions with this decoder.
    ConfinementMissing
        If a layer is not active around the developer that the scenario demands.
    PartyDied
        If the developer fails.
    """
    if recorded.plan.scenario.scenario.game != "reveal":
        raise ReplayError(f"{recorded.folder}: the inference game has no decoder; --decoder is for the reveal game")
    _require_answers(recorded, "developer")
    found = []
    for session in recorded.finished:
        script = session["developer"]
        deals = {deal.deal_id: deal for _, deal, _ in _deals(script, "Developer")}
        for deal in deals.values():
            allowed = STRATEGIES[deal.strategy].decoders
            if decoder not in allowed:
                works = f"works with {' or '.join(allowed)}" if allowed else "reads the answers itself"
                raise ReplayError(f"--decoder: strategy {deal.strategy} {works}, not with {decoder!r}")
        told = _secrets(recorded, session)
        with tempfile.TemporaryDirectory(prefix="fairwall-replay-") as place:
            folder = _folder(place, recorded.run)
            failure = play_alone(script, folder, _demand(recorded), lambda answer: _with_decoder(answer, decoder))
            (now,) = (read(path) for path in paths(folder.path))
            same_machine = _circumstances(session, {"developer": now})[1]
            for one in differences(script, now, bit_for_bit=same_machine):
                if one.is_sent and one.server == "compliance":
                    raise ReplayError(
                        f"--decoder: these answers are not in the log: with {decoder} the developer asks other "
                        f"questions ({one})"
                    )
            before, after = _guesses(script), _guesses(now)
        for deal_id, guess in before.items():
            if deal_id not in after:
                raise PartyDied(failure or "developer did not submit its guess")
            deal = deals[deal_id]
            scores = [_score(deal, told[deal_id], submitted) for submitted in (after[deal_id], guess)]
            found.append(
                Decoded(
                    deal_id=deal_id,
                    strategy=deal.strategy,
                    queries=guess.queries,
                    epsilon=deal.epsilon,
                    leakage=scores[0].leakage,
                    baseline_leakage=scores[0].baseline_leakage,
                    recorded_decoder=deal.decoder,
                    recorded_leakage=scores[1].leakage,
                )
            )
    return found


def _at_replay_size(name: str, place: Path) -> Path:
    """Play a shipped scenario as small as it says for replays, in a folder, and give the run's own.

    Raises
    ------
    TrialFailed, PartyDied, DealError, DataError
    """
    plan = at_replay_size(read_plan(name))
    runner.check(plan)
    folder = RunFolder.create(place, plan.scenario.scenario.name)
    return runner.play(plan, folder, lambda _: None).folder


def _play(
    plan: Plan, folder: RunFolder, turns: Sequence[tuple[Cell, int, int]], on_trial: Callable[[int], None]
) -> Exception | None:
    """Play some trials; what was recorded of them tells more than how they failed."""
    try:
        runner.play_turns(plan, folder, turns, on_trial)
    except (TrialFailed, PartyDied) as error:
        return error
    return None


def _demand(recorded: Recorded) -> Callable[[Layers], None]:
    """Ask of a party alone what the scenario demands of all."""
    return lambda layers: runner.require_layers(recorded.plan, layers)


def _folder(place: str, run: str) -> RunFolder:
    folder = RunFolder(Path(place), run)
    folder.logs.mkdir()
    return folder


def _turns(recorded: Recorded, session: Session) -> list[tuple[Cell, int, int]]:
    """List the trials of a session as they are scheduled."""
    dealt = _dealt(session.values())
    turns = [turn for turn in schedule(recorded.plan) if f"deal-{turn[2]}" in dealt]
    if len(turns) < len(dealt):
        raise ReplayError(f"{recorded.folder}: its scenario.toml has fewer trials than were recorded")
    return turns


def _dealt(scripts: Iterable[Transcript]) -> set[str]:
    """Name the deals that parties were dealt in on."""
    return {deal.deal_id for script in scripts for _, deal, _ in _deals(script)}


def _deals(script: Transcript, kind: str = "") -> Iterator[tuple[Call, Any, Iterator[Any]]]:
    """Give the deals that a transcript holds, of one kind or all: call, deal, and the parts that bring its arrays."""
    for call in calls(script):
        method = short(call.method)
        if method.startswith("Take") and method.endswith(f"{kind}Deal"):
            parts = (decode(call.method, False, script.data(message)) for message in call.answers)
            first = next(parts, None)
            if first is not None and first.WhichOneof("part") == "deal":
                yield call, first.deal, parts


def _give_draws(recorded: Recorded, session: Session, folder: RunFolder) -> None:
    """Lay compliance's own log of what it drew from the operating system where it is to draw it again.

    Raises
    ------
    ReplayError
        If there is none, and there was noise.
    """
    (number,) = {script.number for script in session.values()}
    log, again = (
        place / FOLDER / "compliance" / f"{name}.draws.jsonl"
        for place, name in ((recorded.folder, number), (folder.path, "1"))
    )
    if log.exists():
        again.parent.mkdir(parents=True)
        shutil.copyfile(log, again)
    elif any(_draws(cell) for cell in recorded.plan.cells):
        raise ReplayError(f"{log}: is missing, and the noise was the operating system's: it cannot be drawn again")


def _draws(cell: Cell) -> bool:
    """Whether compliance draws from the operating system."""
    policy = cell.scenario.compliance
    return (
        policy.noise == "system"
        and MECHANISMS[policy.mechanism].guarantee != "none"
        and cell.scenario.epsilon < math.inf
    )


def _require_answers(recorded: Recorded, party: str) -> None:
    """Refuse what has no answers to give: a log that kept arrays by their digest alone."""
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


def _circumstances(recorded: Mapping[str, Transcript], now: Mapping[str, Transcript]) -> tuple[list[str], bool]:
    """Say what the game ran on and runs on now, where that differs, and whether its numbers may depend on it."""
    changes: dict[str, tuple[str, str]] = {}
    for party in recorded.keys() & now.keys():
        before, after = _versions(recorded[party]), _versions(now[party])
        changes |= {
            name: (before[name], after[name])
            for name in sorted(before.keys() & after.keys())
            if before[name] != after[name]
        }
    notes = [f"recorded with {name} {old}, this is {new}" for name, (old, new) in changes.items()]
    same_machine = not changes.keys() - {"fairwall"}
    if not same_machine:
        notes.append(f"so floats are compared up to {TOLERANCE:g} of the larger one, or of 1")
    return notes, same_machine


def _versions(script: Transcript) -> dict[str, str]:
    assert script.header is not None, "looked at when it was read"
    return {version.name: version.version for version in script.header.versions}


def _version(script: Transcript) -> str:
    """Name the version of fairwall that wrote a transcript."""
    return _versions(script).get("fairwall", "of no version") if script.header is not None else "of no version"


def _rescored(recorded: Recorded, place: Path, *, bit_for_bit: bool) -> Difference | None:
    """Compare the lines of ``trials.jsonl``, but for the time that a trial took."""
    kept = recorded.folder / "trials.jsonl"
    of = ("trial", "seed", "attack", *recorded.plan.scenario.axes)
    lines = {json.dumps([line.get(key) for key in of]): line for line in (read_trials(kept) if kept.exists() else [])}
    for line in read_trials(place / "trials.jsonl"):
        before = lines.get(json.dumps([line.get(key) for key in of]), {})
        for key in before.keys() & line.keys() - {"seconds"}:
            if not _same(before[key], line[key], bit_for_bit=bit_for_bit):
                what = f"trials.jsonl, trial {line['trial']}, {key}"
                return Difference("referee", None, what, json.dumps(before[key])[:48], json.dumps(line[key])[:48], True)
    return None


def _same(old: Any, new: Any, *, bit_for_bit: bool) -> bool:
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(
            _same(one, other, bit_for_bit=bit_for_bit) for one, other in zip(old, new, strict=True)
        )
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_same(old[key], new[key], bit_for_bit=bit_for_bit) for key in old)
    if isinstance(old, float) and isinstance(new, float) and not bit_for_bit:
        # Figures in percent, and means of them.
        return math.isclose(old, new, rel_tol=TOLERANCE, abs_tol=100 * TOLERANCE)
    return bool(old == new)


def _with_decoder(answer: Any, decoder: str) -> None:
    """Change a deal on its way to the developer."""
    if isinstance(answer, game.TakeDeveloperDealResponse) and answer.WhichOneof("part") == "deal":
        answer.deal.decoder = decoder


def _guesses(script: Transcript) -> dict[str, game.SubmitRevealRequest]:
    """Give what the developer submitted, by deal."""
    found = {}
    for call in calls(script):
        if short(call.method) == "SubmitReveal":
            request = decode(call.method, True, script.data(call.requests[0]))
            found[request.deal_id] = request
    return found


def _secrets(recorded: Recorded, session: Session) -> dict[str, tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
    """Give labels and protected attributes by deal, as compliance was dealt them: to score by, and to nobody."""
    if "compliance" not in session:
        raise ReplayError(f"{recorded.folder}: there is no transcript of compliance's to score by")
    found = {}
    for _, deal, parts in _deals(session["compliance"], "Compliance"):
        cards = collect(deal, parts)
        found[deal.deal_id] = (cards["labels"].astype(np.uint8), cards["protected"].astype(np.uint8))
    return found


def _score(
    deal: game.DeveloperDeal,
    told: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    guess: game.SubmitRevealRequest,
) -> RevealScore:
    labels, protected = told
    guessed, baseline, targeted = (from_message(part) for part in (guess.guess, guess.baseline, guess.targeted))
    return score(
        name_of(deal.metric),
        labels,
        protected,
        guessed.astype(np.uint8),
        baseline.astype(np.uint8),
        targeted.astype(np.bool_),
        guess.polarity_known,
    )
