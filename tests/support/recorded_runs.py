"""Runs whose transcripts a test writes itself, call by call, as both sides would have recorded them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.rpc.arrays import header_of, to_message
from fairwall.rpc.identity import PARTIES
from fairwall.rpc.recorder import CALL_KEY, TranscriptRecorder
from fairwall.wire.v1.metric_pb2 import METRIC_SP
from tests.support.command import SMALL

AUDIT = "/fairwall.compliance.v1.AuditService/Audit"


@dataclass(frozen=True)
class Said:
    """A call: who makes it to whom, what is asked and answered, and why it was refused, if it was."""

    caller: str
    server: str
    method: str
    requests: Iterable[Any] = ()
    answers: Iterable[Any] = ()
    reason: Any = 0
    heard: Iterable[Any] | None = field(default=None)
    """What the server says that it was asked, where that is something else."""


def record(
    folder: Path, calls: Iterable[Said], scenario: str = SMALL, mode: str = "full", run: str = "made-up"
) -> Path:
    """Write a run's folder: its scenario, and what four parties recorded of these calls."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scenario.toml").write_text(scenario)
    with ExitStack() as stack:
        recorders = {
            party: TranscriptRecorder(folder / "transcript" / party / "1.bin", run, party, "", mode)
            for party in PARTIES
        }
        for recorder in recorders.values():
            stack.callback(recorder.close)
        for said in calls:
            asking = recorders[said.caller].calling(said.server, said.method)
            number = ((CALL_KEY, str(asking.call.number)),)
            answering = recorders[said.server].answering(said.caller, said.method, number)
            heard = said.requests if said.heard is None else said.heard
            for request, other in zip(said.requests, heard, strict=True):
                asking.sent(request.SerializeToString())
                answering.received(other.SerializeToString())
            for answer in said.answers:
                answering.sent(answer.SerializeToString())
                asking.received(answer.SerializeToString())
            status = 9 if said.reason else 0
            answering.ended(status, said.reason)
            asking.ended(status, said.reason)
    return folder


def audited(
    number: int, predictions: NDArray[np.float64], *, deal: str = "deal-1", epsilon: float = 0.1, **given: Any
) -> Said:
    """Make a batch's audit: the developer streams its predictions, and compliance answers 0.25."""
    header = audit.AuditHeader(
        request_id=f"metric-{number}",
        deal_id=deal,
        metric=METRIC_SP,
        epsilon=epsilon,
        predictions=header_of(predictions),
    )
    requests = [audit.AuditRequest(header=header), audit.AuditRequest(predictions_chunk=predictions.tobytes())]
    answer = audit.AuditResponse(gaps=to_message(np.array([0.25])), epsilon_charged=epsilon, epsilon_remaining=1.0)
    return Said("developer", "compliance", AUDIT, requests, [answer], **given)
