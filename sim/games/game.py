"""What a game is: everything that the rest of the simulator asks of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import grpc
import numpy as np
from google.protobuf.descriptor import ServiceDescriptor
from numpy.typing import NDArray

from fairwall.game.v1 import referee_service_pb2
from sim.games.table import Table
from sim.report.columns import Measure, Sheet
from sim.scenarios.scenario import Scenario
from sim.scenarios.sweep import Cell, Sweep
from sim.transcripts.captions import Caption
from sim.transcripts.findings import Findings
from sim.transcripts.messages import Session, TrialMessages

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sim.report.page import Page

S = TypeVar("S", bound=Scenario)
D = TypeVar("D")
O = TypeVar("O")  # noqa: E741 - a game's outcome
Dealt = TypeVar("Dealt", contravariant=True)
Came = TypeVar("Came", covariant=True)

Line: TypeAlias = Mapping[str, Any]
"""What ``trials.jsonl`` says of a trial, or ``result.json`` of a cell, in plain values."""

Watch: TypeAlias = Callable[[Any], Any]
"""Gives a servicer in place of one, that notices the calls which are made."""

Compare: TypeAlias = Callable[[Findings, TrialMessages], None]
"""Compares what a game's parties claim in a trial with what follows from its messages."""


def later(module: str, name: str) -> Callable[..., Any]:
    """Give a function of a module that is imported when it is first called."""
    return lambda *arguments: getattr(import_module(module), name)(*arguments)


class Dealer(Protocol[Dealt, Came]):
    """Deals a game's cards at the table and takes what the parties submit: the server of the game's own service."""

    def register(self, server: grpc.Server, watch: Watch) -> None:
        """Serve the game's service."""

    def play(self, deal: Dealt, seconds: float) -> Came:
        """Play one deal to its end."""


@dataclass(frozen=True)
class Front:
    """Which cells of a run no other cell beats.

    Parameters
    ----------
    shown : in 80 columns.
    page : tells it at length.
    """

    shown: RenderableType
    page: Callable[[], Page]


@dataclass(frozen=True)
class Redecoding:
    """What it takes to try another decoder on the answers that a developer was given.

    Parameters
    ----------
    deal : which deal names the decoder: that of Take<deal>Deal.
    submission : by which method the developer submits what the decoder made.
    refusal : says why a decoder does not go with a deal, or None where it does.
    rename : names another decoder in a message on its way to the developer; it is told every one.
    score : gives leakage and the leakage without a query, in percent, from the deal, labels and protected attributes,
        each of shape (n,), and the submission.
    """

    deal: str
    submission: str
    refusal: Callable[[Any, str], str | None]
    rename: Callable[[Any, str], None]
    score: Callable[[Any, NDArray[np.uint8], NDArray[np.uint8], Any], tuple[float, float]]


@dataclass(frozen=True)
class Game(Generic[S, D, O]):
    """A game.

    Playing is ``deal``, then the dealer's ``play``, then ``record``. Verifying is ``record`` of ``outcome``, which
    finds the same deal and outcome in a transcript.

    Parameters
    ----------
    name : as ``scenario.game`` has it.
    wire : what Join tells the parties.
    scenario : what its scenario files may hold.
    service : its own service. Deals are its methods named Take*Deal, a trial's steps those named Submit* and Release*.
    deal : draws a trial's cards: a function of its cell, its number within that, the deal's id and the run's secret.
        Raises DealError where the table cannot give them, and DataError where it cannot be loaded.
    dealer : takes a seat at a table.
    record : callable
        Writes a trial down, in a line for each of the scenario's ``parts``. What any game's line has is the runner's to
        add: trial, seed, game, seconds and the swept keys.
    summarise : sums up one part of one cell, from the swept keys and its lines.
    outcome : callable
        Finds in the messages of a trial what was dealt and what came of it; as ``deal``, with the messages in place of
        the id.
    recompute : gives the comparisons for the trials of a session.
    tolerance : how far recomputed figures may be from recorded ones, for each 1 that they have.
    told : compares what the referee answered to submissions with what was dealt and what came of it.
    page : says what a run comes to, from its sweep, its lines and their summary.
    tables : lays out what was measured, from the same: the page shows it, and the terminal.
    captions : says in words what the messages of its service say, by message.
    headline : what of a line tells first how a trial came out; it has a scale.
    redecoding : of a game whose developer decodes answers.
    require : raises where a library is missing that the game needs.
    needs : names the extras of fairwall that a scenario needs to be played, besides ``games``.
    frontier : finds the cells that no other cell beats, from its sweep, its lines and their summary. Raises UserError
        where no cell can be held against others.
    """

    name: str
    wire: referee_service_pb2.Game
    scenario: type[S]
    service: ServiceDescriptor
    deal: Callable[[Cell[S], int, str, bytes], D]
    dealer: Callable[[Table], Dealer[D, O]]
    record: Callable[[Cell[S], int, D, O], list[Line]]
    summarise: Callable[[Mapping[str, Any], Sequence[Line]], Line]
    outcome: Callable[[Cell[S], int, TrialMessages, bytes], tuple[D, O]]
    recompute: Callable[[Session], Sequence[Compare]]
    tolerance: float
    page: Callable[[Sweep[S], Sequence[Line], Sequence[Line]], Page]
    tables: Callable[[Sweep[S], Sequence[Line], Sequence[Line]], Iterable[Sheet[Any]]]
    captions: Callable[[], Mapping[str, Caption]]
    headline: Measure[Line] | None = None
    require: Callable[[], None] = lambda: None
    needs: Callable[[S], Sequence[str]] = lambda _: ()
    redecoding: Redecoding | None = None
    told: Callable[[Findings, TrialMessages, D, O], None] | None = None
    frontier: Callable[[Sweep[S], Sequence[Line], Sequence[Line]], Front] | None = None
