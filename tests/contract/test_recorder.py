"""Both sides of every call write down the same bytes, in a file that can be read up to wherever it breaks off."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compliance.answers.audit_service import AuditService
from compliance.answers.audits import AuditCase, game_case
from compliance.ledger.accountant import Budget
from compliance.mechanisms import MECHANISMS
from compliance.records.people import Records
from fairwall.client.gaps import Audits, ask
from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.compliance.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1 import reveal_service_pb2 as reveal_pb2
from fairwall.game.v1.reveal_service_pb2_grpc import RevealServiceStub
from fairwall.rpc import channel, server
from fairwall.rpc.errors import reason_of
from fairwall.rpc.identity import Credentials
from fairwall.rpc.recorder import CALL_KEY, LARGE_BYTES, RecordedCall, RecordedChannel, TranscriptRecorder, large_fields
from fairwall.transcript.v1.transcript_pb2 import Entry
from fairwall.wire.v1 import array_pb2, error_pb2
from fairwall.wire.v1.visibility_pb2 import VISIBILITY_UNSPECIFIED
from sim.games.reveal.trial import RevealDealer
from sim.games.table import GameTable
from sim.transcripts.boundary import walk
from sim.transcripts.calls import only_waited
from sim.transcripts.files import CallKey, Transcript, read

AUDIT = "/fairwall.compliance.v1.AuditService/Audit"
TERMS = "/fairwall.compliance.v1.AuditService/GetTerms"
DEAL = "/fairwall.game.v1.RevealService/TakeDeveloperDeal"
PEOPLE = 2000


def recorder_in(folder: Path, party: str, mode: str = "full") -> TranscriptRecorder:
    return TranscriptRecorder(folder / party / "1.bin", "run-1", party, "digest", mode)


def transcript_of(folder: Path, party: str) -> Transcript:
    return read(folder / party / "1.bin")


@dataclass(frozen=True)
class Pair:
    """A developer that asks compliance, both recorded."""

    audits: Audits
    folder: Path
    leave: Callable[[], None]

    def transcripts(self) -> tuple[Transcript, Transcript]:
        """The developer's and compliance's, once both have left."""
        self.leave()
        return transcript_of(self.folder, "developer"), transcript_of(self.folder, "compliance")


def open_case() -> AuditCase:
    rng = np.random.default_rng(1)
    records = Records(rng.integers(0, 2, PEOPLE).astype(np.uint8), rng.integers(0, 2, PEOPLE).astype(np.uint8), ("sp",))
    return game_case("deal", records, MECHANISMS["laplace"], Budget(9.0), 0.0, 300, b"s" * 32)


@pytest.fixture(params=["full", "digest"])
def mode(request: Any) -> str:
    return str(request.param)


@pytest.fixture
def pair(tmp_path: Path, credentials: dict[str, Credentials], mode: str) -> Iterator[Pair]:
    with ExitStack() as open_:
        theirs, own = recorder_in(tmp_path, "compliance", mode), recorder_in(tmp_path, "developer", mode)
        open_.callback(theirs.close)
        listening = server.serve(
            lambda grpc_server: add_AuditServiceServicer_to_server(AuditService({"deal": open_case()}), grpc_server),
            credentials["compliance"],
            recorder=theirs,
        )
        open_.callback(listening.stop)
        open_.callback(own.close)
        connection = open_.enter_context(
            channel.connect(listening.address, "compliance", credentials["developer"], own)
        )
        yield Pair(Audits(connection), tmp_path, open_.close)


def terms(audits: Audits, deal_id: str = "deal", seconds: float | None = 5) -> audit.GetTermsResponse:
    response: audit.GetTermsResponse = audits.GetTerms(audit.GetTermsRequest(deal_id=deal_id), timeout=seconds)
    return response


def same_bytes(one: Transcript, other: Transcript) -> bool:
    mine, theirs = ([(m.method, m.is_request, m.content, m.large) for m in side.messages] for side in (one, other))
    return sorted(mine) == sorted(theirs)


def test_both_sides_of_a_call_record_the_same_bytes(pair: Pair, mode: str) -> None:
    predictions = np.random.default_rng(0).random((150, PEOPLE))  # 2.4 MB: three chunks
    first = terms(pair.audits)
    answer = ask(pair.audits, "deal", "r", "sp", predictions, 1.0)
    developer, compliance = pair.transcripts()
    assert developer.is_whole
    assert compliance.is_whole
    assert same_bytes(developer, compliance)
    assert (
        developer.endings.keys()
        == compliance.endings.keys()
        == {
            CallKey("developer", "compliance", 1),
            CallKey("developer", "compliance", 2),
        }
    )
    assert {ending.status for ending in developer.endings.values()} == {0}
    sent = [message for message in developer.messages if message.method == AUDIT and message.is_request]
    parts = [audit.AuditRequest.FromString(developer.data(message)) for message in sent]
    chunks = b"".join(part.predictions_chunk for part in parts)
    assert len(parts) == 4
    assert chunks == (predictions.tobytes() if mode == "full" else bytes(predictions.nbytes))
    (terms_got,) = (m for m in developer.messages if m.method == TERMS and m.is_received)
    assert audit.GetTermsResponse.FromString(terms_got.content) == first
    (got,) = (m for m in developer.messages if m.method == AUDIT and m.is_received)
    assert np.frombuffer(audit.AuditResponse.FromString(got.content).gaps.data).tolist() == answer.gaps.tolist()
    assert (developer.path.stat().st_size > 2e6) == (mode == "full")


def test_the_same_array_is_stored_once(tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path, "developer")
    part = audit.AuditRequest(predictions_chunk=np.random.default_rng(0).bytes(1 << 20)).SerializeToString()
    for _ in range(5):
        recorder.calling("compliance", AUDIT).sent(part)
    recorder.close()
    script = transcript_of(tmp_path, "developer")
    assert [script.data(message) for message in script.messages] == [part] * 5
    assert script.path.stat().st_size < 1.1 * (1 << 20)


def test_a_file_that_has_changed_is_not_taken_for_what_it_was(tmp_path: Path) -> None:
    """What is stored is inflated once, and no reading takes what another one found for its own."""
    recorder = recorder_in(tmp_path, "developer")
    recorder.calling("compliance", AUDIT).sent(
        audit.AuditRequest(predictions_chunk=np.random.default_rng(0).bytes(1 << 20)).SerializeToString()
    )
    recorder.close()
    script = transcript_of(tmp_path, "developer")
    (digest,) = (large[2] for large in script.messages[0].large)
    known = script.stored(digest)
    assert script.stored(digest) == known
    whole = bytearray(script.path.read_bytes())
    whole[len(whole) // 2] ^= 1
    script.path.write_bytes(whole)
    again = transcript_of(tmp_path, "developer")
    assert "stores other bytes than its digest says" in [problem.text for problem in again.problems]
    assert not again.stores(digest)


def test_what_compresses_is_stored_compressed(tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path, "developer")
    part = audit.AuditRequest(predictions_chunk=bytes(1 << 20)).SerializeToString()
    recorder.calling("compliance", AUDIT).sent(part)
    recorder.close()
    script = transcript_of(tmp_path, "developer")
    assert script.data(script.messages[0]) == part
    assert script.path.stat().st_size < 10_000


def test_a_large_array_goes_by_its_digest_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairwall.rpc.recorder.STORED_BYTES_MAX", 3 << 20)
    monkeypatch.setattr("sim.transcripts.files.STORED_BYTES_MAX", 3 << 20)
    recorder = recorder_in(tmp_path, "developer")
    rng = np.random.default_rng(0)
    call = recorder.calling("compliance", AUDIT)
    for _ in range(5):
        call.sent(audit.AuditRequest(predictions_chunk=rng.bytes(1 << 20)).SerializeToString())
    recorder.close()
    script = transcript_of(tmp_path, "developer")
    assert [script.stores(message.large[0][2]) for message in script.messages] == [True] * 3 + [False] * 2
    assert script.is_whole


def test_a_refusal_is_recorded_with_its_reason_on_both_sides(pair: Pair) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        terms(pair.audits, "another")
    assert reason_of(caught.value) == error_pb2.REASON_DEAL_UNKNOWN
    with pytest.raises(grpc.RpcError):
        terms(pair.audits, seconds=None)
    developer, compliance = pair.transcripts()
    said = [[(e.status, e.reason) for e in script.endings.values()] for script in (developer, compliance)]
    not_found, invalid = grpc.StatusCode.NOT_FOUND.value[0], grpc.StatusCode.INVALID_ARGUMENT.value[0]
    expected = [(not_found, error_pb2.REASON_DEAL_UNKNOWN), (invalid, error_pb2.REASON_DEADLINE_MISSING)]
    assert said == [expected, expected]
    # Who asks without a deadline is refused before its message is read.
    assert [len(script.messages) for script in (developer, compliance)] == [2, 1]
    assert developer.data(developer.messages[0]) == compliance.data(compliance.messages[0])


def test_a_stream_of_answers_is_recorded_and_waiting_can_be_told_from_playing(
    tmp_path: Path, credentials: dict[str, Credentials], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sim.games.table._WAIT_SECONDS", 0.05)
    dealer = RevealDealer(GameTable())
    theirs, own = recorder_in(tmp_path, "referee"), recorder_in(tmp_path, "developer")
    listening = server.serve(
        lambda grpc_server: dealer.register(grpc_server, lambda servicer: servicer),
        credentials["referee"],
        recorder=theirs,
    )
    with channel.connect(listening.address, "referee", credentials["developer"], own) as connection:
        stub = RevealServiceStub(connection)
        (wait,) = stub.TakeDeveloperDeal(reveal_pb2.TakeDeveloperDealRequest(), timeout=300)
        dealer.table.finish()
        over = stub.TakeDeveloperDeal(reveal_pb2.TakeDeveloperDealRequest(), timeout=300)
        assert next(over).turn == game.TURN_OVER
        over.close()  # left before the end of the stream
    listening.stop()
    own.close()
    theirs.close()
    developer, table = transcript_of(tmp_path, "developer"), transcript_of(tmp_path, "referee")
    assert developer.is_whole
    assert table.is_whole
    assert same_bytes(developer, table)
    assert [ending.status for ending in developer.endings.values()] == [0, grpc.StatusCode.CANCELLED.value[0]]
    assert only_waited([wait])
    answers = [m for m in developer.messages if m.is_received]
    assert [only_waited([reveal_pb2.TakeDeveloperDealResponse.FromString(m.content)]) for m in answers] == [True, False]


def test_calls_with_streams_each_way_are_recorded(tmp_path: Path) -> None:
    """The protocol has one-to-one, one-to-many and many-to-one calls; a channel records the fourth kind too."""

    def echo(requests: Any, _: Any) -> Iterator[bytes]:
        yield from requests

    plain = grpc.server(futures.ThreadPoolExecutor(1))
    handler = grpc.stream_stream_rpc_method_handler(echo)
    plain.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("x.Y", {"Echo": handler}),))
    port = plain.add_insecure_port("127.0.0.1:0")
    plain.start()
    recorder = recorder_in(tmp_path, "developer")
    with RecordedChannel(grpc.insecure_channel(f"127.0.0.1:{port}"), "compliance", recorder) as connection:
        assert list(connection.stream_stream("/x.Y/Echo")(iter([b"a", b"b"]), timeout=300)) == [b"a", b"b"]
    with pytest.raises(ValueError, match="closed"):  # by whoever leaves it, as a channel of grpc's own
        connection.stream_stream("/x.Y/Echo")(iter([b"c"]), timeout=300)
    plain.stop(None).wait()
    recorder.close()
    script = transcript_of(tmp_path, "developer")
    assert sorted((m.is_request, m.content) for m in script.messages) == [
        (False, b"a"),
        (False, b"b"),
        (True, b"a"),
        (True, b"b"),
    ]


@pytest.mark.parametrize("given_number", ["", "x", "-1", "٣", "9" * 30, "1 "])
def test_a_number_that_is_none_counts_as_none(tmp_path: Path, given_number: str) -> None:
    recorder = recorder_in(tmp_path, "compliance")
    assert recorder.answering("developer", TERMS, [(CALL_KEY, given_number)]).call.number == 0
    assert recorder.answering("developer", TERMS, []).call.number == 0
    recorder.close()


def test_calls_are_numbered_for_each_peer_alone(tmp_path: Path) -> None:
    """What a peer is told of a number must not tell it how often others were called."""
    recorder = recorder_in(tmp_path, "developer")
    numbers = [recorder.calling(peer, TERMS).call.number for peer in ("compliance", "referee", "referee", "compliance")]
    assert numbers == [1, 1, 2, 2]
    recorder.close()


def test_no_key_and_no_time_is_in_a_transcript(pair: Pair, credentials: dict[str, Credentials]) -> None:
    terms(pair.audits)
    for script in pair.transcripts():
        data = script.path.read_bytes()
        assert b"PRIVATE KEY" not in data
        for line in credentials[script.party].key.splitlines()[1:-1]:
            assert line.encode() not in data


def play(folder: Path, party: str) -> Path:
    """Record a little game that has every kind of entry."""
    recorder = recorder_in(folder, party)
    call = recorder.calling("compliance", AUDIT)
    call.sent(audit.AuditRequest(predictions_chunk=b"ab" * LARGE_BYTES).SerializeToString())
    call.received(audit.AuditResponse(epsilon_charged=1.0).SerializeToString())
    call.ended()
    refused = recorder.calling("referee", DEAL)
    refused.sent(reveal_pb2.TakeDeveloperDealRequest(after_deal_id="deal-1").SerializeToString())
    refused.ended(9, error_pb2.REASON_OUT_OF_TURN)
    recorder.close()
    return folder / party / "1.bin"


def test_the_same_calls_are_recorded_in_the_same_bytes(tmp_path: Path) -> None:
    assert play(tmp_path / "one", "developer").read_bytes() == play(tmp_path / "other", "developer").read_bytes()


def test_wherever_a_transcript_breaks_off_the_entries_before_can_be_read(tmp_path: Path) -> None:
    path = play(tmp_path, "developer")
    data, whole = path.read_bytes(), read(path)
    counts = []
    for size in range(1, len(data)):
        path.write_bytes(data[:size])
        script = read(path)
        counts.append(script.entries)
        assert not script.is_whole
        assert script.messages == whole.messages[: len(script.messages)]
        assert [problem.text for problem in script.problems] == (["is no header"] if script.header is None else [])
    assert counts == sorted(counts)
    assert set(counts) == set(range(whole.entries))


def test_every_byte_counts(tmp_path: Path) -> None:
    """Each byte of a transcript that has every kind of entry is changed, one after the other."""
    path = play(tmp_path, "developer")
    data = bytearray(path.read_bytes())
    assert read(path).is_whole
    for place in range(len(data)):
        bit = 1 << place % 8
        data[place] ^= bit
        path.write_bytes(data)
        assert not read(path).is_whole, place
        data[place] ^= bit


def entries_of(path: Path) -> list[bytes]:
    """The entries as stored, with their lengths."""
    from sim.transcripts.files import _frames

    data, cut, at = path.read_bytes(), [], 0
    for prefix, body, _ in _frames(path):
        size = len(prefix) + len(body) + 34
        cut.append(data[at : at + size])
        at += size
    return cut


def test_an_entry_that_is_dropped_doubled_or_swapped_is_named(tmp_path: Path) -> None:
    path = play(tmp_path, "developer")
    entries = entries_of(path)
    for number in range(1, len(entries) - 1):
        path.write_bytes(b"".join(entries[:number] + entries[number + 1 :]))
        assert read(path).problems[0].entry == number
        path.write_bytes(b"".join([*entries[: number + 1], *entries[number:]]))
        assert read(path).problems[0].entry == number + 1
        swapped = [*entries[:number], entries[number + 1], entries[number], *entries[number + 2 :]]
        path.write_bytes(b"".join(swapped))
        assert read(path).problems[0].entry == number


def test_what_follows_the_last_entry_is_named(tmp_path: Path) -> None:
    path = play(tmp_path, "developer")
    entries = entries_of(path)
    for more, text in ((b"x", "1 bytes follow the last entry"), (entries[-1], "follows the last entry")):
        path.write_bytes(b"".join([*entries, more]))
        script = read(path)
        assert text in [problem.text for problem in script.problems]
        assert {problem.entry for problem in script.problems} == {len(entries)}


def test_a_transcript_is_never_written_over(tmp_path: Path) -> None:
    play(tmp_path, "developer")
    with pytest.raises(FileExistsError):
        recorder_in(tmp_path, "developer")
    TranscriptRecorder(
        tmp_path / "developer" / "2.bin", "run-1", "developer", "digest"
    ).close()  # the next one, beside it


def test_what_comes_after_the_end_is_not_recorded(tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path, "developer")
    call = recorder.calling("referee", DEAL)
    recorder.close()
    assert call.received(b"late") == b"late"
    assert transcript_of(tmp_path, "developer").is_whole


def test_without_a_recorder_bytes_only_pass() -> None:
    call = RecordedCall()
    assert (call.sent(b"a"), call.received(b"b")) == (b"a", b"b")
    call.ended()


def test_a_large_field_is_found_behind_fields_of_every_other_kind() -> None:
    """Unknown ones: a number, 8 bytes, a short text and 4 bytes, of fields 20 to 23."""
    before = b"\xa0\x01\x96\x01" + b"\xa9\x01" + bytes(8) + b"\xb2\x01\x03abc" + b"\xbd\x01" + bytes(4)
    large = audit.AuditRequest(predictions_chunk=bytes(LARGE_BYTES)).SerializeToString()
    for data in (before + large, before + large + before):
        (found,) = large_fields(memoryview(data), AUDIT, is_request=True)
        end = len(before) + len(large)
        assert found == (end - LARGE_BYTES, end)


arrays = st.builds(
    array_pb2.Array,
    header=st.builds(array_pb2.ArrayHeader, shape=st.lists(st.integers(0, 2**63), max_size=2)),
    data=st.integers(0, 3 * LARGE_BYTES).map(bytes),
)
audit_records = st.builds(game.AuditRecord, request_id=st.text(max_size=9), exact=arrays, released=arrays)
reports = st.builds(
    game.SubmitAuditReportRequest, deal_id=st.text(max_size=9), audits=st.lists(audit_records, max_size=4)
)


@settings(deadline=None, max_examples=60)
@given(report=reports, noise=st.binary(max_size=LARGE_BYTES), broken=st.booleans())
def test_whatever_arrives_is_put_together_again(
    tmp_path_factory: pytest.TempPathFactory, report: Any, noise: bytes, broken: bool
) -> None:
    """Messages of the protocol, and bytes that are none."""
    folder = tmp_path_factory.mktemp("any")
    recorder = recorder_in(folder, "referee")
    data = report.SerializeToString()
    data = noise + data[len(noise) // 2 :] if broken else data
    method = "/fairwall.game.v1.RefereeService/SubmitAuditReport"
    recorder.answering("compliance", method, [(CALL_KEY, "1")]).received(data)
    recorder.close()
    script = transcript_of(folder, "referee")
    assert script.is_whole
    (message,) = script.messages
    assert script.data(message) == data
    if not broken:
        assert len(message.content) < len(data) or all(
            len(array.data) < LARGE_BYTES for record in report.audits for array in (record.exact, record.released)
        )


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"record": "some"}, "key 'record' must be full or digest"),
        ({"transcript": 1}, "key 'transcript' must be a str"),
    ],
)
def test_a_party_that_is_told_wrongly_how_to_record_ends_with_one_line(
    credentials: dict[str, Credentials], change: dict[str, Any], text: str
) -> None:
    own = credentials["adversary"]
    keys = {"authority": own.authority, "certificate": own.certificate, "key": own.key}
    config = {"run": own.run, "party": own.party, "referee": "127.0.0.1:1", "listen": "127.0.0.1:0", **keys, **change}
    command = [sys.executable, "-I", "-m", "adversary", "--config", "-"]
    ended = subprocess.run(command, input=json.dumps(config) + "\n", capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert text in ended.stderr


def test_a_party_does_not_write_over_a_transcript(credentials: dict[str, Credentials], tmp_path: Path) -> None:
    own, path = credentials["adversary"], tmp_path / "adversary" / "1.bin"
    play(tmp_path, "adversary")
    keys = {"authority": own.authority, "certificate": own.certificate, "key": own.key, "transcript": str(path)}
    config = {"run": own.run, "party": own.party, "referee": "127.0.0.1:1", "listen": "127.0.0.1:0", **keys}
    (tmp_path / "config.json").write_text(json.dumps(config))
    command = [sys.executable, "-I", "-m", "adversary", "--config", str(tmp_path / "config.json")]
    before = path.read_bytes()
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 2
    assert "configuration: [Errno 17] File exists" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert path.read_bytes() == before


def test_calls_at_the_same_time_leave_a_transcript_that_is_whole(tmp_path: Path) -> None:
    """Many threads, the same bytes: what a message refers to always stands before it."""
    recorder = recorder_in(tmp_path, "referee")
    fields = [bytes([number]) * 50_000 for number in range(20)]

    def deal(_: int) -> None:
        call = recorder.calling("developer", DEAL)
        for field in fields:
            call.sent(reveal_pb2.TakeDeveloperDealResponse(features_chunk=field).SerializeToString())
        call.ended()

    with futures.ThreadPoolExecutor(8) as threads:
        list(threads.map(deal, range(16)))
    recorder.close()
    script = transcript_of(tmp_path, "referee")
    assert script.is_whole
    assert len(script.messages) == 320
    assert sorted(call.number for call in script.endings) == list(range(1, 17))


def test_every_field_of_a_transcript_says_who_may_see_it() -> None:
    assert [at.path for at in walk(Entry.DESCRIPTOR) if at.level == VISIBILITY_UNSPECIFIED] == []
