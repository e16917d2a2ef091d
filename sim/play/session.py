"""A session: one table, three processes and one recorder, which play some of a run's trials one after another."""

from __future__ import annotations

import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import grpc

from fairwall.game.v1.referee_service_pb2_grpc import add_RefereeServiceServicer_to_server
from fairwall.rpc import confine, kernels, server
from fairwall.rpc.recorder import Recording, TranscriptRecorder
from sim.games import GAMES
from sim.games.game import Dealer
from sim.games.referee import Referee
from sim.games.table import GameTable, PluginFailed
from sim.play import keys
from sim.play.faults import Injector
from sim.play.launch import ConfinementMissing, Plugged, Start, launch
from sim.runs.folder import RunFolder
from sim.runs.trials import Lines, Turn, written
from sim.scenarios.sweep import Sweep

TRIAL_SECONDS = 1800.0
"""Seconds after which a trial counts as hung."""

LOG = logging.getLogger(__name__)


def play_turns(
    sweep: Sweep,
    folder: RunFolder,
    turns: Iterable[Turn],
    on_trial: Callable[[int], None],
    on_start: Callable[[str, dict[str, Any]], None] = lambda *_: None,
    injector: Injector | None = None,
    start: Start | None = None,
    table: GameTable | None = None,
    keep: Callable[[int, Lines], None] | None = None,
) -> None:
    """Start the parties and play trials of a run, each with its number in its cell and in the run.

    When a plug-in fails, the failure is recorded, the rest of its cell is skipped, and the parties are restarted for
    the other cells. Before the first trial, ``on_start`` gets the number of the parties' transcripts ("" if they record
    nothing) and the layers that confine each party. Without an injector there are no faults, whatever the scenario
    says.

    One of several parallel sessions gets a ``table``, through which another thread can end it, and ``keep``, which gets
    each trial's number and lines instead of ``trials.jsonl``.
    """
    table, start = table or GameTable(), start or Start()
    turns, failed = iter(turns), list[Mapping[str, Any]]()
    playing: Turn | None = None
    finished = 0

    def tell(_: int) -> None:
        nonlocal finished
        finished += 1
        on_trial(finished)

    def left() -> Iterator[Turn]:
        nonlocal playing
        for turn in turns:
            if turn[0].swept not in failed:
                playing = turn
                yield turn

    while (first := next(rest := left(), None)) is not None:
        try:
            _play_together(sweep, folder, chain([first], rest), tell, on_start, injector, start, table, keep)
        except PluginFailed as error:
            assert playing is not None
            cell, trial, _ = playing
            folder.add_failure({"cell": dict(cell.swept), "trial": trial, "why": str(error)})
            failed.append(cell.swept)
            start = replace(start, waiting={}, meanwhile=lambda: None)
            table.renew()


def _play_together(
    sweep: Sweep,
    folder: RunFolder,
    turns: Iterable[Turn],
    on_trial: Callable[[int], None],
    on_start: Callable[[str, dict[str, Any]], None],
    injector: Injector | None,
    start: Start,
    table: GameTable,
    keep: Callable[[int, Lines], None] | None,
) -> None:
    own = confine.guard()
    game, secret = GAMES[sweep.game], folder.secret(sweep)
    credentials = keys.mint(folder.run)
    name = sweep.name_for_parties(folder.key)
    referee = Referee(folder.run, name, game.wire, table)
    dealer = game.dealer(table)

    def watch(servicer: Any) -> Any:
        return servicer if injector is None else injector.watch(servicer)

    def register(grpc_server: grpc.Server) -> None:
        add_RefereeServiceServicer_to_server(watch(referee), grpc_server)
        dealer.register(grpc_server, watch)

    with contextlib.ExitStack() as closing:
        recording, recorder = _record(sweep, folder, name, own)
        if recorder is not None:
            closing.callback(recorder.close)
        listening = server.serve(register, credentials.pop("referee"), recorder=recorder)
        closing.callback(listening.stop)
        closing.callback(table.finish)  # parties that joined before the others died wait for admission
        if injector is not None:
            injector.lead_to("referee", listening.address)
            start = replace(start, detours=injector.detours)
        announced = closing.enter_context(
            launch(
                credentials,
                listening.address,
                folder.logs,
                lambda party: table.abort(party.failure()),
                recording,
                start=start,
                plugged=Plugged.of(sweep),
            )
        )
        closing.callback(table.finish)
        layers = {"referee": confine.as_values(own)} | {name: party.layers for name, party in announced.items()}
        on_start(recording.name if recording is not None else "", layers)
        require_layers(sweep, layers)
        if kernels.processor() != kernels.LEVEL:
            LOG.warning("fairwall: no fixed kernels here (%s): what is played replays to 1e-6", kernels.processor())
        if injector is not None:
            injector.meet(announced)
        referee.seat({name: party.address for name, party in announced.items()} | {**start.detours})
        keep = keep or (lambda _, lines: folder.add_trial(*lines))
        for played, turn in enumerate(turns, start=1):
            keep(turn[2], _played(turn, sweep, dealer, secret, injector))
            on_trial(played)


def _played(turn: Turn, sweep: Sweep, dealer: Dealer[Any, Any], secret: bytes, injector: Injector | None) -> Lines:
    """Play a trial and score it; return its lines."""
    cell, trial, number = turn
    game, faults = GAMES[sweep.game], sweep.scenario.faults
    seconds = TRIAL_SECONDS if injector is None or faults is None else faults.deadline
    started = time.perf_counter()
    with injector.trial(cell.scenario, number) if injector else contextlib.nullcontext():
        deal = game.deal(cell, trial, f"deal-{number}", secret)
        lines = game.record(cell, trial, deal, dealer.play(deal, seconds))
    taken = time.perf_counter() - started
    return [written(cell, trial, line, taken) for line in lines]


def require_layers(sweep: Sweep, layers: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Raise `ConfinementMissing` if a demanded layer is not active; warn of walls that are not."""
    missing: dict[str, list[str]] = {}
    for party, own in layers.items():
        for layer in own:
            if not layer["active"]:
                missing.setdefault(f"{layer['name']} ({layer['why_not']})", []).append(party)
    for text, parties in missing.items():
        name = text.partition(" ")[0]
        if name in sweep.scenario.scenario.require:
            raise ConfinementMissing(f"scenario.require: no layer {text} around {' and '.join(parties)}")
    walls = {text: parties for text, parties in missing.items() if text.partition(" ")[0] in confine.WALLS}
    if walls:
        names = [*dict.fromkeys(chain.from_iterable(walls.values()))]
        who = f"the {' and the '.join(names)} {'is' if len(names) == 1 else 'are'}"
        LOG.warning("fairwall: %s not confined by %s", who, ", ".join(walls))


def _record(
    sweep: Sweep, folder: RunFolder, name: str, layers: Sequence[confine.Layer]
) -> tuple[Recording, TranscriptRecorder] | tuple[None, None]:
    """Open the referee's transcript, under the first number that no parties of this run have recorded under."""
    mode = sweep.scenario.scenario.record
    if mode == "none":
        return None, None
    for number in itertools.count(1):
        recording = Recording(folder.path / "transcript", str(number), mode, name)
        with contextlib.suppress(FileExistsError):
            return recording, TranscriptRecorder(recording.path("referee"), folder.run, "referee", name, mode, layers)
    raise AssertionError("there is always a next number")
