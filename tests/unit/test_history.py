"""The judge of histories, on histories made by hand: one that is sound, and what is found in each that is not."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support import ledger_history
from tests.support.ledger_history import Call, Kept, Record, Sealed, faults

KEY = bytes(range(32))
START = b"start"


def answer(gap: float) -> bytes:
    return struct.pack("<d", gap)


def terms(developer: str, epsilon: float) -> tuple[str, dict[str, Any]]:
    who = {"dataset": "loans", "developer": developer}
    return "Terms", who | {"rule": "basic", "epsilon": epsilon, "delta": 0.0}


def charge(developer: str, request_id: str, gap: float, epsilon: float = 0.1) -> tuple[str, dict[str, Any]]:
    who = {"dataset": "loans", "developer": developer, "request_id": request_id}
    return "Entry", who | {"epsilon": epsilon, "released": b"\5" + struct.pack("<5d", gap, -1, 1, -1, 1)}


def kept(*rows: tuple[str, dict[str, Any]], sealed: int | None = None) -> Kept:
    """Chain records, and seal so many of them: all, if not told."""
    records, before = [], START
    for number, (kind, values) in enumerate(rows, start=1):
        record = Record(kind, "loans", {"sequence": number, **values}, b"", b"")
        before = ledger_history.link(before, record)
        records.append(replace(record, chain=before, mac=ledger_history.mac(KEY, before)))
    end = len(rows) if sealed is None else sealed
    return Kept({"loans": START}, tuple(records), {"loans": Sealed(end, records[end - 1].chain)})


def call(developer: str, request_id: str, at: float, gap: float | None = None, refusal: str = "") -> Call:
    told = None if gap is None else answer(gap)
    return Call(developer, request_id, "loans", 0.1, at, at + 0.5, told, refusal)


ROWS = (terms("", 0.3), terms("ann", 0.2), charge("ann", "a", 1.0), charge("ann", "b", 2.0))
CALLS = (
    call("ann", "a", 1, 1.0),
    call("ann", "b", 2),  # lost, and asked again
    call("ann", "b", 3, refusal="LEDGER_UNAVAILABLE"),
    call("ann", "b", 4, 2.0),
    call("ann", "a", 5, 1.0),
    call("ann", "c", 6, refusal="BUDGET_EXHAUSTED"),
)


def kinds(calls: tuple[Call, ...], ledger: Kept) -> list[str]:
    found = faults(calls, ledger, KEY)
    assert all(fault.what for fault in found)
    return sorted({fault.kind for fault in found})


def test_a_sound_history_has_no_faults() -> None:
    assert kinds(CALLS, kept(*ROWS)) == []


def test_what_is_charged_and_not_yet_sealed_may_be_lost_on_its_way() -> None:
    assert kinds(CALLS[:2], kept(*ROWS, sealed=3)) == []


BROKEN: dict[str, tuple[list[str], Callable[[], tuple[tuple[Call, ...], Kept]]]] = {
    "an answer that is not kept": (
        [ledger_history.NO_RECORD],
        lambda: ((*CALLS[:5], call("ann", "c", 6, 3.0)), kept(*ROWS)),
    ),
    "another answer to a repeat": (
        [ledger_history.TWO_ANSWERS],
        lambda: ((*CALLS, call("ann", "a", 7, 1.5)), kept(*ROWS)),
    ),
    "another answer than is kept": (
        [ledger_history.TWO_ANSWERS],
        lambda: (CALLS, kept(*ROWS[:3], charge("ann", "b", 2.5))),
    ),
    "a repeat that is charged": (
        [ledger_history.CHARGED_TWICE],
        lambda: (CALLS[:2], kept(*ROWS[:3], charge("ann", "a", 1.0))),
    ),
    "a charge for another": ([ledger_history.NOT_ASKED], lambda: (CALLS[:1], kept(*ROWS))),
    "a larger charge than was asked for": (
        [ledger_history.NOT_ASKED],
        lambda: (CALLS[:1], kept(*ROWS[:2], charge("ann", "a", 1.0, epsilon=0.15))),
    ),
    "a charge for what was refused": (
        [ledger_history.REFUSED_AND_CHARGED],
        lambda: ((*CALLS[:5], call("ann", "b", 6, refusal="QUOTA_EXHAUSTED")), kept(*ROWS)),
    ),
    "a refusal with budget left": ([ledger_history.REFUSED_TOO_EARLY], lambda: ((CALLS[0], CALLS[5]), kept(*ROWS[:3]))),
    "more than a developer's share": (
        [ledger_history.EXCEEDED],
        lambda: ((*CALLS[:5], call("ann", "c", 6, 3.0)), kept(*ROWS, charge("ann", "c", 3.0))),
    ),
    "more than the whole": (
        [ledger_history.EXCEEDED],
        lambda: (CALLS[:5], kept(terms("", 0.1), *ROWS[1:])),
    ),
    "a charge before the one that was answered before": (
        [ledger_history.OUT_OF_ORDER],
        lambda: (CALLS, kept(*ROWS[:2], ROWS[3], ROWS[2])),
    ),
    "a record that was taken out": (
        [ledger_history.BROKEN, ledger_history.NO_RECORD],
        lambda: (CALLS, changed(kept(*ROWS), lambda records: (*records[:2], records[3]))),
    ),
    "two records of one number": (
        [ledger_history.BROKEN],
        lambda: (CALLS, changed(kept(*ROWS), lambda records: (*records[:3], numbered(records[3], 3)))),
    ),
    "a record that was changed": (
        [ledger_history.BROKEN],
        lambda: (CALLS, changed(kept(*ROWS), lambda records: (with_epsilon(records[0], 0.4), *records[1:]))),
    ),
    "a record by another key": (
        [ledger_history.BROKEN],
        lambda: (CALLS, changed(kept(*ROWS), lambda records: (*records[:3], replace(records[3], mac=b"")))),
    ),
    "a seal of what is lost": (
        [ledger_history.SEALED_AHEAD],
        lambda: (CALLS[:1], replace(kept(*ROWS[:3]), heads=kept(*ROWS).heads)),
    ),
    "an answer that is not sealed": ([ledger_history.NOT_SEALED], lambda: (CALLS, kept(*ROWS, sealed=3))),
}


def changed(ledger: Kept, how: Callable[[tuple[Record, ...]], tuple[Record, ...]]) -> Kept:
    return replace(ledger, records=how(ledger.records))


def numbered(record: Record, number: int) -> Record:
    return replace(record, values={**record.values, "sequence": number})


def with_epsilon(record: Record, epsilon: float) -> Record:
    return replace(record, values={**record.values, "epsilon": epsilon})


@pytest.mark.parametrize("what", BROKEN)
def test_each_fault_is_found_and_named(what: str) -> None:
    expected, make = BROKEN[what]
    found = kinds(*make())
    if ledger_history.BROKEN in expected:  # beside which heads and sums mean little
        assert set(expected) <= set(found)
    else:
        assert found == expected


def test_charges_of_a_tenth_add_up_exactly() -> None:
    ten = [charge("ann", str(number), number) for number in range(10)]
    calls = tuple(call("ann", str(number), number, number) for number in range(10))
    assert kinds(calls, kept(terms("", 1.0), terms("ann", 1.0), *ten)) == []


def test_a_head_is_the_newer_of_its_two_places() -> None:
    def place(head: Sealed) -> bytes:
        seal = ledger_history.hmac.digest(KEY, b"fairwall ledger head %d " % head.sequence + head.chain, "sha256")
        told = {"sequence": head.sequence, "chain": head.chain.hex(), "seal": seal.hex()}
        return json.dumps(told).encode().ljust(4095) + b"\n"

    older, newer = Sealed(4, b"four"), Sealed(5, b"five")
    assert ledger_history.head_in(place(older) + place(newer), KEY) == newer
    assert ledger_history.head_in(place(older) + bytes(4096), KEY) == older
    with pytest.raises(AssertionError, match="another key"):
        ledger_history.head_in(place(older) + place(newer), bytes(32))
