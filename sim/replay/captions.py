"""A recorded game for people to watch: message by message, who says what to whom, and what the developer has by then.

The order is one of causes (`sim.replay.differences.in_order`): nobody hears a message before it is sent. Calls that
were only told to ask again are left out, and so are answers that say nothing.
"""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.rpc.arrays import ArrayError, from_message
from fairwall.rpc.turns import collect
from fairwall.wire.metrics import name_of
from fairwall.wire.v1 import array_pb2, error_pb2
from sim.games.reveal.score import leakage
from sim.replay.differences import Call, calls, in_order, short
from sim.transcripts.files import CallKey, Message, Transcript, decode

WIDTH = 80
_NUMBER, _NAMES = 5, 26

_WORDS = {
    "ServeTrialResponse": "the trial has ended",
    "GetTrainingTableRequest": "asks for the training table",
    "ReleaseModelRequest": "releases its base model",
}
"""What messages say that always say the same."""


@dataclass(frozen=True)
class Saying:
    """What one party says to another: a line of the view.

    Parameters
    ----------
    number : int
        Of the session's sayings, from 1.
    speaker, hearer : str
    text : str
    knows : str
        What the developer has by now; empty where nothing new.
    """

    number: int
    speaker: str
    hearer: str
    text: str
    knows: str = ""

    def __str__(self) -> str:
        names = f"{self.speaker} → {self.hearer}"
        first = f"{self.number:>{_NUMBER - 1}} {names:<{_NAMES}}"
        indent = " " * (_NUMBER + _NAMES)
        lines = textwrap.wrap(self.text, WIDTH, initial_indent=first, subsequent_indent=indent) or [first.rstrip()]
        if self.knows:
            lines += textwrap.wrap(self.knows, WIDTH, initial_indent=f"{indent}[", subsequent_indent=indent + " ")
            lines[-1] = lines[-1] if len(lines[-1]) >= WIDTH else f"{lines[-1]}]"
        return "\n".join(lines)


def watch(sessions: list[dict[str, Transcript]], wait: Callable[[], None]) -> None:
    """Print sessions saying by saying, and wait after each."""
    for number, scripts in enumerate(sessions, start=1):
        if len(sessions) > 1:
            typer.echo(f"The parties are started, time {number}.")
        for saying in sayings(scripts):
            typer.echo(str(saying))
            wait()


def pace(*, speed: float | None, step: bool) -> Callable[[], None]:
    """Say how long to wait: for Enter, for a time, or not at all."""
    if step:
        return lambda: _enter(sys.stdin.readline())
    return lambda: time.sleep(1 / speed if speed else 0)


def _enter(line: str) -> None:
    if not line:  # no more Enter will come
        raise typer.Exit(0)


def sayings(scripts: Mapping[str, Transcript]) -> Iterator[Saying]:
    """Tell a session's messages, those of a stream as one."""
    parts = _parts(scripts)
    story = _Story()
    number = 0
    for speaker, hearer, call, is_request, script in parts:
        messages = call.requests if is_request else call.answers
        text = _refused(call) if not is_request and not messages else story.tell(call, is_request, messages, script)
        if text:
            number += 1
            yield Saying(number, speaker, hearer, text, story.news())


_Part = tuple[str, str, Call, bool, Transcript]


def _parts(scripts: Mapping[str, Transcript]) -> list[_Part]:
    """List both halves of each call once, what is asked and what is answered, in the order of causes."""
    places = {where: number for number, where in enumerate(in_order(scripts))}
    found: dict[tuple[CallKey, bool], tuple[float, _Part]] = {}
    for party, script in scripts.items():
        for call in calls(script):
            if call.is_poll(script):
                continue
            caller, answerer = call.key.caller or "a stranger", call.key.server
            asked = max((places[party, message.entry] for message in call.requests), default=0)
            # A refusal is no message, and stands behind what it refuses.
            answered = max((places[party, message.entry] for message in call.answers), default=asked + 0.5)
            halves = ((True, asked, caller, answerer), (False, answered, answerer, caller))
            for is_request, place, speaker, hearer in halves:
                part = (place, (speaker, hearer, call, is_request, script))
                # What is told is told when it is sent: the earlier of the two transcripts' places.
                known = found.get((call.key, is_request))
                found[call.key, is_request] = part if known is None or place < known[0] else known
    return [part for _, part in sorted(found.values(), key=lambda placed: placed[0])]


def _refused(call: Call) -> str:
    if call.ending is None or not call.ending.status:
        return ""
    name = error_pb2.Reason.Name(call.ending.reason) if call.ending.reason else f"status {call.ending.status}"
    return f"refuses: {name.removeprefix('REASON_')}"


@dataclass
class _Story:
    """What has happened so far, as far as the lines that follow speak of it."""

    protected: NDArray[Any] | None = None
    bits: NDArray[Any] | None = None
    answers: int = 0
    left: float | None = None
    _new: bool = False

    def news(self) -> str:
        """Say what the developer has by now, if there is something new."""
        if not self._new:
            return ""
        self._new = False
        budget = "" if self.left is None else f"; ε left: {_number(self.left)}"
        return f"the developer has {_count(self.answers, 'answer')}{budget}"

    def tell(self, call: Call, is_request: bool, messages: list[Message], script: Transcript) -> str:
        """Say in words what the messages of half a call say."""
        whole = all(script.stores(digest) for message in messages for _, _, digest in message.large)
        first = decode(call.method, is_request, script.data(messages[0]))
        if first is None:
            return f"{short(call.method)}, which cannot be read"
        name = type(first).__name__
        teller = getattr(self, f"_{name}", None)
        if teller is None:
            return _WORDS.get(name, "")
        rest = (decode(call.method, is_request, script.data(message)) for message in messages[1:])
        try:
            return str(teller(first, rest if whole else None))
        except (ValueError, IndexError):  # whatever a party sends is recorded, nonsense too
            return f"{name}, which makes no sense"

    # Named as the protocol names its messages.

    def _JoinRequest(self, message: Any, _: Any) -> str:  # noqa: N802
        return f"joins, and speaks version {message.protocol_version}"

    def _JoinResponse(self, message: Any, _: Any) -> str:  # noqa: N802
        return f"welcome; the game is {game.Game.Name(message.game).removeprefix('GAME_').lower()}"

    def _TakeComplianceDealResponse(self, message: Any, rest: Any) -> str:  # noqa: N802
        if message.WhichOneof("part") == "turn":
            return "the run is over"
        deal = message.deal
        cards = _cards(deal, rest)
        self.protected = cards.get("protected")
        few = "" if self.protected is None else f", {int((self.protected == 0).sum())} of them disadvantaged"
        names = ", ".join(name_of(number) for number in deal.metrics)
        self.answers, self.left = 0, deal.epsilon
        return (
            f"{deal.deal_id}: {_count(deal.labels.shape[0], 'person')}{few}; answer {names} by {deal.mechanism}, "
            f"ε {_number(deal.epsilon)}"
        )

    def _ServeTrialRequest(self, message: Any, _: Any) -> str:  # noqa: N802
        return f"{message.deal_id} is open to audits"

    def _SubmitAuditReportRequest(self, message: Any, _: Any) -> str:  # noqa: N802
        answered = sum(record.exact.header.shape[0] for record in message.audits)
        return f"report: {_count(answered, 'answer')}, ε {_number(message.epsilon_spent)} spent"

    def _TakeDeveloperDealResponse(self, message: Any, _: Any) -> str:  # noqa: N802
        if message.WhichOneof("part") == "turn":
            return "the run is over"
        deal = message.deal
        shown = deal.HasField("features")
        people = _count(deal.features.shape[0], "person") if shown else "people whom you are not shown"
        match deal.queries.WhichOneof("count"):
            case "fixed":
                queries = _count(deal.queries.fixed, "query")
            case "at_most":
                queries = "as many queries as it takes"
            case _:
                queries = "a query a person"
        decoder = f" with decoder {deal.decoder}" if deal.decoder else ""
        return f"{deal.deal_id}: {people}, no protected attribute; play {deal.strategy}{decoder}, {queries}"

    def _GetTrainingTableResponse(self, message: Any, _: Any) -> str:  # noqa: N802
        return f"{_count(message.table.features.shape[0], 'row')} to train on"

    def _SubmitRevealRequest(self, message: Any, _: Any) -> str:  # noqa: N802
        guess, baseline = _array(message.guess), _array(message.baseline)
        people = len(guess) if guess is not None else 0
        if self.protected is None or guess is None or baseline is None or len(self.protected) != people:
            return f"guesses the groups of {_count(people, 'person')}"
        right = int((guess == self.protected).sum())
        before = int((baseline == self.protected).sum())
        score = leakage(guess.astype(np.uint8), self.protected.astype(np.uint8))
        return (
            f"guesses who belongs where: right for {right} of {people}, leakage {score:.1f}% "
            f"(without a query right for {before})"
        )

    def _TakeAdversaryDealResponse(self, message: Any, _: Any) -> str:  # noqa: N802
        if message.WhichOneof("part") == "turn":
            return "the run is over"
        deal = message.deal
        return f"{deal.deal_id}: {_count(deal.labels.shape[0], 'public row')}; play {deal.attack}"

    def _SubmitLossTestRequest(self, message: Any, _: Any) -> str:  # noqa: N802
        first, second = 100 * message.accuracy_advantaged, 100 * message.accuracy_disadvantaged
        return f"accuracy {first:.1f}% on the advantaged, {second:.1f}% on the disadvantaged"

    def _AuditRequest(self, message: Any, _: Any) -> str:  # noqa: N802
        header = message.header
        models, *people = header.predictions.shape
        size = f"predictions {models} × {people[0]}" if people else _count(models, "prediction")
        return f"{name_of(header.metric)} of {_count(models, 'model')}? {size}, ε {_number(header.epsilon)}"

    def _AuditModelsRequest(self, message: Any, _: Any) -> str:  # noqa: N802
        return f"{name_of(message.metric)} of {_count(message.models, 'model')}? ask them, ε {_number(message.epsilon)}"

    def _AuditModelsResponse(self, message: Any, rest: Any) -> str:  # noqa: N802
        return self._AuditResponse(message.answer, rest)

    def _AuditResponse(self, message: Any, _: Any) -> str:  # noqa: N802
        gaps = _array(message.gaps)
        count = message.gaps.header.shape[0]
        self.answers += count
        self.left = message.epsilon_remaining
        self._new = True
        values = "" if gaps is None or not len(gaps) else f", {_number(gaps.min())} to {_number(gaps.max())}"
        if count == 1 and gaps is not None:
            values = f", {_number(gaps[0])}"
        return f"{_count(count, 'answer')}{values}; ε {_number(message.epsilon_charged)} charged"

    def _PredictRequest(self, message: Any, _: Any) -> str:  # noqa: N802
        header = message.header
        return f"model {header.model}, your scores of {_count(header.features.shape[0], 'row')}?"

    def _PredictResponse(self, message: Any, _: Any) -> str:  # noqa: N802
        return _count(message.scores.header.shape[0], "score")

    def _TakeTrainingDealResponse(self, message: Any, rest: Any) -> str:  # noqa: N802
        if message.WhichOneof("part") == "turn":
            return "the run is over"
        deal = message.deal
        self.bits = _cards(deal, rest).get("bits")
        self.answers, self.left = 0, None
        rows, models = _count(deal.features.shape[0], "row"), _count(deal.bits.shape[0], "model")
        return f"{deal.deal_id}: {rows}, their groups, {models} to train; defence {deal.training.defence}"

    def _SubmitModelsRequest(self, message: Any, _: Any) -> str:  # noqa: N802
        models, rows = message.scores.header.shape
        return f"{_count(models, 'model')} stand, and score {_count(rows, 'row')}"

    def _TakeAttackDealResponse(self, message: Any, _: Any) -> str:  # noqa: N802
        if message.WhichOneof("part") == "turn":
            return "the run is over"
        deal = message.deal
        rows = _count(deal.labels.shape[0], "row")
        return f"{deal.deal_id}: {_count(deal.models, 'model')} and {rows}; play {', '.join(deal.attacks)}"

    def _SubmitGuessesRequest(self, message: Any, _: Any) -> str:  # noqa: N802
        guesses = _array(message.guesses)
        if guesses is None or self.bits is None or guesses.shape[1:] != self.bits.shape:
            return "guesses which group each model learned from"
        right = ", ".join(str(int((row == self.bits).sum())) for row in guesses)
        return f"guesses which group each model learned from: right for {right} of {len(self.bits)}"


def _cards(deal: Any, rest: Any) -> dict[str, NDArray[Any]]:
    """Put a deal's arrays together, where they were kept."""
    return collect(deal, rest) if rest is not None else {}


def _array(message: array_pb2.Array) -> NDArray[Any] | None:
    try:
        return from_message(message)
    except ArrayError:
        return None


def _count(number: int, thing: str) -> str:
    plural = {"person": "people", "query": "queries"}.get(thing, f"{thing}s")
    return f"{number:,} {thing if number == 1 else plural}"


def _number(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else ("∞" if value > 0 else str(value))
