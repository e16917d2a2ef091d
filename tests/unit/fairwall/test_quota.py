"""How much of a server one caller may use in a day."""

from __future__ import annotations

import pytest

from fairwall.rpc import fair_use
from fairwall.rpc.errors import Refusal
from fairwall.rpc.fair_use import DAY_SECONDS, Meter, Quota
from fairwall.wire.v1.error_pb2 import REASON_QUOTA_EXHAUSTED


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(fair_use.time, "monotonic", lambda: now[0])
    return now


def test_calls_of_a_day_are_counted_and_the_next_day_begins_anew(clock: list[float]) -> None:
    meter = Meter(Quota(calls=2, bytes=100))
    for _ in range(3):
        meter.call()
        clock[0] += DAY_SECONDS / 4
        meter.call()
        for _ in range(2):
            with pytest.raises(Refusal) as refused:
                meter.call()
            assert refused.value.reason == REASON_QUOTA_EXHAUSTED
        clock[0] += 3 * DAY_SECONDS / 4


def test_bytes_are_counted_both_ways_and_what_was_paid_for_goes_out(clock: list[float]) -> None:
    meter = Meter(Quota(calls=9, bytes=100))
    meter.call()
    assert meter.received(bytes(60)) == bytes(60)
    assert meter.sent(bytes(60)) == bytes(60)
    with pytest.raises(Refusal):
        meter.call()
    clock[0] += DAY_SECONDS
    meter.call()
    with pytest.raises(Refusal):
        meter.received(bytes(101))
