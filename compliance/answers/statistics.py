"""Noisy sums by group over the people of a training set: compliance sums the rows that a developer sends, at a cost.

**Sensitivity.** An answer is, for both groups, the sum of their rows r, of norm 1 at most, and their sizes. If one
person's A flips, (r, 1) moves from one group to the other: the answer moves by sqrt(2) |(r, 1)| <= 2. If one record is
added or removed, it moves by |(r, 1)| <= sqrt(2).

**Composition.** Every answer is Gaussian noise on a vector, with its own multiplier. The answers compose exactly
(`Rule.TIGHT`), also where requests depend on earlier answers.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import grpc
import numpy as np
from blake3 import blake3

from compliance.answers.audit_service import check_request_id, developer_of, explained
from compliance.answers.charging import game_ledger
from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Loss, LossKind, Neighbours, Rule
from compliance.ledger.entries import LedgerEntry, Reply, Request
from compliance.noise.sampling import GAUSSIAN_FINENESS, ROUNDING_STEPS, noise_for, step_for
from fairwall.arrays import Bytes, Floats
from fairwall.compliance.v1 import statistics_service_pb2 as wire
from fairwall.compliance.v1.statistics_service_pb2_grpc import StatisticsServiceServicer
from fairwall.laws.noise.gaussian import gaussian_epsilon
from fairwall.rpc import arrays
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import array_pb2, error_pb2

SENSITIVITY = 2.0
"""l2 sensitivity of an answer to one person's A, in the ledger's unit."""

_GRID = 1 + 2.0**-20
"""Factor on the noise, far more than the grid changes a Gaussian distribution, see `fairwall.laws.noise.gaussian`."""


@dataclass(frozen=True, eq=False)
class Cohort:
    """The protected attributes of the training set's people, and the ledger that pays for sums by group.

    `dataset`: the people's name in the ledger. `protected`: shape (people,); 1 is advantaged. `ledger`: holds a budget
    for the data set, and the developer's share of it. `seed`: of the noise; None draws it from the operating system.
    """

    dataset: str
    protected: Bytes = field(repr=False)
    ledger: Ledger = field(repr=False)
    delta: float
    seed: bytes | None = field(repr=False)

    @property
    def spent(self) -> float:
        """Epsilon spent of the budget."""
        return self.ledger.standing(self.dataset).spent

    def answer(self, developer: str, request_id: str, digest: bytes, rows: Floats, multiplier: float) -> LedgerEntry:
        """Charge sums and draw them, or return the stored ones of the same request: they are never drawn twice.

        Refusal, LedgerError or LedgerUnavailable as `Ledger.settle`.
        """
        request = Request(
            self.dataset,
            developer,
            request_id,
            digest,
            "sums",
            "gaussian",
            Neighbours.A_FLIP,
            self.loss(multiplier),
        )
        return self.ledger.settle(request, lambda _: Reply(self.summed(request_id, rows, multiplier).tobytes(), b""))

    def loss(self, multiplier: float) -> Loss:
        """Return the loss of sums with noise of `multiplier` sensitivities, in epsilon at the budget's delta."""
        return Loss(gaussian_epsilon(multiplier, self.delta), self.delta, LossKind.GAUSSIAN, multiplier)

    def sums(self, entry: LedgerEntry) -> Floats:
        """Return the released sums, shape (2, width + 1)."""
        return np.frombuffer(entry.reply.answer, np.float64).reshape(2, -1)

    def exact(self, rows: Floats) -> Floats:
        """Return the sums without noise, shape (2, width + 1)."""
        # Contiguous columns are summed pairwise by numpy, with an error far below the grid's step (`step_for`).
        ones = np.column_stack([rows, np.ones(len(rows))])
        return np.stack([np.ascontiguousarray(ones[self.protected == group].T).sum(axis=1) for group in (0, 1)])

    def summed(self, request_id: str, rows: Floats, multiplier: float) -> Floats:
        """Return noisy sums; with a seed, the noise is a function of the seed and the request alone.

        `rows`: shape (people, width), each of norm 1 at most. `multiplier`: the noise's standard deviation over
        `SENSITIVITY`, above 0.
        """
        exact = self.exact(rows)
        step = step_for(multiplier * SENSITIVITY, GAUSSIAN_FINENESS, float(max(len(rows), 1)))
        # Rounding adds this much to the distance between two neighbours' answers.
        sigma = multiplier * _GRID * (SENSITIVITY + ROUNDING_STEPS * step * math.sqrt(exact.size))
        noise = noise_for(self.seed, request_id)
        return noise.gaussian(exact.reshape(-1), sigma, step).reshape(exact.shape)


def game_cohort(dataset: str, protected: Bytes, epsilon: float, delta: float, seed: bytes | None) -> Cohort:
    """Open a game's cohort with a budget of (epsilon, delta), in a ledger in memory."""
    ledger = game_ledger(dataset, Neighbours.A_FLIP, Budget(epsilon, delta, Rule.TIGHT))
    return Cohort(dataset, protected, ledger, delta, seed)


LOG = logging.getLogger(__name__)

WIDTH_MAX = 4096
MULTIPLIER_MIN, MULTIPLIER_MAX = 1e-3, 1e9
"""Range of multipliers: less noise costs more than any budget; more leaves nothing of the largest sum."""

_LONGEST = 1 + 1e-9
"""Largest norm accepted, for rows of norm 1 with rounded numbers. Norms above 1 are scaled down to 1."""


class StatisticsService(StatisticsServiceServicer):
    """The gRPC service that sums rows by group for the open deals.

    `cohorts`: by deal id; the caller adds and removes them.
    """

    def __init__(self, cohorts: Mapping[str, Cohort]) -> None:
        self._cohorts = cohorts

    def SumByGroup(
        self, request_iterator: Iterator[wire.SumByGroupRequest], context: grpc.ServicerContext
    ) -> wire.SumByGroupResponse:
        """Return noisy sums by group."""
        header = arrays.first_header(request_iterator)
        cohort = self._cohorts.get(header.deal_id)
        if cohort is None:
            raise Refusal(error_pb2.REASON_DEAL_UNKNOWN)
        check_request_id(header.request_id)
        if not MULTIPLIER_MIN <= header.multiplier <= MULTIPLIER_MAX:
            raise Refusal(error_pb2.REASON_EPSILON_INVALID)
        rows = _receive(header.rows, request_iterator, len(cohort.protected))
        digest = blake3(header.SerializeToString(deterministic=True) + rows.tobytes()).digest()
        with explained(header.deal_id):
            entry = cohort.answer(developer_of(context), header.request_id, digest, rows, header.multiplier)
        LOG.info("deal %s: told sums of %d columns", header.deal_id, rows.shape[1])
        return wire.SumByGroupResponse(
            sums=arrays.to_message(cohort.sums(entry)),
            epsilon_charged=entry.request.loss.epsilon,
            epsilon_remaining=entry.remaining,
        )


def _receive(header: array_pb2.ArrayHeader, requests: Iterator[wire.SumByGroupRequest], people: int) -> Floats:
    shape = tuple(header.shape)
    if len(shape) != 2 or shape[0] != people or not 1 <= shape[1] <= WIDTH_MAX:
        raise Refusal(error_pb2.REASON_FEATURES_SHAPE)
    rows = arrays.array_after(header, requests, "rows_chunk", 8 * people * WIDTH_MAX)
    if rows.dtype != np.float64:
        raise Refusal(error_pb2.REASON_REQUEST_MALFORMED)
    if not np.isfinite(rows).all():
        raise Refusal(error_pb2.REASON_FEATURES_NOT_FINITE)
    return bounded(rows.astype(np.float64, copy=False))


def bounded(rows: Floats) -> Floats:
    """Return the rows, scaled to norm 1 if rounding made them longer; Refusal ``ROWS_TOO_LONG`` for longer rows."""
    with np.errstate(over="ignore"):  # an infinite norm is too long
        lengths = np.sqrt(np.square(rows).sum(axis=1))
    if not (lengths <= _LONGEST).all():
        raise Refusal(error_pb2.REASON_ROWS_TOO_LONG)
    scaled = rows / np.maximum(lengths, 1.0)[:, None]
    return np.asarray(scaled)
