"""The kinds of steps that request gaps of models whose predictions only the server sees.

**Sealed models** are made as tables of scores by the one feature, which numbers people from 0, so that the tester knows
their predictions. A **table** is written where the server reads it, before it is asked about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from fairwall.compliance.v1.audit_service_pb2 import AuditSealedHeader, AuditSealedRequest, AuditTableRequest
from fairwall.laws.metrics.metric import find_metric
from fairwall.wire.metrics import name_of
from sim.conformance.audits import Gaps
from sim.conformance.calls import ProtocolViolation
from sim.conformance.promise import Array
from sim.conformance.purchases import SentRequest
from sim.conformance.step_base import stream_of
from sim.conformance.target import DescribedDeployment
from sim.conformance.world import SECONDS, CaseState, NotRun

_NEAR = 1e-3
"""Tolerance for an exact gap: above noise at an epsilon of 2^19 and a few models, below one person's effect."""

_NO_NUMBER = 3.0
"""Placeholder for NaN in a model's table of scores."""

_TABLE = """table (double[N, 1] x) => (double[N, 1] y) <
  double[1, {size}] seats = {{{seats}}}, double[{size}, 1] scores = {{{scores}}},
  double one = {{1.0}}, double nought = {{0.0}}, double most = {{2.5}}
> {{
  a = Sub(x, seats) b = Abs(a) c = Sub(one, b) d = Relu(c) e = MatMul(d, scores)
  f = Sub(most, e) g = Sqrt(f) h = Mul(g, nought) y = Add(e, h)
}}"""


class UnseenStep(Gaps):
    """A step about predictions that are not sent; with `close` answers are the exact gaps, at an epsilon of 2^19."""

    def about(self, world: CaseState) -> DescribedDeployment:
        """Return the deployment's description as it applies here: noisy sums answer, whatever the terms say."""
        about = world.about(self.deployment)
        return about.model_copy(update={"mechanism": "counts" if about.mechanism == "counts" else "cube"})

    def visible(self, metric: str, predictions: Array) -> Array | None:
        """Return predictions of all kinds, since nobody sees these; None if the sizes of groups are not known."""
        return np.indices(predictions.shape)[1] % 2.0 if find_metric(metric).of_means else None

    def require_no_law(self, noise: Array) -> None:
        """Demand exact gaps, up to negligible noise, if answers must be close."""
        if self.expect.close and np.abs(noise).max() > _NEAR:
            raise ProtocolViolation(f"an answer is {np.abs(noise).max():.3g} away from what the models predict")


class AuditSealed(UnseenStep):
    """A step that hands over models: made from the predictions, or the `files`, which predict the same, as ONNX text.

    A file that is not ONNX text is sent as it is. The header announces `more` bytes than are sent.
    """

    METHOD: ClassVar[str] = "/fairwall.compliance.v1.AuditService/AuditSealed"
    PART: ClassVar[type[Message]] = AuditSealedRequest

    do: Literal["audit_sealed"]
    deadline: float | Literal["none"] = 6 * SECONDS  # models are tried, and each takes its time
    files: tuple[str, ...] = ()
    more: int = 0

    def head(self, world: CaseState) -> AuditSealedHeader:
        """Return the header, without the sizes of models."""
        return AuditSealedHeader(**self.question(world), by=self.by)

    def asked_about(self, world: CaseState, predictions: NDArray[Any]) -> SentRequest:
        """Return the request about these predictions, given in the deal's order of people."""
        sizes = [len(file) + self.more for file in self._models(predictions)]
        return SentRequest(self.head(world), predictions).with_header(sizes=sizes)

    def messages(self, request: SentRequest) -> Iterator[bytes]:
        """Yield the messages of a request."""
        data, part = b"".join(self._models(request.predictions)), AuditSealedRequest
        first = part(header=request.header).SerializeToString()
        return stream_of(self.parts, first, data, self.chunk_bytes, lambda chunk: part(models_chunk=chunk))

    def in_the_order_of_the_deal(self, world: CaseState, request: SentRequest) -> Array:  # noqa: ARG002
        """Return the models' predictions: clipped to [0, 1], with NaN as 0; as decisions, 1 from one half on."""
        scores = np.clip(np.nan_to_num(request.predictions.astype(np.float64)), 0.0, 1.0)
        return np.asarray(scores >= 0.5, np.float64) if find_metric(name_of(request.header.metric)).binary else scores

    def _models(self, predictions: NDArray[Any]) -> list[bytes]:
        try:
            from onnx import parser
        except ImportError:
            raise NotRun("needs the package onnx, to make models") from None
        scores = np.where(np.isnan(predictions), _NO_NUMBER, predictions).astype(np.float64)
        named = {"size": predictions.shape[1], "seats": _listed(np.arange(predictions.shape[1], dtype=np.float64))}
        return [
            parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}').SerializeToString()
            if "=>" in text
            else text.encode()
            for text in self.files or [_TABLE.format(scores=_listed(row), **named) for row in scores]
        ]


def _listed(numbers: Array) -> str:
    return ", ".join(map(repr, numbers.tolist()))


class AuditTable(UnseenStep):
    """A step about a table that it writes, with each model's prediction about everybody.

    The table lacks the first `left_out` people, has the last `twice` people two times, and then `strangers` others. It
    may be written `backwards`, and has one more `column`, of ones or, if it is called "text", of texts. With `moved`
    two people of one label have changed groups in the engine.
    """

    METHOD: ClassVar[str] = "/fairwall.compliance.v1.AuditService/AuditTable"

    do: Literal["audit_table"]
    table: str = "scores"
    id_column: str = "person"
    models: tuple[str, ...] = ()
    left_out: int = 0
    twice: int = 0
    strangers: int = 0
    backwards: bool = False
    column: str = ""
    moved: bool = False

    def head(self, world: CaseState) -> AuditTableRequest:
        """Return the request."""
        own = self.question(world)
        return AuditTableRequest(**own, table=self.table, id_column=self.id_column, models=self.models)

    def asked_about(self, world: CaseState, predictions: NDArray[Any]) -> SentRequest:
        """Write the table with these predictions, given in the deal's order of people, and return the request."""
        deployment, size = self.deployment or world.deployment, predictions.shape[1]
        if not world.subject.starts:
            raise NotRun("needs a server that the tester starts, to write tables for it")
        known = world.subject.target.rows(deployment)
        assert known is not None, "the kit's people have ids"
        ids = np.array([*map(int, known[0]), *range(10**6, 10**6 + size)])
        rows = np.r_[self.left_out : size, size - self.twice : size, size : size + self.strangers].astype(np.intp)
        rows = rows[::-1] if self.backwards else rows
        columns = {"person": ids[rows], **{f"m{i}": row[rows % size] for i, row in enumerate(predictions)}}
        if self.column:
            columns[self.column] = np.full(len(rows), "1" if self.column == "text" else 1)
        self._write(world, deployment, columns)
        return SentRequest(self.head(world), predictions)

    def messages(self, request: SentRequest) -> Iterator[bytes]:
        """Yield the one message of a request."""
        yield request.header.SerializeToString()

    def _write(self, world: CaseState, deployment: str, columns: dict[str, NDArray[Any]]) -> None:
        import duckdb  # without which a kit has no people in an engine

        world.subject.address(deployment)
        place = world.subject.place(deployment)
        with duckdb.connect() as engine:
            engine.register("columns", columns)
            if self.table != "people":
                (place / self.table).mkdir(parents=True, exist_ok=True)
                # An engine reads whole files: the new one takes the old one's place.
                engine.execute(f"COPY (FROM columns) TO '{place}/new' (FORMAT parquet)")
                (place / "new").replace(place / self.table / "0.parquet")
            if self.moved:
                world.changed.add(deployment)
                engine.execute(f"CREATE TABLE moved AS FROM '{place}/people/0.parquet'")
                two = "SELECT min(person) FROM moved WHERE label = 0 GROUP BY advantaged"
                engine.execute(f"UPDATE moved SET advantaged = 1 - advantaged WHERE person IN ({two})")  # noqa: S608
                engine.execute(f"COPY moved TO '{place}/people/0.parquet' (FORMAT parquet)")
