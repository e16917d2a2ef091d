"""Replay with another decoder on the recorded answers: how much could be learned from a log."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairwall.arrays import Bytes
from fairwall.plugins import require
from fairwall.rpc.turns import collect
from sim.games import GAMES
from sim.play.launch import PartyDied, Plugged
from sim.replay.alone import play_alone
from sim.replay.differences import differences
from sim.replay.playing import circumstances, demand, new_folder
from sim.replay.recorded import Recorded, ReplayError, Session, deals_of, require_answers, require_ours
from sim.report.notation import setting, symbol
from sim.runs.folder import RunFolder
from sim.runs.trials import schedule
from sim.transcripts.calls import calls
from sim.transcripts.files import Transcript, decode, paths, read
from sim.transcripts.methods import short


@dataclass(frozen=True)
class Decoded:
    """The result of another decoder on a trial's recorded answers, with the recorded one's and that of no query."""

    deal_id: str
    cell: str
    strategy: str
    queries: int
    epsilon: float
    leakage: float
    baseline_leakage: float
    recorded_decoder: str
    recorded_leakage: float


def decoded(recorded: Recorded, decoder: str) -> list[Decoded]:
    """Run the developer alone with another decoder on the recorded answers, uncharged; return a result per trial."""
    redecoding = GAMES[recorded.sweep.game].redecoding
    if redecoding is None:
        raise ReplayError(f"{recorded.folder}: the {recorded.sweep.game} game has no decoder to change")
    rename = redecoding.rename
    require_ours(recorded, "developer")
    require_answers(recorded, "developer")
    require(RunFolder(recorded.folder, recorded.run).plugins())
    cells = {f"deal-{number}": _named(cell.swept) for cell, _, number in schedule(recorded.sweep)}
    found = []
    for session in recorded.finished:
        script = session["developer"]
        deals = {deal.deal_id: deal for _, deal, _ in deals_of(script, redecoding.deal)}
        for deal in deals.values():
            if (why := redecoding.refusal(deal, decoder)) is not None:
                raise ReplayError(f"--decoder: {why}")
        told = _secrets(recorded, session)
        plugged = Plugged.of(recorded.sweep, decoder)
        with tempfile.TemporaryDirectory(prefix="fairwall-replay-") as place:
            folder = new_folder(place, recorded, session)
            failure = play_alone(script, folder, demand(recorded), lambda answer: rename(answer, decoder), plugged)
            (now,) = (read(path) for path in paths(folder.path))
            same_bits = circumstances(session, {"developer": now})[1]
            for one in differences(script, now, bit_for_bit=same_bits):
                if one.is_sent and one.server == "compliance":
                    raise ReplayError(
                        f"--decoder: these answers are not in the log: with {decoder} the developer asks other "
                        f"questions ({one})"
                    )
            before, after = (_submitted(one, redecoding.submission) for one in (script, now))
        for deal_id, guess in before.items():
            if deal_id not in after:
                raise PartyDied(failure or "developer did not submit its guess")
            deal = deals[deal_id]
            leakage, baseline = redecoding.score(deal, *told[deal_id], after[deal_id])
            found.append(
                Decoded(
                    deal_id=deal_id,
                    cell=cells[deal_id],
                    strategy=deal.strategy,
                    queries=guess.queries,
                    epsilon=deal.epsilon,
                    leakage=leakage,
                    baseline_leakage=baseline,
                    recorded_decoder=deal.decoder,
                    recorded_leakage=redecoding.score(deal, *told[deal_id], guess)[0],
                )
            )
    return found


def _named(swept: Mapping[str, Any]) -> str:
    told = [
        setting(value) if isinstance(value, str) and value != "inf" else f"{symbol(key)} {setting(value)}"
        for key, value in swept.items()
    ]
    return ", ".join(told) or "the run"


def _submitted(script: Transcript, method: str) -> dict[str, Any]:
    """Return the developer's submissions by deal."""
    found = {}
    for call in calls(script):
        if short(call.method) == method:
            request = decode(call.method, True, script.data(call.requests[0]))
            found[request.deal_id] = request
    return found


def _secrets(recorded: Recorded, session: Session) -> dict[str, tuple[Bytes, Bytes]]:
    """Return labels and protected attributes by deal, as compliance was dealt them: only for scoring, for no party."""
    if "compliance" not in session:
        raise ReplayError(f"{recorded.folder}: there is no transcript of compliance's to score by")
    found = {}
    for _, deal, parts in deals_of(session["compliance"], "Compliance"):
        cards = collect(deal, parts)
        found[deal.deal_id] = (cards["labels"].astype(np.uint8), cards["protected"].astype(np.uint8))
    return found
