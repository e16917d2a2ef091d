"""A call that is refused: by its reason, after a look at the status and the sentence that go with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest

from fairwall.rpc.errors import CATALOGUE, reason_of
from fairwall.wire.v1 import error_pb2 as error


def refusal(call: Callable[[], object]) -> error.Reason:
    """The reason of a call that must be refused."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    seen: Any = caught.value
    reason = reason_of(seen)
    assert reason != error.REASON_UNSPECIFIED, (seen.code(), seen.details())
    assert (seen.code(), seen.details()) == CATALOGUE[reason]
    return reason
