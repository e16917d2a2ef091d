"""The messages of a session, trial by trial, as a page plays them.

A row is a list's entry for half a call: sender, receiver, method, label, words, and changes. Its details are what the
inspector shows: entries, fields, and both sides' copies.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from blake3 import blake3

from fairwall.wire.queries import deal_of as deal_of_case
from fairwall.wire.v1.visibility_pb2 import VISIBILITY_OUTSIDE
from sim.replay.captions import Half, halves, refusal, words
from sim.replay.differences import compared
from sim.replay.recorded import Session
from sim.transcripts.calls import TranscriptCall, all_calls, deal_of
from sim.transcripts.captions import Caption, Guess, Story, number
from sim.transcripts.files import CallKey, Message, Transcript, decode
from sim.transcripts.methods import short
from sim.viewer.blocks import Blobs, Blocks, Place
from sim.viewer.fields import Fields, Listed
from sim.viewer.visibility import Omitted, Sight

DETAILS_A_BLOCK = 64
"""Number of messages whose details are inflated together."""


class Where(NamedTuple):
    """A message in the page: its trial, and its number there, from 1."""

    trial: str
    message: int


@dataclass
class Reel:
    """The messages of one trial, or of a session without one: rows and details as in the page's data.

    ``entries`` has, for each party's copy of a message, the party, the first entry, and the message's number.
    """

    deal: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    details: list[dict[str, Any]] = field(default_factory=list)
    entries: list[tuple[str, int, int]] = field(default_factory=list)

    def write(self, blocks: Blocks) -> tuple[int, list[int]]:
        """Put rows and details into blocks; return the number of the rows' block, and those of the details."""
        rows = blocks.add(_json(self.rows))
        parts = range(0, len(self.details), DETAILS_A_BLOCK)
        return rows, [blocks.add(_json(self.details[start : start + DETAILS_A_BLOCK])) for start in parts]


def reels(
    scripts: Session, captions: Mapping[str, Caption], sight: Sight, blobs: Blobs, deal: str | None = None
) -> list[Reel]:
    """Return a session's messages by trial, each in causal order; only ``deal``'s, if given.

    Messages about no deal, such as to join, go with their caller's current or next trial. ``blobs`` gets the content of
    arrays.
    """
    seen = sight.session(scripts)
    told = halves(seen)
    maker = _Maker(seen, captions, sight, blobs)
    found: dict[str, Reel] = {}
    for half, own in zip(told, _deals(told), strict=True):
        if deal in (None, own):
            maker.add(found.setdefault(own, Reel(own)), half)
    return list(found.values())


def _deals(parts: Iterable[Half]) -> list[str]:
    """Return the deal of each half of a call."""
    known: dict[CallKey, str] = {}
    latest: dict[str, str] = {}
    deals: list[str] = []
    waiting: dict[str, list[int]] = {}
    for place, half in enumerate(parts):
        key = half.call.key
        if key not in known:
            try:
                known[key] = deal_of_case(deal_of(half.script, half.call))
            except ValueError:
                known[key] = ""
        own = known[key]
        if own:
            latest[key.caller] = own
            for earlier in waiting.pop(key.caller, ()):
                deals[earlier] = own
        elif key.caller not in latest:
            waiting.setdefault(key.caller, []).append(place)
        deals.append(own or latest.get(key.caller, ""))
    # A party may take no deal at all.
    first = next(filter(None, deals), "")
    return [deal or first for deal in deals]


class _Maker:
    """Makes rows and details of half calls, in order."""

    def __init__(self, scripts: Session, captions: Mapping[str, Caption], sight: Sight, blobs: Blobs) -> None:
        self._calls: dict[str, dict[CallKey, TranscriptCall]] = {
            party: {call.key: call for call in all_calls(script)} for party, script in scripts.items()
        }
        self._scripts = scripts
        self._captions = captions
        self._sight = sight
        self._blobs = blobs
        self._story = Story()
        self._deal: str | None = None
        self._told: tuple[int, float | None] = (0, None)

    def add(self, reel: Reel, half: Half) -> None:
        """Add half a call to a trial's messages."""
        if not half.messages and not refusal(half.call):
            return
        if reel.deal != self._deal:
            self._deal, self._told = reel.deal, (0, None)
        messages, omitted = self._read(half.script, half.messages)
        kind = "asks" if half.is_request else "answers" if half.messages else "refuses"
        text = refusal(half.call) if kind == "refuses" else self._words(half, messages, omitted)
        fields = self._fields(half.script, half.messages, messages, omitted)
        row = {
            "from": half.speaker,
            "to": half.hearer,
            "method": short(half.call.method),
            "kind": kind,
            "level": max((one[1] for one in fields), default=VISIBILITY_OUTSIDE),
            "text": text or f"{kind} {short(half.call.method)}",
            "digest": self._digest(half, messages, omitted) or text,
            **({} if text else {"routine": True}),
            **self._changes(fields),
        }
        reel.rows.append(row)
        reel.details.append(self._details(reel, half, fields, omitted))

    def _read(self, script: Transcript, messages: Iterable[Message]) -> tuple[list[Any], list[Omitted]]:
        """Decode messages without hidden fields; None for a malformed message."""
        decoded: list[Any] = []
        omitted: list[Omitted] = []
        for message in messages:
            one = decode(message.method, message.is_request, script.data(message))
            cleared = self._sight.clear(one) if one is not None else []
            omitted += cleared
            if not (cleared and decoded and not one.ListFields()):  # an emptied chunk
                decoded.append(one)
        return decoded, omitted

    def _words(self, half: Half, messages: list[Any], omitted: list[Omitted]) -> str:
        if messages[0] is None:
            return f"{short(half.call.method)}, which cannot be read"
        whole = half.script.stores_all(half.messages)
        self._story.guess = None
        rest = [one for one in messages[1:] if one is not None]
        text = words(self._story, self._captions, messages[0], rest if whole else None)
        if not whole:  # zeros replace bytes that are not stored
            self._story.guess = None
        return f"{type(messages[0]).__name__}, of which a part is left out" if omitted else text

    def _fields(
        self, script: Transcript, recorded: list[Message], messages: list[Any], omitted: list[Omitted]
    ) -> list[Listed]:
        by_digest = [(size, digest) for message in recorded for _, size, digest in message.large]
        unstored = [(size, digest) for size, digest in by_digest if not script.stores(digest)]

        def put(digest: bytes, data: bytes) -> Place | None:
            known = self._blobs.known(digest) or not script.stores(digest)
            return self._blobs.put(digest, data, None if known else script.packed(digest))

        # No digest of a hidden field must remain that could be taken for another field's.
        return Fields(put, [] if omitted else unstored).of([one for one in messages if one is not None], omitted)

    def _changes(self, fields: list[Listed]) -> dict[str, Any]:
        """Return a message's changes: arrays that the receiver holds, the developer's answers and budget, guesses."""
        changes: dict[str, Any] = {}
        arrays = [
            [path.rpartition(".")[2], level, value["shape"]]
            for path, level, value in fields
            if isinstance(value, dict) and "array" in value
        ]
        if arrays:
            changes["holds"] = arrays
        story = self._story
        now = (story.answers, story.left)
        if now != self._told:
            self._told = now
            changes["has"] = [story.answers, None if story.left is None else number(story.left)]
        story.is_new = False
        if story.guess is not None:
            changes["guess"] = self._guess(story.guess)
            story.guess = None
        return changes

    def _guess(self, guess: Guess) -> dict[str, Any]:
        found: dict[str, Any] = {"of": guess.of, "people": len(guess.made), "names": guess.names}
        for name in ("made", "before", "true"):
            values = getattr(guess, name)
            if values is not None and np.shape(values) == np.shape(guess.made):
                data = np.asarray(values, np.uint8).tobytes()
                found[name] = self._blobs.put(blake3(data).digest(), data)
        return found

    def _digest(self, half: Half, messages: list[Any], omitted: list[Omitted]) -> str:
        """Return a digest of each side's record, to compare with another run; of visible fields if some are hidden."""
        digest = blake3()
        read = [one for one in messages if one is not None]
        if omitted or any(compared(one) is not one for one in read):
            for message in read:
                digest.update(compared(message).SerializeToString(deterministic=True))
        else:
            copies = (calls.get(half.call.key) for _, calls in sorted(self._calls.items()))
            for call in filter(None, copies):
                for one in call.requests if half.is_request else call.answers:
                    digest.update(one.content + b"".join(large for _, _, large in one.large))
        return digest.hexdigest(length=8) if half.messages else ""

    def _details(self, reel: Reel, half: Half, fields: list[Listed], omitted: list[Omitted]) -> dict[str, Any]:
        entries: dict[str, list[int]] = {}
        copies: dict[str, list[Message]] = {}
        for party, calls in self._calls.items():
            call = calls.get(half.call.key)
            if call is None:
                continue
            messages = call.requests if half.is_request else call.answers
            if messages:
                entries[party], copies[party] = [messages[0].entry, messages[-1].entry], messages
            elif not half.messages and call.ending is not None:
                entries[party] = [call.ending.entry] * 2
        reel.entries += [(party, first, len(reel.rows)) for party, (first, _) in entries.items()]
        found: dict[str, Any] = {"call": str(half.call.key), "entries": entries, "fields": fields}
        if half.messages:
            found["messages"] = len(half.messages)
            if not omitted:
                found["bytes"] = sum(
                    len(message.content) + sum(size for _, size, _ in message.large) for message in half.messages
                )
        own = half.script.party
        for party, messages in copies.items():
            if party != own:
                same = len(messages) == len(half.messages)
                same = same and all(map(Message.says_the_same_as, half.messages, messages))
                found["copies"] = "same" if same else "differ"
                if found["copies"] == "differ":
                    decoded, gone = self._read(self._scripts[party], messages)
                    found["other"] = {
                        "party": party,
                        "fields": self._fields(self._scripts[party], messages, decoded, gone),
                    }
        found["of"] = own
        return found


class Places:
    """Finds the message that an entry of a transcript belongs to; ``entries`` has the first entry of each message."""

    def __init__(self, entries: Iterable[tuple[str, str, int, Where]]) -> None:
        self._found: dict[tuple[str, str], list[tuple[int, Where]]] = {}
        for session, party, entry, where in entries:
            self._found.setdefault((session, party), []).append((entry, where))
        for found in self._found.values():
            found.sort()

    def at(self, session: str, party: str, entry: int) -> Where | None:
        """Return the message that begins at an entry, or the last one that begins before it."""
        found = self._found.get((session, party), [])
        place = bisect_right(found, entry, key=lambda one: one[0])
        return found[place - 1][1] if place else None


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
