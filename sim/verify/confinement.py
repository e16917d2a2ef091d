"""Compares the confinement of each party in ``result.json`` with that in the parties' transcripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sim.transcripts.calls import all_calls
from sim.transcripts.files import Transcript
from sim.transcripts.methods import DEALS
from sim.verify.finding import VerifyFinding
from sim.verify.run_files import result_of

_Layers = list[dict[str, Any]]


def changed_confinement(
    folder: Path, sessions: Sequence[Mapping[str, Transcript]], notes: list[str]
) -> Iterator[VerifyFinding]:
    """Compare the layers of every start of the parties; ``notes`` gets what could not be compared."""
    result = result_of(folder)
    if result is None or not result.get("files"):
        return  # broken off, which is another finding
    starts = result.get("confinement")
    if not isinstance(starts, list) or not all(isinstance(start, dict) for start in starts):
        yield VerifyFinding("file", "result.json", "says not what confined the parties")
        return
    said = [{party: _layers(script) for party, script in session.items()} for session in sessions]
    if not any(layers for own in said for layers in own.values()):
        notes.append("not checked: what confined the parties, which their transcripts do not say")
        return

    @cache
    def fit(start: int, session: int) -> bool:
        """Return whether the starts from one on match the sessions from one on, in order."""
        if session == len(said):
            return start == len(starts)
        if start < len(starts) and _unlike(starts[start], said[session]) is None and fit(start + 1, session + 1):
            return True
        return not _was_played(sessions[session]) and fit(start, session + 1)

    if fit(0, 0):
        return
    texts = [text for start, own in zip(starts, said, strict=False) if (text := _unlike(start, own)) is not None]
    if len(starts) == len(said) and texts:
        yield VerifyFinding("reported", "result.json", f"confinement: {texts[0]}")
    else:
        text = f"confinement: parties were started {len(starts)} times, and their transcripts tell of {len(said)}"
        yield VerifyFinding("reported", "result.json", text + "".join(f"; {one}" for one in texts[:1]))


def _layers(script: Transcript) -> _Layers:
    layers = script.header.layers if script.header is not None else ()
    return [{"name": layer.name, "active": layer.active, "why_not": layer.why_not} for layer in layers]


def _unlike(start: Mapping[str, Any], recorded: Mapping[str, _Layers]) -> str | None:
    """Return the first difference between a session's transcripts and the result's start; None if there is none."""
    for party, own in recorded.items():
        if start.get(party) != own:
            return f"{party} was confined by {_written(start.get(party))}, and its transcript says {_written(own)}"
    return None


def _written(layers: Any) -> str:
    """Return layers on one line; malformed layers count as none."""
    try:
        return ", ".join(f"{one['name']}" + f" (not active: {one['why_not']})" * (not one["active"]) for one in layers)
    except (TypeError, KeyError):
        return "no layers"


def _was_played(session: Mapping[str, Transcript]) -> bool:
    """Return whether a deal was requested, and the referee lived to record the confinement.

    If a party died before it was ready, or the whole run was killed, there may be no record.
    """
    referee = session.get("referee")
    return referee is not None and referee.closed and any(call.method in DEALS for call in all_calls(referee))
