"""Prints a recorded game message by message: who sends what to whom, and what the developer knows by then.

The order is causal (`sim.transcripts.calls.in_order`): no message is received before it is sent. Polls (calls that were
only told to ask again) and answers without content are left out.
"""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import typer

from sim.transcripts.calls import TranscriptCall, calls, in_order
from sim.transcripts.captions import Caption, Parts, Story
from sim.transcripts.files import CallKey, Message, Transcript, decode
from sim.transcripts.methods import short

WIDTH = 80
_NUMBER, _NAMES = 5, 26


@dataclass(frozen=True)
class Saying:
    """A line of the printed game, numbered from 1 in its session: a message from one party to another.

    ``knows`` describes what the developer has by now; empty if nothing changed.
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


def watch(sessions: list[dict[str, Transcript]], captions: Mapping[str, Caption], wait: Callable[[], None]) -> None:
    """Print sessions message by message, in the words of `captions`, and call `wait` after each."""
    for number, scripts in enumerate(sessions, start=1):
        if len(sessions) > 1:
            typer.echo(f"The parties are started, time {number}.")
        for saying in sayings(scripts, captions):
            typer.echo(str(saying))
            wait()


def pace(*, speed: float | None, step: bool) -> Callable[[], None]:
    """Return a function that waits between messages: for Enter, for a time, or not at all."""
    if step:
        return lambda: _enter(sys.stdin.readline())
    return lambda: time.sleep(1 / speed if speed else 0)


def _enter(line: str) -> None:
    if not line:  # end of the input
        raise typer.Exit(0)


def sayings(scripts: Mapping[str, Transcript], captions: Mapping[str, Caption]) -> Iterator[Saying]:
    """Yield a session's lines; the messages of a stream make one line."""
    story = Story()
    number = 0
    for half in halves(scripts):
        text = _told(story, captions, half) if half.messages else refusal(half.call)
        if text:
            number += 1
            yield Saying(number, half.speaker, half.hearer, text, story.news())


class Half(NamedTuple):
    """The requests or the answers of a call, from the transcript in which they stand first."""

    speaker: str
    hearer: str
    call: TranscriptCall
    is_request: bool
    script: Transcript

    @property
    def messages(self) -> list[Message]:
        """The messages of this half of the call; none for a refusal."""
        return self.call.requests if self.is_request else self.call.answers


def halves(scripts: Mapping[str, Transcript]) -> list[Half]:
    """Return both halves of each call once, requests and answers, in causal order."""
    places = {where: number for number, where in enumerate(in_order(scripts))}
    found: dict[tuple[CallKey, bool], tuple[float, Half]] = {}
    for party, script in scripts.items():
        for call in calls(script):
            if call.is_poll(script):
                continue
            caller, answerer = call.key.caller or "a stranger", call.key.server
            asked = max((places[party, message.entry] for message in call.requests), default=0)
            # A refusal is no message, and comes right after the refused request.
            answered = max((places[party, message.entry] for message in call.answers), default=asked + 0.5)
            halves = ((True, asked, caller, answerer), (False, answered, answerer, caller))
            for is_request, place, speaker, hearer in halves:
                part = (place, Half(speaker, hearer, call, is_request, script))
                # A message counts as sent: the earlier of its places in the two transcripts.
                known = found.get((call.key, is_request))
                found[call.key, is_request] = part if known is None or place < known[0] else known
    return [part for _, part in sorted(found.values(), key=lambda placed: placed[0])]


def refusal(call: TranscriptCall) -> str:
    """Return why a call was refused; "" if it was not."""
    return f"refuses: {call.ending.refusal}" if call.ending is not None and call.ending.status else ""


def _told(story: Story, captions: Mapping[str, Caption], half: Half) -> str:
    """Return the caption of half a call's messages."""
    call, is_request, script, messages = half.call, half.is_request, half.script, half.messages
    first = decode(call.method, is_request, script.data(messages[0]))
    if first is None:
        return f"{short(call.method)}, which cannot be read"
    rest = (decode(call.method, is_request, script.data(message)) for message in messages[1:])
    return words(story, captions, first, rest if script.stores_all(messages) else None)


def words(story: Story, captions: Mapping[str, Caption], first: Any, rest: Parts) -> str:
    """Return the caption of a message and those after it; "" if its type has none."""
    name = type(first).__name__
    if name not in captions:
        return ""
    try:
        return captions[name](story, first, rest)
    except (ValueError, LookupError):  # anything that a party sends is recorded, nonsense too
        return f"{name}, which makes no sense"
