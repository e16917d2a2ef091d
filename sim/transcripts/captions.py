"""What the messages of every game say, in words: captions for people who watch a recorded game."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.rpc.arrays import ArrayError, from_message
from fairwall.rpc.turns import collect
from fairwall.wire.metrics import name_of
from fairwall.wire.v1 import array_pb2

Parts: TypeAlias = Iterable[Any] | None
"""The messages that follow the first of a stream; None where not all their bytes are stored."""


@dataclass(frozen=True, eq=False)
class Guess:
    """What a party took people, or models, for: a small number for each of n, shape (n,).

    Beside the guess that was ``made`` are the one ``before`` there was any answer, and what is ``true`` where that was
    dealt in what can be seen. ``of`` says what is guessed about, such as "person", and ``names`` what the numbers stand
    for; none where they stand for themselves.
    """

    of: str
    made: NDArray[Any]
    before: NDArray[Any] | None = None
    true: NDArray[Any] | None = None
    names: tuple[str, ...] = ()


@dataclass
class Story:
    """What has happened so far, as far as captions that follow speak of it.

    By now arrays were dealt, by name; the developer got so many answers, has so much of its budget left, where it has
    been told, and submitted a last guess. ``is_new`` says whether answers or budget changed since they were last told.
    """

    kept: dict[str, NDArray[Any]] = field(default_factory=dict)
    answers: int = 0
    left: float | None = None
    is_new: bool = False
    guess: Guess | None = None

    def begin(self, left: float | None = None) -> None:
        """Begin a trial, with so much of a budget if that is told."""
        self.answers, self.left = 0, left

    def answered(self, answers: int, message: Any) -> None:
        """Count answers, and take the budget that is left from the message that brings them."""
        self.answers += answers
        now = "epsilon_remaining_now"
        is_repeat = now in message.DESCRIPTOR.fields_by_name and message.HasField(now)
        self.left = message.epsilon_remaining_now if is_repeat else message.epsilon_remaining
        self.is_new = True

    def news(self) -> str:
        """Say what the developer has by now, if there is something new."""
        if not self.is_new:
            return ""
        self.is_new = False
        budget = "" if self.left is None else f"; ε left: {number(self.left)}"
        return f"the developer has {count(self.answers, 'answer')}{budget}"


Caption: TypeAlias = Callable[[Story, Any, Parts], str]
"""Says in words what a message, the first of half a call, and those after it say."""


def always(text: str) -> Caption:
    """Make the caption of a message that always says the same."""
    return lambda _story, _message, _rest: text


def dealt(caption: Caption) -> Caption:
    """Have a caption say what is dealt, where there is a deal."""

    def said(story: Story, message: Any, rest: Parts) -> str:
        return caption(story, message.deal, rest) if message.WhichOneof("part") == "deal" else "the run is over"

    return said


def shared() -> Mapping[str, Caption]:
    """Give the captions of messages that any game has, by message."""
    return {
        "JoinRequest": _join_request,
        "JoinResponse": _join_response,
        "TakeComplianceDealResponse": _take_compliance_deal_response,
        "ServeTrialRequest": _serve_trial_request,
        "SubmitAuditReportRequest": _submit_audit_report_request,
        "AuditRequest": _audit_request,
        "AuditModelsRequest": _audit_models_request,
        "AuditModelsResponse": _audit_models_response,
        "AuditResponse": _audit_response,
        "PredictRequest": _predict_request,
        "PredictResponse": _predict_response,
        "ServeTrialResponse": always("the trial has ended"),
    }


def _join_request(_story: Story, message: Any, _: Parts) -> str:
    return f"joins, and speaks version {message.protocol_version}"


def _join_response(_story: Story, message: Any, _: Parts) -> str:
    return f"welcome; the game is {game.Game.Name(message.game).removeprefix('GAME_').lower()}"


@dealt
def _take_compliance_deal_response(story: Story, deal: Any, rest: Parts) -> str:
    cards = cards_of(deal, rest)
    story.kept |= cards
    match deal.WhichOneof("cards"):
        case "study":
            people, terms = count(deal.study.study_cells.shape[0], "person"), deal.study.terms
            what = "records" if terms.records else "counts"
            return f"{deal.deal_id}: a study of {people}; release {what}, ε {number(terms.epsilon)}"
        case "groups":
            people = count(deal.groups.groups.shape[1], "person")
            return f"{deal.deal_id}: {people}; count them, ε {number(deal.groups.epsilon)}"
        case "statistics":
            people, terms = count(deal.statistics.protected.shape[0], "person"), deal.statistics.terms
            return f"{deal.deal_id}: {people}{_few(cards)}; tell sums by group, ε {number(terms.epsilon)}"
    dealt = deal.audits if deal.HasField("audits") else deal.release.audits
    names, people = ", ".join(name_of(number) for number in dealt.metrics), math.prod(dealt.labels.shape)
    story.begin(dealt.epsilon)
    return (
        f"{deal.deal_id}: {count(people, 'person')}{_few(cards)}; answer {names} by {dealt.mechanism}, "
        f"ε {number(dealt.epsilon)}"
    )


def _few(cards: Mapping[str, NDArray[Any]]) -> str:
    return f", {int((cards['protected'] == 0).sum())} of them disadvantaged" if cards else ""


def _serve_trial_request(_story: Story, message: Any, _: Parts) -> str:
    return f"{message.deal_id} is open to questions"


def _submit_audit_report_request(_story: Story, message: Any, _: Parts) -> str:
    answered = sum(record.exact.header.shape[0] for record in message.audits)
    answers = f"{count(answered, 'answer')}, " if message.audits else ""
    return f"report: {answers}ε {number(message.epsilon_spent)} spent"


def _audit_request(_story: Story, message: Any, _: Parts) -> str:
    header = message.header
    models, *people = header.predictions.shape
    size = f"predictions {models} × {people[0]}" if people else count(models, "prediction")
    return f"{name_of(header.metric)} of {count(models, 'model')}? {size}, ε {number(header.epsilon)}"


def _audit_models_request(_story: Story, message: Any, _: Parts) -> str:
    return f"{name_of(message.metric)} of {count(message.models, 'model')}? ask them, ε {number(message.epsilon)}"


def _audit_models_response(story: Story, message: Any, rest: Parts) -> str:
    return _audit_response(story, message.answer, rest)


def _audit_response(story: Story, message: Any, _: Parts) -> str:
    gaps = array_of(message.gaps)
    answers = message.gaps.header.shape[0]
    story.answered(answers, message)
    values = "" if gaps is None or not len(gaps) else f", {number(gaps.min())} to {number(gaps.max())}"
    if answers == 1 and gaps is not None:
        values = f", {number(gaps[0])}"
    return f"{count(answers, 'answer')}{values}; ε {number(message.epsilon_charged)} charged"


def _predict_request(_story: Story, message: Any, _: Parts) -> str:
    header = message.header
    return f"model {header.model}, your scores of {count(header.features.shape[0], 'row')}?"


def _predict_response(_story: Story, message: Any, _: Parts) -> str:
    return count(message.scores.header.shape[0], "score")


def cards_of(deal: Any, rest: Any) -> dict[str, NDArray[Any]]:
    """Put a deal's arrays together, where they were kept."""
    return collect(deal, rest) if rest is not None else {}


def array_of(message: array_pb2.Array) -> NDArray[Any] | None:
    """Decode an array, if it is one."""
    try:
        return from_message(message)
    except ArrayError:
        return None


def count(number: int, thing: str) -> str:
    """Count things in words."""
    plural = {"person": "people", "query": "queries"}.get(thing, f"{thing}s")
    return f"{number:,} {thing if number == 1 else plural}"


def number(value: float) -> str:
    """Write a number to three digits, a whole one whole; without an exponent where that stays short."""
    if not np.isfinite(value):
        return "∞" if value > 0 else str(value)
    rounded = value if float(value).is_integer() else float(f"{value:.3g}")
    if rounded and not 1e-5 <= abs(rounded) < 1e9:
        return f"{value:.3g}"
    return f"{int(rounded):,}" if float(rounded).is_integer() else f"{Decimal(repr(float(rounded))):,f}"
