"""Another decoder on the answers already given: what could have been learned from a log."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from developer.reveal.strategies import STRATEGIES
from fairwall.game.v1 import reveal_service_pb2 as game
from fairwall.rpc.arrays import from_message
from fairwall.rpc.turns import collect
from fairwall.wire.metrics import name_of
from sim.games.reveal.score import RevealScore, score
from sim.play.launch import PartyDied
from sim.replay.alone import play_alone
from sim.replay.differences import differences
from sim.replay.playing import circumstances, demand, new_folder
from sim.replay.recorded import Recorded, ReplayError, Session, deals_of, require_answers
from sim.transcripts.calls import calls
from sim.transcripts.files import Transcript, decode, paths, read
from sim.transcripts.methods import short


@dataclass(frozen=True)
class Decoded:
    """What a decoder made of a trial's recorded answers, beside what the recorded one did, and no query at all."""

    deal_id: str
    strategy: str
    queries: int
    epsilon: float
    leakage: float
    baseline_leakage: float
    recorded_decoder: str
    recorded_leakage: float


def decoded(recorded: Recorded, decoder: str) -> list[Decoded]:
    """Run the developer alone with another decoder, on the answers already given: what could have been learned.

    There is no compliance process, and nothing is charged.

    Returns
    -------
    list of Decoded
        One a trial.

    Raises
    ------
    ReplayError
        If the strategy takes no such decoder, or the answers are not all in the log: it was kept by digest, was broken
        off, or the strategy asks other questions with this decoder.
    ConfinementMissing
        If a layer is not active around the developer that the scenario demands.
    PartyDied
        If the developer fails.
    """
    if recorded.sweep.scenario.scenario.game != "reveal":
        raise ReplayError(f"{recorded.folder}: the inference game has no decoder; --decoder is for the reveal game")
    require_answers(recorded, "developer")
    found = []
    for session in recorded.finished:
        script = session["developer"]
        deals = {deal.deal_id: deal for _, deal, _ in deals_of(script, "Developer")}
        for deal in deals.values():
            allowed = STRATEGIES[deal.strategy].decoders
            if decoder not in allowed:
                works = f"works with {' or '.join(allowed)}" if allowed else "reads the answers itself"
                raise ReplayError(f"--decoder: strategy {deal.strategy} {works}, not with {decoder!r}")
        told = _secrets(recorded, session)
        with tempfile.TemporaryDirectory(prefix="fairwall-replay-") as place:
            folder = new_folder(place, recorded)
            failure = play_alone(script, folder, demand(recorded), lambda answer: _with_decoder(answer, decoder))
            (now,) = (read(path) for path in paths(folder.path))
            same_machine = circumstances(session, {"developer": now})[1]
            for one in differences(script, now, bit_for_bit=same_machine):
                if one.is_sent and one.server == "compliance":
                    raise ReplayError(
                        f"--decoder: these answers are not in the log: with {decoder} the developer asks other "
                        f"questions ({one})"
                    )
            before, after = _guesses(script), _guesses(now)
        for deal_id, guess in before.items():
            if deal_id not in after:
                raise PartyDied(failure or "developer did not submit its guess")
            deal = deals[deal_id]
            scores = [_score(deal, told[deal_id], submitted) for submitted in (after[deal_id], guess)]
            found.append(
                Decoded(
                    deal_id=deal_id,
                    strategy=deal.strategy,
                    queries=guess.queries,
                    epsilon=deal.epsilon,
                    leakage=scores[0].leakage,
                    baseline_leakage=scores[0].baseline_leakage,
                    recorded_decoder=deal.decoder,
                    recorded_leakage=scores[1].leakage,
                )
            )
    return found


def _with_decoder(answer: Any, decoder: str) -> None:
    """Change a deal on its way to the developer."""
    if isinstance(answer, game.TakeDeveloperDealResponse) and answer.WhichOneof("part") == "deal":
        answer.deal.decoder = decoder


def _guesses(script: Transcript) -> dict[str, game.SubmitRevealRequest]:
    """Give what the developer submitted, by deal."""
    found = {}
    for call in calls(script):
        if short(call.method) == "SubmitReveal":
            request = decode(call.method, True, script.data(call.requests[0]))
            found[request.deal_id] = request
    return found


def _secrets(recorded: Recorded, session: Session) -> dict[str, tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
    """Give labels and protected attributes by deal, as compliance was dealt them: to score by, and to nobody."""
    if "compliance" not in session:
        raise ReplayError(f"{recorded.folder}: there is no transcript of compliance's to score by")
    found = {}
    for _, deal, parts in deals_of(session["compliance"], "Compliance"):
        cards = collect(deal, parts)
        found[deal.deal_id] = (cards["labels"].astype(np.uint8), cards["protected"].astype(np.uint8))
    return found


def _score(
    deal: game.DeveloperDeal,
    told: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    guess: game.SubmitRevealRequest,
) -> RevealScore:
    labels, protected = told
    guessed, baseline, targeted = (from_message(part) for part in (guess.guess, guess.baseline, guess.targeted))
    return score(
        name_of(deal.metric),
        labels,
        protected,
        guessed.astype(np.uint8),
        baseline.astype(np.uint8),
        targeted.astype(np.bool_),
        guess.polarity_known,
    )
