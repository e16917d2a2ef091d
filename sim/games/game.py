"""The interface of a game: everything that the rest of the simulator needs from one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import grpc
from google.protobuf.descriptor import ServiceDescriptor

from fairwall.arrays import Bytes
from fairwall.game.v1 import referee_service_pb2
from sim.games.table import GameTable
from sim.report.columns import Measure, Sheet
from sim.scenarios.scenario import Scenario
from sim.scenarios.sweep import Cell, Sweep
from sim.transcripts.captions import Caption
from sim.transcripts.findings import Findings
from sim.transcripts.messages import PlayedSession, TrialMessages

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sim.report.page import Page

S = TypeVar("S", bound=Scenario)
D = TypeVar("D")
O = TypeVar("O")  # noqa: E741 - a game's outcome
Dealt = TypeVar("Dealt", contravariant=True)
Came = TypeVar("Came", covariant=True)

Line: TypeAlias = Mapping[str, Any]
"""One trial's line in `trials.jsonl`, or one cell's in `result.json`, as plain values."""

Watch: TypeAlias = Callable[[Any], Any]
"""A wrapper that records the calls made to a servicer."""

Compare: TypeAlias = Callable[[Findings, TrialMessages], None]
"""A comparison of the parties' claims in one trial with the results that follow from the trial's messages."""


def later(module: str, name: str) -> Callable[..., Any]:
    """Return a stand-in for a function whose module is imported on the first call."""
    return lambda *arguments: getattr(import_module(module), name)(*arguments)


class Dealer(Protocol[Dealt, Came]):
    """The server of a game's service: it deals the game's cards at the table and takes the parties' submissions."""

    def register(self, server: grpc.Server, watch: Watch) -> None:
        """Register the game's service with a server."""

    def play(self, deal: Dealt, seconds: float) -> Came:
        """Play one deal to the end and return its outcome."""


@dataclass(frozen=True)
class ParetoCells:
    """The cells of a run that no other cell beats: for the terminal (80 columns), and as a page."""

    shown: RenderableType
    page: Callable[[], Page]


@dataclass(frozen=True)
class Redecoding:
    """The parts needed to run another decoder on the answers that a developer got.

    Parameters
    ----------
    deal : name of the deal whose cards name the decoder: that of Take<deal>Deal.
    submission : method by which the developer submits the decoder's result.
    refusal : returns why a decoder does not suit a deal, or None where it does.
    rename : is called with every message on its way to the developer, and replaces the decoder's name where there is
        one.
    score : returns leakage and leakage without a query, in percent, from the deal, labels and protected attributes,
        each of shape (n,), and the submission.
    """

    deal: str
    submission: str
    refusal: Callable[[Any, str], str | None]
    rename: Callable[[Any, str], None]
    score: Callable[[Any, Bytes, Bytes, Any], tuple[float, float]]


@dataclass(frozen=True)
class Game(Generic[S, D, O]):
    """A game: its scenarios, its service, and the functions that play, score, verify and report it.

    Playing is `deal`, then the dealer's `play`, then `record`. Verifying is `record` of `outcome`, which finds the same
    deal and outcome in a transcript.

    Parameters
    ----------
    name : value of `scenario.game`.
    wire : value that Join sends to the parties.
    scenario : class of its scenarios.
    service : its own service. Deals are its methods named Take*Deal, a trial's steps those named Submit* and Release*.
    deal : draws a trial's cards: a function of its cell, its number within that, the deal's id and the run's secret.
        Raises DealError where the table cannot give them, and DataError where it cannot be loaded.
    dealer : returns the dealer at a table.
    record : writes a trial down, a line for each of the scenario's `parts`. The runner adds the keys that every game
        has: trial, seed, game, seconds and the swept keys.
    summarise : sums up one part of one cell, from the swept keys and its lines.
    outcome : finds a trial's deal and outcome in its messages; as `deal`, with the messages in place of the id.
    recompute : returns the comparisons for the trials of a session.
    tolerance : largest relative difference of a recomputed figure from the recorded one.
    told : compares the referee's replies to submissions with the deal and the outcome.
    page : makes the page of a run, from its sweep, its lines and their summary.
    tables : lays out the measured figures, from the same arguments, for the page and the terminal.
    captions : describes the messages of its service in words, by message.
    headline : the main figure of a line; it has a scale.
    redecoding : set for a game whose developer decodes answers.
    require : raises where a library that the game needs is missing.
    needs : returns the extras of fairwall that a scenario needs to be played, besides `games`.
    frontier : finds the cells that no other cell beats, from its sweep, its lines and their summary. Raises UserError
        where no cell can be compared with others.
    """

    name: str
    wire: referee_service_pb2.Game
    scenario: type[S]
    service: ServiceDescriptor
    deal: Callable[[Cell[S], int, str, bytes], D]
    dealer: Callable[[GameTable], Dealer[D, O]]
    record: Callable[[Cell[S], int, D, O], list[Line]]
    summarise: Callable[[Mapping[str, Any], Sequence[Line]], Line]
    outcome: Callable[[Cell[S], int, TrialMessages, bytes], tuple[D, O]]
    recompute: Callable[[PlayedSession], Sequence[Compare]]
    tolerance: float
    page: Callable[[Sweep[S], Sequence[Line], Sequence[Line]], Page]
    tables: Callable[[Sweep[S], Sequence[Line], Sequence[Line]], Iterable[Sheet[Any]]]
    captions: Callable[[], Mapping[str, Caption]]
    headline: Measure[Line] | None = None
    require: Callable[[], None] = lambda: None
    needs: Callable[[S], Sequence[str]] = lambda _: ()
    redecoding: Redecoding | None = None
    told: Callable[[Findings, TrialMessages, D, O], None] | None = None
    frontier: Callable[[Sweep[S], Sequence[Line], Sequence[Line]], ParetoCells] | None = None
