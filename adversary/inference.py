"""The adversary in the inference game: it queries the released models, trains shadow models, and guesses the bits.

Shadow models are models that the adversary trains on its own rows, with bits that it knows.

The adversary first sets its probes aside, because a model answers differently about its training rows, and no victim
was trained on the adversary's. On the remaining rows it trains shadows of both bits with the defence that it assumes:
``none``, or, where it adapts, the declared one (Kerckhoffs: the algorithm and its settings are public, the rows and the
seeds are not).

Victims differ in their rows, not only in their seeds. Where the settings draw every model's rows, so do the shadows;
where a victim is trained on all rows of its table, the adversary, which has one table only, may train each few shadows
on a share of it. Alone this is no gain: a network trained on fewer rows gives more certain answers. On Adult (two
splits, 40 victims) the divergence attack was right about 35 with shadows trained on all rows, and about 24 with a share
of 0.6. Drawing with replacement is no better (one split: 16 of 20, against 20 of 20 with all rows).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from adversary.attacks import ATTACKS
from adversary.attacks.attack import Form, ShadowEvidence
from adversary.play import predict
from fairwall.arrays import Bytes, Floats
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceStub
from fairwall.game.v1 import inference_service_pb2 as inference
from fairwall.game.v1.inference_service_pb2_grpc import InferenceServiceStub
from fairwall.learning import Ensemble, together
from fairwall.learning.defences import DEFENCES, Defence, Settings, TrainingSplit
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import Seat, deals
from fairwall.wire.training import settings_of

LOG = logging.getLogger(__name__)

# Shadows trained on one draw: enough to share a matrix product.
TOGETHER = 8


@dataclass(frozen=True, eq=False)
class Probes:
    """Probes, equally many of each group (1 = advantaged), and the remaining rows for training."""

    features: Floats
    labels: Bytes
    group: Bytes
    rest: TrainingSplit


@dataclass(frozen=True, eq=False)
class Shadows:
    """Shadow models and their bits, (S,), with the seed of their rows and training."""

    models: Ensemble
    bits: Bytes
    seed: int

    def evidence(self, probes: Probes) -> ShadowEvidence:
        """Return the evidence with all shadows' scores at the probes."""
        scores = self.models.scores(probes.features)
        return ShadowEvidence(probes.labels, probes.group, self.bits, scores, self.seed)


def set_aside(rows: TrainingSplit, budget: int, seed: int) -> Probes:
    """Draw the probes, equally many of each group, the disadvantaged first.

    At most `budget`, at least 2, are drawn, and at most half of a group's rows; each group needs at least 2 rows.
    """
    group = rows.groups[0]
    each = min(budget // 2, *(int((group == a).sum()) // 2 for a in (0, 1)))
    if each < 1:
        raise ValueError("probes need a budget of at least 2, and at least 2 rows of each group")
    rng = np.random.default_rng([seed, 0])
    chosen = np.concatenate([rng.choice(np.flatnonzero(group == a), each, replace=False) for a in (0, 1)])
    rest = np.setdiff1d(np.arange(len(group)), chosen)
    return Probes(rows.features[chosen], rows.labels[chosen], group[chosen], rows.take(rest))


def train_shadows(
    rows: TrainingSplit,
    count: int,
    seed: int,
    defence: Defence,
    settings: Settings,
    *,
    share: float = 1.0,
) -> Shadows:
    """Train `count` shadow models, at least 2, half for each bit, with the defence assumed of the developer.

    `share`, in (0, 1], of each group's rows is drawn without replacement for every `TOGETHER` shadows. With 1 all
    shadows train on the same rows, from which ``settings.rows`` may still draw each model's.
    """
    if count < 2 or not 0 < share <= 1:
        raise ValueError("attacks that train need a shadow model of each bit, and a share of the rows in (0, 1]")
    bits = np.arange(count, dtype=np.uint8) % 2
    rng = np.random.default_rng([seed, 1])
    seeds = rng.integers(2**62, size=count).tolist()
    step = TOGETHER if share < 1 else count
    models: list[Ensemble] = []
    for first in range(0, count, step):
        chosen = slice(first, min(first + step, count))
        drawn = _drawn(rows, share, rng) if share < 1 else rows
        models.append(defence(drawn, bits[chosen], seeds[chosen], settings))
    return Shadows(together(models), bits, seed)


def _drawn(split: TrainingSplit, share: float, rng: np.random.Generator) -> TrainingSplit:
    """Draw a share of each group's rows, at least one row."""
    members = [np.flatnonzero(split.groups[0] == a) for a in (0, 1)]
    rows = [rng.choice(member, max(round(share * len(member)), 1), replace=False) for member in members]
    return split.take(np.concatenate(rows))


def play(seat: Seat) -> None:
    """Attack the released models of every trial."""
    referee = InferenceServiceStub(seat.referee)
    with seat.reach("developer") as connection:
        models = ModelServiceStub(connection)
        for deal, cards in deals(referee.TakeAttackDeal, inference.TakeAttackDealRequest):
            own = TrainingSplit(
                cards["features"].astype(np.float64, copy=False),
                cards["labels"].astype(np.uint8, copy=False),
                cards["groups"].astype(np.uint8, copy=False),
            )
            seed = int.from_bytes(deal.seed, "big")
            probes = set_aside(own, deal.probes, seed)
            LOG.info("deal %s: %d models, %d probes", deal.deal_id, deal.models, len(probes.labels))
            answers = np.stack([predict(models, deal.deal_id, probes.features, k) for k in range(deal.models)])
            if any(ATTACKS[name].shadows for name in deal.attacks):
                defence = DEFENCES[deal.training.defence if deal.adapts else "none"]
                shadows = train_shadows(probes.rest, deal.shadows, seed, defence, settings_of(deal.training))
                evidence = shadows.evidence(probes)
            else:
                none = np.empty((0, len(probes.labels)))
                evidence = ShadowEvidence(probes.labels, probes.group, np.empty(0, np.uint8), none)
            form: Form = "labels" if deal.labels_only else "scores"
            guesses = np.stack([ATTACKS[name].guess(evidence, answers, form).bits for name in deal.attacks])
            referee.SubmitGuesses(
                inference.SubmitGuessesRequest(deal_id=deal.deal_id, guesses=to_message(guesses.astype(np.uint8))),
                timeout=CALL_SECONDS,
            )
