"""Two recordings of one game: the first difference has a name, and what the clock decides is none."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blake3 import blake3

from fairwall.rpc.arrays import to_message
from fairwall.rpc.chunks import varint
from fairwall.rpc.recorder import DIGEST_TAG, FIRST
from fairwall.transcript.v1 import transcript_pb2 as pb
from fairwall.wire.v1 import error_pb2
from sim.replay.differences import Difference, differences, first_difference
from sim.transcripts.calls import in_order
from sim.transcripts.files import Transcript, _frames, decode, read

GOLDEN = Path(__file__).parents[2] / "golden" / "reveal"
PARTIES = ("adversary", "compliance", "developer", "referee")

Entries = list[pb.Entry]


def changed(tmp_path: Path, party: str, change: Callable[[Entries], Entries]) -> Transcript:
    """Read a golden transcript with its entries changed, under a chain that holds."""
    path = tmp_path / party / "1.bin"
    path.parent.mkdir(exist_ok=True)
    entries = change([pb.Entry.FromString(bytes(body)) for _, body, _ in _frames(golden(party).path)])
    digest, out = FIRST, bytearray()
    for entry in entries:
        body = entry.SerializeToString()
        length = varint(len(body) + len(DIGEST_TAG) + 32)
        digest = blake3(digest).update(length).update(body).digest()
        out += length + body + DIGEST_TAG + digest
    path.write_bytes(out)
    script = read(path)
    assert not script.problems
    return script


def golden(party: str) -> Transcript:
    return read(GOLDEN / "transcript" / party / "1.bin")


def within(method: str, part: str, change: Callable[[Any], None], *, is_request: bool) -> Callable[[Entries], Entries]:
    """Change the first message of a method that has a field."""

    def edit(entries: Entries) -> Entries:
        for entry in entries:
            if not entry.HasField("message") or not entry.message.call.method.endswith(f"/{method}"):
                continue
            asked = (entry.message.call.side == pb.SIDE_CALLER) == (entry.message.direction == pb.DIRECTION_SENT)
            message = decode(entry.message.call.method, is_request, entry.message.content)
            if asked == is_request and message is not None and message.HasField(part):
                change(message)
                entry.message.content = message.SerializeToString()
                return entries
        raise AssertionError(f"no {method} with {part}")

    return edit


def set_bytes(name: str, at: int, value: float) -> Callable[[Any], None]:
    def change(message: Any) -> None:
        values = np.frombuffer(getattr(message, name), "<f8").copy()
        values[at] = value
        setattr(message, name, values.tobytes())

    return change


def in_deal(**values: Any) -> Callable[[Any], None]:
    def change(message: Any) -> None:
        for name, value in values.items():
            setattr(message.deal, name, value)

    return change


def clear(*names: str) -> Callable[[Any], None]:
    def change(message: Any) -> None:
        for name in names:
            message.ClearField(name)

    return change


def shorter(message: Any) -> None:
    message.guess.CopyFrom(to_message(np.zeros(5, np.uint8)))


def refuse(entries: Entries) -> Entries:
    """Have the first audit refused where it was answered."""
    for number, entry in enumerate(entries):
        if entry.HasField("ended") and entry.ended.call.method.endswith("/Audit"):
            entry.ended.status = 8
            entry.ended.reason = error_pb2.REASON_BUDGET_EXHAUSTED
            call = entry.ended.call
            answer = next(
                k
                for k in range(number, 0, -1)
                if entries[k].message.call == call and entries[k].message.direction == pb.DIRECTION_RECEIVED
            )
            del entries[answer]
            return entries
    raise AssertionError("no audit")


@pytest.mark.parametrize(
    ("change", "field", "now"),
    [
        pytest.param(
            within("TakeDeveloperDeal", "features_chunk", set_bytes("features_chunk", 5, 0.25), is_request=False),
            "TakeDeveloperDealResponse.features[5, 0]",
            "0.25",
            id="an element of an array in chunks",
        ),
        pytest.param(
            within("TakeDeveloperDeal", "deal", in_deal(decoder="box"), is_request=False),
            "TakeDeveloperDealResponse.deal.decoder",
            "'box'",
            id="text in a deal",
        ),
        pytest.param(
            within("TakeDeveloperDeal", "deal", in_deal(seed=b"\1"), is_request=False),
            "TakeDeveloperDealResponse.deal.seed",
            "01",
            id="bytes in a deal",
        ),
        pytest.param(
            within("SubmitReveal", "guess", shorter, is_request=True),
            "SubmitRevealRequest.guess",
            "uint8 of shape (5,)",
            id="an array of another shape",
        ),
        pytest.param(
            within("SubmitReveal", "accuracy_base", clear("accuracy_base"), is_request=True),
            "SubmitRevealRequest.accuracy_base",
            "nothing",
            id="a field that is gone",
        ),
        pytest.param(refuse, "Audit, its end", "BUDGET_EXHAUSTED", id="a refusal"),
    ],
)
def test_the_field_that_differs_is_named(
    tmp_path: Path, change: Callable[[Entries], Entries], field: str, now: str
) -> None:
    script = golden("developer")
    (found, *_) = differences(script, changed(tmp_path, "developer", change), bit_for_bit=True)
    assert (found.party, found.field, found.now) == ("developer", field, now)
    assert found.recorded != found.now
    assert found.entry is not None
    assert 0 < found.entry < script.entries
    assert str(found).startswith(f"developer, entry {found.entry}: {field}: recorded ")


def poll(entries: Entries) -> Entries:
    """Say once more that there is no deal yet, and ask whether the referee is well, and give up a call."""
    at = next(k for k, entry in enumerate(entries) if entry.message.call.method.endswith("/TakeDeveloperDeal"))
    call = pb.Call()
    call.CopyFrom(entries[at].message.call)
    call.number = 900
    more = [
        pb.Entry(message=pb.Message(call=call, direction=pb.DIRECTION_SENT, content=b"")),
        pb.Entry(message=pb.Message(call=call, direction=pb.DIRECTION_RECEIVED, content=b"\x08\x01")),
        pb.Entry(ended=pb.Ended(call=call)),
    ]
    health = pb.Call(peer="referee", side=pb.SIDE_CALLER, number=901, method="/grpc.health.v1.Health/Check")
    given_up = pb.Call(peer="referee", side=pb.SIDE_CALLER, number=902, method=call.method)
    more += [pb.Entry(ended=pb.Ended(call=health)), pb.Entry(ended=pb.Ended(call=given_up, status=1))]
    return entries[:at] + more + entries[at:]


def elsewhere(message: Any) -> None:
    message.counterpart_address = "127.0.0.1:1"


def test_what_the_clock_and_the_system_decide_is_no_difference(tmp_path: Path) -> None:
    script = golden("developer")
    assert list(differences(script, changed(tmp_path, "developer", poll), bit_for_bit=True)) == []
    moved = changed(
        tmp_path,
        "developer",
        lambda entries: [_moved(entry) for entry in entries],
    )
    assert list(differences(script, moved, bit_for_bit=True)) == []


def _moved(entry: pb.Entry) -> pb.Entry:
    if entry.message.call.method.endswith("/Join") and entry.message.direction == pb.DIRECTION_RECEIVED:
        message = decode(entry.message.call.method, False, entry.message.content)
        elsewhere(message)
        entry.message.content = message.SerializeToString()
    return entry


@pytest.mark.parametrize(("by", "differs"), [(1e-9, False), (1e-3, True), (np.nan, True)])
def test_floats_may_differ_a_little_where_the_machine_does(tmp_path: Path, by: float, differs: bool) -> None:
    script = golden("developer")

    def nudge(message: Any) -> None:
        message.max_prediction_change += by

    now = changed(tmp_path, "developer", within("SubmitReveal", "guess", nudge, is_request=True))
    assert len(list(differences(script, now, bit_for_bit=True))) == 1
    assert len(list(differences(script, now, bit_for_bit=False))) == differs


def test_of_a_game_that_was_broken_off_nothing_is_missed(tmp_path: Path) -> None:
    script = golden("developer")
    cut = changed(tmp_path, "developer", lambda entries: entries[: len(entries) // 2])
    assert list(differences(cut, script, bit_for_bit=True, whole=False)) == []
    said = {(found.recorded, found.now) for found in differences(cut, script, bit_for_bit=True)}
    assert said == {("not called here", "called")}
    said = {(found.recorded, found.now) for found in differences(script, cut, bit_for_bit=True)}
    assert said == {("called", "not called")}


def test_a_message_is_heard_after_it_is_sent() -> None:
    scripts = {party: golden(party) for party in PARTIES}
    order = list(in_order(scripts))
    assert len(order) == len(set(order)) == sum(len(script.messages) for script in scripts.values())
    for party, script in scripts.items():
        own = [entry for who, entry in order if who == party]
        assert own == [message.entry for message in script.messages]
    said: dict[Any, int] = {}
    messages = {(party, message.entry): message for party, script in scripts.items() for message in script.messages}
    for where in order:
        message = messages[where]
        of = (message.call, message.is_request)
        said[of] = said.get(of, 0) + (-1 if message.is_received else 1)
        assert said[of] >= 0


def test_who_said_it_is_named_rather_than_who_heard_it(tmp_path: Path) -> None:
    """The developer's transcript comes first by name, but the referee dealt otherwise."""
    deal = in_deal(strategy="linear")
    change = within("TakeDeveloperDeal", "deal", deal, is_request=False)
    now = {party: golden(party) for party in PARTIES}
    for party in ("developer", "referee"):
        now[party] = changed(tmp_path, party, change)
    found = first_difference({party: golden(party) for party in PARTIES}, now, bit_for_bit=True)
    assert isinstance(found, Difference)
    assert (found.party, found.is_sent, found.field) == ("referee", True, "TakeDeveloperDealResponse.deal.strategy")


def test_the_same_is_the_same(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "copy")
    copies = {party: read(tmp_path / "copy" / "transcript" / party / "1.bin") for party in PARTIES}
    assert first_difference({party: golden(party) for party in PARTIES}, copies, bit_for_bit=True) is None


def test_a_refusal_is_named_rather_than_what_came_of_it(tmp_path: Path) -> None:
    """Compliance refuses an audit, and the developer, who would have guessed then, leaves."""

    def refused(entries: Entries) -> Entries:
        at = next(
            k
            for k, entry in enumerate(entries)
            if entry.HasField("ended") and entry.ended.call.method.endswith("/Audit")
        )
        entries[at].ended.status, entries[at].ended.reason = 8, error_pb2.REASON_BUDGET_EXHAUSTED
        return entries

    now = {party: golden(party) for party in PARTIES}
    now["compliance"] = changed(tmp_path, "compliance", refused)
    now["developer"] = changed(
        tmp_path,
        "developer",
        lambda entries: [
            entry
            for entry in entries
            if not any(part.call.method.endswith("/SubmitReveal") for part in (entry.message, entry.ended))
        ],
    )
    found = first_difference({party: golden(party) for party in PARTIES}, now, bit_for_bit=True)
    assert found is not None
    assert (found.party, found.field, found.now) == ("compliance", "Audit, its end", "BUDGET_EXHAUSTED")
