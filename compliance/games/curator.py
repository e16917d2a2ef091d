"""The curator game: compliance may cheat in its answers, and then opens its commitment.

A cheat changes one answer towards a larger gap, or gives it less noise than was paid for, on the mechanism's grid: an
answer by itself never reveals a cheat.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from compliance.answers.accounts import Accounts
from compliance.answers.audits import AuditCase, game_case
from compliance.games.audits import report_of
from compliance.games.picked_sample import nearest, picked
from compliance.games.trial import Around, Cards, OpenTrial, seed_of
from compliance.ledger.accountant import Budget
from compliance.mechanisms.laplace import LaplaceMechanism
from compliance.mechanisms.mechanism import BatchQuestion, Facts, MechanismAnswer
from compliance.noise.sampling import Noise, committed_noise
from compliance.records.people import Records
from fairwall.game.v1 import curator_service_pb2 as wire
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1.curator_service_pb2_grpc import CuratorServiceStub
from fairwall.laws.commitment import Commitment, commit, rows_of
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import generator
from fairwall.wire.metrics import name_of

HONEST, PICKED, MISLABELLED = "none", "picked", "mislabelled"


@dataclass(frozen=True)
class CheatInputs:
    """Inputs of a cheat at one request: the question, the honest release, the cheat's strength, and two ways to answer.

    ``anew`` draws noise that the request should not have; ``likewise`` uses the request's own.
    """

    question: BatchQuestion
    epsilon: float
    strength: int
    honest: MechanismAnswer
    anew: Callable[[BatchQuestion, float], MechanismAnswer]
    likewise: Callable[[BatchQuestion, float], MechanismAnswer]


Cheat: TypeAlias = Callable[[CheatInputs], MechanismAnswer]


def _best(inputs: CheatInputs) -> MechanismAnswer:
    """Draw `strength` noises in all, and answer with the largest."""
    others = (inputs.anew(inputs.question, inputs.epsilon) for _ in range(inputs.strength - 1))
    return max([inputs.honest, *others], key=lambda release: float(release.values[0]))


def _quiet(inputs: CheatInputs) -> MechanismAnswer:
    """Answer with `strength` times less noise than was paid for."""
    return inputs.likewise(inputs.question, inputs.epsilon * inputs.strength)


def _dropped(inputs: CheatInputs) -> MechanismAnswer:
    """Leave out `strength` disadvantaged people whom the model accepts."""
    records, (accepted, *_) = inputs.question.records, inputs.question.predictions
    out = np.flatnonzero((records.protected == 0) & (accepted == 1))[: inputs.strength]
    kept = np.delete(np.arange(records.people), out)
    return inputs.likewise(_asked_of(inputs, records.labels[kept], records.protected[kept], kept), inputs.epsilon)


def _relabelled(inputs: CheatInputs) -> MechanismAnswer:
    """Count `strength` advantaged people whom the model rejects as disadvantaged."""
    records, (accepted, *_) = inputs.question.records, inputs.question.predictions
    protected = records.protected.copy()
    protected[np.flatnonzero((protected == 1) & (accepted == 0))[: inputs.strength]] = 0
    everybody = np.arange(records.people)
    return inputs.likewise(_asked_of(inputs, records.labels, protected, everybody), inputs.epsilon)


def _asked_of(
    inputs: CheatInputs, labels: NDArray[np.uint8], protected: NDArray[np.uint8], kept: NDArray[np.intp]
) -> BatchQuestion:
    asked, records = inputs.question, inputs.question.records
    others = Records.imagined(labels, protected, records.metrics, records.minimum_group)
    return BatchQuestion(asked.metric, asked.predictions[:, kept], others)


CHEATS: dict[str, Cheat | None] = {
    HONEST: None,
    "best": _best,
    "quiet": _quiet,
    "dropped": _dropped,
    "relabelled": _relabelled,
    MISLABELLED: None,
    PICKED: None,
}
"""Changes of an answer by the cheat's name. ``mislabelled`` changes the records before, and ``picked`` a sample."""


@dataclass(frozen=True)
class CheatingMechanism(LaplaceMechanism):
    """The Laplace mechanism, except for a random share of the requests, which are cheated at."""

    cheat: str = HONEST
    strength: int = 1
    share: float = 1.0

    def noisy(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return an answer, honest or not. See `Noisy.noisy`."""
        before = copy.deepcopy(noise)
        honestly = super().noisy
        honest = honestly(question, facts, epsilon, delta, noise)
        cheat = CHEATS[self.cheat]
        if cheat is None or not noise.bernoulli(self.share, 1)[0]:
            return honest

        def answer(noise: Noise, question: BatchQuestion, epsilon: float) -> MechanismAnswer:
            return honestly(question, facts, epsilon, delta, noise)

        return cheat(
            CheatInputs(question, epsilon, self.strength, honest, partial(answer, noise), partial(answer, before)),
        )


@dataclass(frozen=True)
class Curator:
    """Compliance's state in a trial: the case that answers, and the secrets of its commitment."""

    case: AuditCase
    seed: bytes
    salt_key: bytes
    draw_sample: Callable[[], NDArray[np.float64]]

    @cached_property
    def sample(self) -> NDArray[np.float64]:
        """The sample of rows shown, by row number: drawn at first use."""
        return self.draw_sample()

    def commitment(self) -> Commitment:
        """Commit to the attributes that answers should be about, and to the seed of their noise."""
        records = self.case.records
        return commit(rows_of(records.labels), records.protected.tolist(), self.seed, self.salt_key)


def open_trial(deal: game.ComplianceDeal, cards: Cards, around: Around) -> OpenTrial:
    """Commit if the deal requires it, and open the audits of a test set."""
    curator, service = open_curator(deal, cards), CuratorServiceStub(around.referee)
    if deal.curator.committed:
        service.ReleaseCommitment(
            wire.ReleaseCommitmentRequest(
                deal_id=deal.deal_id, commitment=wire.Commitment(**vars(curator.commitment()))
            ),
            timeout=CALL_SECONDS,
        )

    def report() -> game.SubmitAuditReportRequest:
        service.SubmitOpening(
            wire.SubmitOpeningRequest(
                deal_id=deal.deal_id,
                attributes=to_message(curator.case.records.protected),
                seed=curator.seed,
                salt_key=curator.salt_key,
                sample=to_message(curator.sample),
            ),
            timeout=CALL_SECONDS,
        )
        return report_of(curator.case)

    return OpenTrial(Accounts(audits={deal.deal_id: curator.case}), report)


def open_curator(deal: game.ComplianceDeal, cards: Cards) -> Curator:
    """Open a deal's case, with its cheat."""
    dealt, audits, seed = deal.curator, deal.curator.audits, seed_of(deal)
    assert seed is not None, "a scenario of this game has seeded noise"
    labels, protected = (cards[name].astype(np.uint8, copy=True) for name in ("labels", "protected"))
    own = generator(hmac.digest(seed, b"cheat", hashlib.sha256))
    if dealt.cheat == MISLABELLED:
        protected[own.permutation(np.flatnonzero(protected == 1))[: dealt.strength]] = 0
    metrics = tuple(map(name_of, audits.metrics))
    records = Records(labels, protected, metrics, int(dealt.minimum_group))
    case = game_case(
        deal.deal_id,
        records,
        CheatingMechanism(cheat=dealt.cheat, strength=int(dealt.strength), share=dealt.share),
        Budget(audits.epsilon, audits.delta),
        audits.batch_delta,
        audits.queries_max,
        seed,
    )
    draw = partial(picked, records, dealt.sample, dealt.passes if dealt.cheat == PICKED else None, own)
    if "features" in cards:
        known = np.column_stack([cards["features"], labels, protected])
        draw = partial(nearest, draw, known, int(dealt.strength))
    return Curator(
        replace(case, noise_of=lambda request: committed_noise(seed, request.request_id)),
        seed,
        hmac.digest(seed, b"salts", hashlib.sha256),
        draw,
    )
