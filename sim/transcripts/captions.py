"""Captions of the messages of every game: words for people who watch a recorded game."""

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
"""The messages that follow the first of a stream; None if some of their bytes are not stored."""


@dataclass(frozen=True, eq=False)
class Guess:
    """A party's guess about n people, or models: a small number for each, shape (n,).

    ``made`` is the guess, ``before`` the one before any answer, and ``true`` the truth if a visible deal has it. ``of``
    names the subject, such as "person", and ``names`` the meanings of the numbers; empty if they are just numbers.
    """

    of: str
    made: NDArray[Any]
    before: NDArray[Any] | None = None
    true: NDArray[Any] | None = None
    names: tuple[str, ...] = ()


@dataclass
class Story:
    """Replay state that later captions use.

    ``kept`` are the arrays dealt so far, by name; ``answers`` the number of answers to the developer; ``left`` its
    remaining epsilon, if known; ``guess`` its last submitted guess. ``is_new`` if answers or budget have changed since
    the last news.
    """

    kept: dict[str, NDArray[Any]] = field(default_factory=dict)
    answers: int = 0
    left: float | None = None
    is_new: bool = False
    guess: Guess | None = None

    def begin(self, budget: float | None = None) -> None:
        """Begin a trial with a budget of epsilon, if known."""
        self.answers, self.left = 0, budget

    def answered(self, answers: int, message: Any) -> None:
        """Add to the number of answers, and read the remaining budget from the message that brings them."""
        self.answers += answers
        now = "epsilon_remaining_now"
        is_repeat = now in message.DESCRIPTOR.fields_by_name and message.HasField(now)
        self.left = message.epsilon_remaining_now if is_repeat else message.epsilon_remaining
        self.is_new = True

    def news(self) -> str:
        """Return the developer's answers and budget, in words; "" if nothing changed since the last call."""
        if not self.is_new:
            return ""
        self.is_new = False
        budget = "" if self.left is None else f"; ε left: {number(self.left)}"
        return f"the developer has {count(self.answers, 'answer')}{budget}"


Caption: TypeAlias = Callable[[Story, Any, Parts], str]
"""A function that describes in words the first message of half a call, and the messages after it."""


def always(text: str) -> Caption:
    """Return the caption of a message whose content is always the same."""
    return lambda _story, _message, _rest: text


def dealt(caption: Caption) -> Caption:
    """Return a caption that describes the deal of a message, or the run's end if there is none."""

    def said(story: Story, message: Any, rest: Parts) -> str:
        return caption(story, message.deal, rest) if message.WhichOneof("part") == "deal" else "the run is over"

    return said


def shared() -> Mapping[str, Caption]:
    """Return the captions of messages that any game has, by message name."""
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
    """Return a deal's arrays, joined from their chunks; empty if not stored."""
    return collect(deal, rest) if rest is not None else {}


def array_of(message: array_pb2.Array) -> NDArray[Any] | None:
    """Return a decoded array; None if it is malformed."""
    try:
        return from_message(message)
    except ArrayError:
        return None


def count(number: int, thing: str) -> str:
    """Return a number with its noun."""
    plural = {"person": "people", "query": "queries"}.get(thing, f"{thing}s")
    return f"{number:,} {thing if number == 1 else plural}"


def number(value: float) -> str:
    """Return a number with three digits, a whole one whole, without an exponent where that stays short."""
    if not np.isfinite(value):
        return "∞" if value > 0 else str(value)
    rounded = value if float(value).is_integer() else float(f"{value:.3g}")
    if rounded and not 1e-5 <= abs(rounded) < 1e9:
        return f"{value:.3g}"
    return f"{int(rounded):,}" if float(rounded).is_integer() else f"{Decimal(repr(float(rounded))):,f}"
