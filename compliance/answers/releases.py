"""Releases of sanitised attributes, and in the release game the measurement of the model trained on them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from compliance.answers.charging import game_ledger, room_of
from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Loss, Neighbours
from compliance.ledger.entries import LedgerEntry, Reply, Request
from compliance.mechanisms.local import PROTOCOLS, seeded, system
from compliance.noise.sampling import request_key
from compliance.records.people import Records
from fairwall.laws.local import CLEAN
from fairwall.laws.utility import RATED, UTILITIES
from fairwall.learning.design import design, one_hot
from fairwall.learning.forest import from_array
from fairwall.rpc.errors import Refusal
from fairwall.wire.limits import EPSILON_MIN
from fairwall.wire.v1 import error_pb2


@dataclass(frozen=True)
class SanitisedColumn:
    """A sensitive column: index in the file, domain size, share of epsilon, name, and its values' names.

    Values are in the order of their codes; empty where only codes are known.
    """

    place: int
    domain: int
    share: float
    name: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class AttributeRelease:
    """People whose sensitive attributes are released sanitised, and the ledger that pays.

    Parameters
    ----------
    dataset : the people's name in the ledger.
    protocol : one of `PROTOCOLS`, or ``CLEAN``.
    values : shape (people, columns), each within its column's domain.
    ledger : holds a budget for the data set, and the developer's share of it.
    seed : of the randomness; None draws it from the operating system.
    epsilon_min : least epsilon of one release.
    developers : the developers admitted, as in `Case`.
    """

    dataset: str
    protocol: str
    columns: Sequence[SanitisedColumn]
    values: NDArray[np.uint8] = field(repr=False)
    ledger: Ledger = field(repr=False)
    seed: bytes | None = field(repr=False)
    epsilon_min: float = EPSILON_MIN
    developers: frozenset[str] | None = None
    answers_a_day: Mapping[str, int] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Number of values of all columns together."""
        return sum(column.domain for column in self.columns)

    @property
    def spent(self) -> float:
        """Epsilon spent of the budget, on releases and everything else it pays for."""
        return self.ledger.standing(self.dataset).spent

    def answer(self, developer: str, request_id: str, digest: bytes, epsilon: float) -> LedgerEntry:
        """Charge a release and draw it, or return the stored one of the same request: it is never drawn twice.

        Refusal, LedgerError or LedgerUnavailable as `Ledger.settle`; LocalPrivacyError if the protocol is undefined at
        this epsilon.
        """
        loss = Loss(epsilon)
        request = Request(
            self.dataset, developer, request_id, digest, "release", self.protocol, Neighbours.ATTRIBUTES, loss
        )
        room = room_of(developer, self.answers_a_day, self.epsilon_min)
        return self.ledger.settle(request, lambda _: Reply(self.sanitised(request_id, epsilon).tobytes()), room=room)

    def encoded(self, entry: LedgerEntry) -> NDArray[Any]:
        """Return the released values, shape (people, width)."""
        stored = np.frombuffer(entry.reply.answer, np.uint8)
        cells = len(self.values) * self.width
        numbers = stored if len(stored) == cells else stored.view(np.float64)
        return numbers.reshape(-1, self.width)

    def sanitised(self, request_id: str, epsilon: float) -> NDArray[Any]:
        """Draw a release, shape (people, width): with a seed, a function of the seed and the request alone."""
        if self.protocol == CLEAN:
            return np.hstack([one_hot(values, column.domain) for column, values in self._by_column()])
        draw = system()
        if self.seed is not None:
            draw = seeded(request_key(self.seed, request_id))
        parts = [
            PROTOCOLS[self.protocol].sanitise(values, column.domain, column.share * epsilon, draw)
            for column, values in self._by_column()
        ]
        return np.concatenate(parts, axis=1)

    def _by_column(self) -> Iterator[tuple[SanitisedColumn, NDArray[np.uint8]]]:
        return zip(self.columns, self.values.T, strict=True)


def game_release(
    dataset: str,
    protocol: str,
    columns: Sequence[SanitisedColumn],
    values: NDArray[np.uint8],
    epsilon: float,
    seed: bytes | None,
) -> AttributeRelease:
    """Open a game's release with a budget of epsilon, in a ledger in memory."""
    ledger = game_ledger(dataset, Neighbours.ATTRIBUTES, Budget(epsilon))
    return AttributeRelease(dataset, protocol, columns, values, ledger, seed)


class HandedModel:
    """The model of one deal: none until the developer hands one over, and then that one for good.

    `labels`: of the test set, shape (people,). `features`: codes of the columns that are not sensitive, shape (people,
    columns). `sensitive`: exact values, shape (people, sensitive columns). `sizes`: domain sizes of the columns that
    are not sensitive.
    """

    def __init__(
        self,
        labels: NDArray[np.uint8],
        features: NDArray[np.integer],
        sensitive: NDArray[np.uint8],
        columns: Sequence[SanitisedColumn],
        sizes: Sequence[int],
    ) -> None:
        self._labels, self._features, self._sensitive = labels, features, sensitive
        self._columns, self._sizes = columns, sizes
        self._digest = b""
        self._lock = threading.Lock()
        self.decisions = np.empty(0, np.uint8)
        self.utilities: tuple[float, ...] = ()

    def hand(self, nodes: NDArray[np.generic], *, sees_attributes: bool) -> None:
        """Take a model, untrusted, as written by `fairwall.learning.forest.to_array`, and measure it.

        The same model again changes nothing. Refusal ``OUT_OF_TURN`` for another model than the first,
        ``REQUEST_MALFORMED`` for an array that is no model of these features.
        """
        what = f"{nodes.dtype} {nodes.shape} {sees_attributes}".encode()
        digest = blake3(what + nodes.tobytes()).digest()
        with self._lock:  # calls may be concurrent
            if self._digest:
                if self._digest != digest:
                    raise Refusal(error_pb2.REASON_OUT_OF_TURN)
                return
            clear = zip(self._columns, self._sensitive.T, strict=True)
            encodings = {column.place: one_hot(values, column.domain) for column, values in clear if sees_attributes}
            rows = design(self._features, self._sizes, encodings)
            try:
                forest = from_array(nodes, rows.shape[1])
            except ValueError:
                raise Refusal(error_pb2.REASON_REQUEST_MALFORMED) from None
            scores = forest.scores(rows)
            self.decisions = (scores > 0).astype(np.uint8)
            self.utilities = tuple(one.measure(self._labels, self.decisions, scores) for one in UTILITIES.values())
            self._digest = digest

    def group_rates(self, records: Records) -> tuple[float, ...]:
        """Return the rates of which gaps are made, on these records of the test set, as in the audit report.

        Empty before a model is handed over. The records must have somebody of each group in every metric's stratum.
        """
        if not self._digest:
            return ()
        parts = [records.group_sums(metric, self.decisions[np.newaxis].astype(np.float64))[0] for metric in RATED]
        return tuple(float(one) for part in parts for one in (part.sum1[0] / part.n1, part.sum0[0] / part.n0))

    def scores(self, _request_id: str, count: int, _context: grpc.ServicerContext) -> NDArray[np.float64]:
        """Return the model's decisions about the test set, shape (1, people).

        Refusal before the model is handed over, or for more than one model.
        """
        if not self._digest or count != 1:
            raise Refusal(error_pb2.REASON_MODEL_UNAVAILABLE)
        return self.decisions.astype(np.float64)[np.newaxis]
