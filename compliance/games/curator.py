"""The curator game: compliance may cheat in its answers, and then opens its commitment.

A cheat changes one answer towards a larger gap, or gives it less noise than was paid for, on the mechanism's grid: an
answer by itself never reveals a cheat.

**A sample of rows that pretends to represent all**: honest, or picked so that its groups get label 1 about as often.
The picked sample follows the law nearest to the rows' own in Kullback-Leibler divergence, among all with a gap of the
groups' rates of at most ``passes``: the hardest to detect by a sample. By the chain rule the divergence is that of the
four cells of group and label, plus the mean over cells of that within each cell. The gap depends on cells alone, so the
second part is 0: within a cell rows are drawn at random (arXiv 2507.20708 projects so, too). Groups keep their shares
in the sample, and with the disadvantaged group's rate q0, the advantaged group's q1 and the rows' own p0 and p1, it
remains to minimise n0 KL(q0, p0) + n1 KL(q1, p1): over whole counts, by trying them all.

A cheat with the rows' features may draw several samples and keep the one nearest to all rows by the energy distance: an
honest sample is farther from them, and so tests of all columns together flag it more often.
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
from compliance.games.trial import Around, Cards, OpenTrial, seed_of
from compliance.ledger.accountant import Budget
from compliance.mechanisms.mechanism import BatchQuestion, Facts, MechanismAnswer
from compliance.mechanisms.noise_on_gaps import LaplaceMechanism
from compliance.noise.sampling import Noise, committed_noise
from compliance.records.people import Records
from fairwall.arrays import Bytes, Floats, Ints
from fairwall.game.v1 import curator_service_pb2 as wire
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1.curator_service_pb2_grpc import CuratorServiceStub
from fairwall.laws.studies.commitment import Commitment, commit, rows_of
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import generator
from fairwall.wire.metrics import name_of


def picked(records: Records, rows: int, passes: float | None, rng: np.random.Generator) -> Floats:
    """Return the numbers, from 0, of `rows` rows drawn without replacement; empty for 0.

    ValueError if no such sample of these rows exists.

    `passes`: the largest gap in labels, advantaged less disadvantaged, that the sample may have; None draws it
    honestly.
    """
    if passes is None or rows == 0:
        return rng.choice(records.people, rows, replace=False).astype(np.float64)
    labels, protected = records.labels, records.protected
    members = [np.flatnonzero((protected == group) & (labels == label)) for group in (0, 1) for label in (0, 1)]
    counts = cells(np.array([len(one) for one in members]), rows, passes)
    drawn = [rng.choice(one, count, replace=False) for one, count in zip(members, counts.tolist(), strict=True)]
    return rng.permutation(np.concatenate(drawn)).astype(np.float64)


def nearest(draw: Callable[[], Floats], rows: Floats, draws: int) -> Floats:
    """Return, of `draws` samples, the one nearest to all rows by the energy distance.

    `draw`: draws a sample: the numbers of its rows. `rows`: known values of each row, shape (rows, columns); columns
    are scaled by their standard deviations. `draws`: at least 1.
    """
    from scipy.spatial.distance import cdist, pdist

    varied = rows[:, rows.std(axis=0) > 0]
    scaled = varied / varied.std(axis=0)
    # In parts: all distances at once may exceed memory.
    parts = np.array_split(scaled, 1 + len(rows) // 500)
    from_all = np.concatenate([cdist(part, scaled).mean(axis=1) for part in parts])

    def distance(sample: Floats) -> float:
        chosen = sample.astype(np.intp)
        return float(2 * from_all[chosen].mean() - 2 * pdist(scaled[chosen]).sum() / len(chosen) ** 2)

    return min((draw() for _ in range(draws)), key=distance)


def cells(there: Ints, rows: int, passes: float) -> Ints:
    """Return the number of rows of each cell in the nearest sample that passes.

    ``there`` has the numbers of all rows, shape (4,): disadvantaged with label 0 and 1, then advantaged. ValueError if
    no sample of this size passes.
    """
    (out0, in0), (out1, in1) = there.reshape(2, 2).tolist()
    n0 = round(rows * (out0 + in0) / there.sum())
    n1 = rows - n0
    x1 = np.arange(n1 + 1)
    # For each count of the advantaged the least count of the disadvantaged that passes; larger ones are farther away.
    least = np.ceil(n0 * (x1 / max(n1, 1) - passes) - 1e-9)
    x0 = np.maximum(least, round(n0 * in0 / max(out0 + in0, 1))).astype(np.int64)
    fits = (x0 <= min(n0, in0)) & (n0 - x0 <= out0) & (x1 <= in1) & (n1 - x1 <= out1)
    if not fits.any() or min(n0, n1) == 0:
        raise ValueError("no sample of so many rows passes")
    apart = _divergence(x0, n0, in0 / (out0 + in0)) + _divergence(x1, n1, in1 / (out1 + in1))
    best = int(np.argmin(np.where(fits, apart, np.inf)))
    return np.array([n0 - x0[best], x0[best], n1 - x1[best], x1[best]])


def _divergence(hits: Ints, of: int, rate: float) -> Floats:
    """Return n KL(x/n, rate) for each number of hits."""
    from scipy.special import rel_entr

    return np.asarray(rel_entr(hits, of * rate) + rel_entr(of - hits, of * (1 - rate)))


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


def _asked_of(inputs: CheatInputs, labels: Bytes, protected: Bytes, kept: NDArray[np.intp]) -> BatchQuestion:
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
    draw_sample: Callable[[], Floats]

    @cached_property
    def sample(self) -> Floats:
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
