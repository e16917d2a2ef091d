"""Who calls is read from the certificate alone, and whoever may not call is refused, on every method."""

from __future__ import annotations

import queue
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from grpc_health.v1 import health_pb2, health_pb2_grpc

from compliance.answers.audit_service import AuditService
from compliance.answers.group_service import GroupService
from compliance.answers.releases import ReleaseService
from compliance.answers.statistics import StatisticsService
from developer.service import ModelService
from fairwall.compliance.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from fairwall.compliance.v1.group_service_pb2_grpc import add_GroupServiceServicer_to_server
from fairwall.compliance.v1.release_service_pb2_grpc import add_ReleaseServiceServicer_to_server
from fairwall.compliance.v1.statistics_service_pb2_grpc import add_StatisticsServiceServicer_to_server
from fairwall.developer.v1.model_service_pb2_grpc import add_ModelServiceServicer_to_server
from fairwall.game.v1.referee_service_pb2 import GAME_REVEAL
from fairwall.game.v1.referee_service_pb2_grpc import add_RefereeServiceServicer_to_server
from fairwall.rpc import channel, server
from fairwall.rpc.access import CALLERS, SERVED_BY
from fairwall.rpc.errors import reason_of
from fairwall.rpc.fair_use import Quota
from fairwall.rpc.identity import PARTIES, SERVERS, Caller, Credentials
from fairwall.rpc.server import CALLS_PER_CALLER, Deployed
from fairwall.wire.v1 import error_pb2 as error
from sim.games.curator.trial import CuratorDealer
from sim.games.disclosure.trial import DisclosureDealer
from sim.games.groups.trial import GroupsDealer
from sim.games.inference.trial import InferenceDealer
from sim.games.overfit.trial import OverfitDealer
from sim.games.referee import Referee
from sim.games.release.trial import ReleaseDealer
from sim.games.reveal.trial import RevealDealer
from sim.games.table import GameTable
from sim.games.training.trial import TrainingDealer
from sim.games.wash.trial import WashDealer
from sim.play.keys import mint

AUDIT = "/fairwall.compliance.v1.AuditService/GetTerms"
HEALTH = "/grpc.health.v1.Health/"


def register_compliance(server: grpc.Server) -> None:
    add_AuditServiceServicer_to_server(AuditService({}), server)
    add_ReleaseServiceServicer_to_server(ReleaseService({}), server)
    add_StatisticsServiceServicer_to_server(StatisticsService({}), server)
    add_GroupServiceServicer_to_server(GroupService({}), server)


def register_referees(server: grpc.Server) -> None:
    table = GameTable()
    add_RefereeServiceServicer_to_server(Referee("run-1", "digest", GAME_REVEAL, table), server)
    for dealer in (
        RevealDealer,
        InferenceDealer,
        ReleaseDealer,
        DisclosureDealer,
        TrainingDealer,
        GroupsDealer,
        OverfitDealer,
        WashDealer,
        CuratorDealer,
    ):
        dealer(table).register(server, lambda servicer: servicer)


REGISTER: dict[str, Callable[[grpc.Server], None]] = {
    "compliance": register_compliance,
    "developer": lambda server: add_ModelServiceServicer_to_server(ModelService({}, {}), server),
    "referee": register_referees,
}
FORBIDDEN = [
    (method, party)
    for method, callers in CALLERS.items()
    if not method.startswith(HEALTH)
    for party in PARTIES
    if party not in callers
]

Credit = dict[str, Credentials]


def failure(channel: grpc.Channel, method: str = AUDIT, seconds: float = 5) -> tuple[error.Reason, grpc.StatusCode]:
    """How a call of an empty message fails."""
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary(method)(b"", timeout=seconds)
    failed: Any = caught.value
    return reason_of(failed), failed.code()


NO_CONNECTION = (error.REASON_UNSPECIFIED, grpc.StatusCode.UNAVAILABLE)
UNKNOWN = (error.REASON_CALLER_UNKNOWN, grpc.StatusCode.UNAUTHENTICATED)


@pytest.fixture
def audit_address(serve: Any, credentials: Credit) -> str:
    return str(serve(REGISTER["compliance"], credentials["compliance"]))


def test_the_developer_is_let_in(audit_address: str, dial: Any, credentials: Credit) -> None:
    channel = dial(audit_address, "compliance", credentials["developer"])
    assert failure(channel) == (error.REASON_DEAL_UNKNOWN, grpc.StatusCode.NOT_FOUND)


def test_a_caller_without_tls_does_not_connect(audit_address: str) -> None:
    with grpc.insecure_channel(audit_address) as channel:
        assert failure(channel) == NO_CONNECTION


def test_a_caller_without_a_certificate_does_not_connect(audit_address: str, credentials: Credit) -> None:
    only_roots = grpc.ssl_channel_credentials(credentials["developer"].authority.encode())
    options = [("grpc.ssl_target_name_override", "compliance.run-1.fairwall")]
    with grpc.secure_channel(audit_address, only_roots, options) as channel:
        assert failure(channel) == NO_CONNECTION


def test_a_certificate_of_another_authority_does_not_connect(
    audit_address: str, dial: Any, credentials: Credit
) -> None:
    # The same run, the same party, minted by somebody else who trusts our authority.
    impostor = replace(mint("run-1")["developer"], authority=credentials["developer"].authority)
    assert failure(dial(audit_address, "compliance", impostor)) == NO_CONNECTION


def test_a_certificate_without_its_key_does_not_connect(audit_address: str, dial: Any, credentials: Credit) -> None:
    thief = replace(credentials["adversary"], certificate=credentials["developer"].certificate)
    assert failure(dial(audit_address, "compliance", thief)) == NO_CONNECTION


@pytest.mark.parametrize(
    "uri",
    [
        "fairwall://run-2/developer",
        "fairwall://run-1/Developer",
        "spiffe://run-1/developer",
    ],
)
def test_our_authority_s_word_for_somebody_else_is_no_word_for_the_developer(
    uri: str, serve: Any, dial: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sim.play.keys.uri_of", lambda *_: uri)
    strange = mint("run-1")
    address = serve(REGISTER["compliance"], strange["compliance"])
    assert failure(dial(address, "compliance", strange["developer"])) == UNKNOWN


def test_a_party_that_no_run_has_is_unknown(serve: Any, dial: Any) -> None:
    minted = mint("run-1", (*PARTIES, "regulator"))
    address = serve(REGISTER["compliance"], minted["compliance"])
    assert failure(dial(address, "compliance", minted["regulator"])) == UNKNOWN


@pytest.mark.parametrize("serving", REGISTER)
def test_a_party_is_refused_what_is_not_its_own_to_call(
    serving: str, serve: Any, dial: Any, credentials: Credit
) -> None:
    address = serve(REGISTER[serving], credentials[serving])
    channels = {party: dial(address, serving, credentials[party]) for party in PARTIES}
    prefixes = tuple(prefix for prefix, by in SERVED_BY.items() if by == serving)
    asked = [(method, party) for method, party in FORBIDDEN if method.startswith(prefixes)]
    refused = (error.REASON_CALLER_NOT_ALLOWED, grpc.StatusCode.PERMISSION_DENIED)
    assert {(method, party): failure(channels[party], method) for method, party in asked} == dict.fromkeys(
        asked, refused
    )
    assert asked


def test_a_method_that_the_table_forgets_is_refused_to_everybody(
    audit_address: str, dial: Any, credentials: Credit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(CALLERS, AUDIT)
    for party in PARTIES:
        channel = dial(audit_address, "compliance", credentials[party])
        assert failure(channel)[0] == error.REASON_CALLER_NOT_ALLOWED


def test_a_method_that_is_not_served_is_unimplemented(audit_address: str, dial: Any, credentials: Credit) -> None:
    for party in PARTIES:
        channel = dial(audit_address, "compliance", credentials[party])
        for method in (AUDIT + "s", "/fairwall.developer.v1.ModelService/Predict", "/x/y"):
            assert failure(channel, method)[1] == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("shown", PARTIES)
def test_a_client_talks_only_to_the_server_that_it_means(
    shown: str, serve: Any, dial: Any, credentials: Credit
) -> None:
    address = serve(REGISTER["compliance"], credentials[shown])
    for wanted in PARTIES:
        reached = failure(dial(address, wanted, credentials["developer"])) != NO_CONNECTION
        assert reached == (shown == wanted and wanted in SERVERS)


def test_a_certificate_for_clients_stands_for_no_server_even_under_the_right_name(
    serve: Any, dial: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = ExtendedKeyUsageOID.CLIENT_AUTH
    monkeypatch.setattr("sim.play.keys.ExtendedKeyUsageOID", SimpleNamespace(CLIENT_AUTH=client, SERVER_AUTH=client))
    minted = mint("run-1")
    address = serve(REGISTER["compliance"], minted["compliance"])
    assert failure(dial(address, "compliance", minted["developer"])) == NO_CONNECTION


def test_a_server_of_another_run_is_not_the_one_meant(serve: Any, dial: Any, credentials: Credit) -> None:
    address = serve(REGISTER["compliance"], mint("run-2")["compliance"])
    assert failure(dial(address, "compliance", credentials["developer"])) == NO_CONNECTION


def test_every_party_may_ask_whether_a_server_is_well(audit_address: str, dial: Any, credentials: Credit) -> None:
    for party in PARTIES:
        health = health_pb2_grpc.HealthStub(dial(audit_address, "compliance", credentials[party]))
        answer = health.Check(health_pb2.HealthCheckRequest(), timeout=300)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_health_needs_a_deadline_too(audit_address: str, dial: Any, credentials: Credit) -> None:
    health = health_pb2_grpc.HealthStub(dial(audit_address, "compliance", credentials["adversary"]))
    with pytest.raises(grpc.RpcError) as caught:
        health.Check(health_pb2.HealthCheckRequest())
    assert reason_of(caught.value) == error.REASON_DEADLINE_MISSING


def test_watching_a_server_s_health_does_not_keep_others_out(
    audit_address: str, dial: Any, credentials: Credit
) -> None:
    watcher = health_pb2_grpc.HealthStub(dial(audit_address, "compliance", credentials["adversary"]))
    watches = [watcher.Watch(health_pb2.HealthCheckRequest(), timeout=300) for _ in range(16)]
    channel = dial(audit_address, "compliance", credentials["developer"])
    try:
        for watch in watches:
            with suppress(grpc.RpcError):  # to be refused is as good
                next(watch)
        assert failure(channel, seconds=1)[0] == error.REASON_DEAL_UNKNOWN
    finally:
        for watch in watches:
            watch.cancel()


def test_an_authority_signs_no_further_authority_and_every_run_has_its_own(credentials: Credit) -> None:
    assert len({each.authority for each in credentials.values()}) == 1
    assert len({each.key for each in credentials.values()}) == len(PARTIES)
    assert mint("run-1")["developer"].authority != credentials["developer"].authority


def test_credentials_do_not_show_their_private_key(credentials: Credit) -> None:
    assert "PRIVATE KEY" in credentials["developer"].key
    assert "PRIVATE KEY" not in repr(credentials)


DEPLOYED = mint("loans", ("compliance", "developer", "adversary"), developers=("alice", "bob", "carol"))
ADMITTED = {
    Caller("loans", "compliance"): Quota(),
    Caller("loans", "developer", "alice"): Quota(),
    Caller("loans", "developer", "bob"): Quota(),
}
NOT_ALLOWED = (error.REASON_CALLER_NOT_ALLOWED, grpc.StatusCode.PERMISSION_DENIED)
IN = (error.REASON_DEAL_UNKNOWN, grpc.StatusCode.NOT_FOUND)


@pytest.fixture
def deployed() -> Iterator[str]:
    """The address of a deployment that admits two named developers."""
    listening = server.serve(REGISTER["compliance"], DEPLOYED["compliance"], deployed=Deployed(ADMITTED))
    yield listening.address
    listening.stop()


def test_a_deployment_lets_in_the_developers_that_its_policy_names(deployed: str, dial: Any) -> None:
    outcomes = {caller: failure(dial(deployed, "compliance", own)) for caller, own in DEPLOYED.items()}
    others = dict.fromkeys(DEPLOYED.keys() - {"developer-alice", "developer-bob"}, NOT_ALLOWED)
    assert outcomes == {"developer-alice": IN, "developer-bob": IN, **others}
    assert others.keys() == {"developer-carol", "developer", "adversary", "compliance"}


@pytest.mark.parametrize("name", ["Alice", "-alice", "a" * 64, "alice/bob"])
def test_a_name_that_no_developer_can_have_names_nobody(
    name: str, serve: Any, dial: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sim.play.keys.uri_of", lambda run, party, *_: f"fairwall://{run}/{party}/{name}")
    strange = mint("loans", ("compliance",), developers=("alice",))
    address = serve(REGISTER["compliance"], strange["compliance"])
    assert failure(dial(address, "compliance", strange["developer-alice"])) == UNKNOWN


def test_a_developer_that_holds_all_its_calls_open_leaves_room_for_another(deployed: str, dial: Any) -> None:
    alice, bob = (dial(deployed, "compliance", DEPLOYED[f"developer-{name}"]) for name in ("alice", "bob"))
    hold = Event()

    def silent() -> Iterator[bytes]:
        hold.wait(300)
        yield from ()

    open_call = alice.stream_unary("/fairwall.compliance.v1.AuditService/Audit")
    calls = [open_call.future(silent(), timeout=300) for _ in range(2 * CALLS_PER_CALLER)]
    try:
        while sum(call.done() for call in calls) < CALLS_PER_CALLER:
            time.sleep(0.01)
        refused = [call for call in calls if call.done()]  # those that are not have all the room
        assert {reason_of(call.exception()) for call in refused} == {error.REASON_TOO_MANY_CALLS}
        assert failure(alice)[0] == error.REASON_TOO_MANY_CALLS
        assert failure(bob) == IN
    finally:
        hold.set()
    held = [call for call in calls if call not in refused]
    assert {reason_of(call.exception()) for call in held} == {error.REASON_REQUEST_MALFORMED}


@pytest.mark.parametrize(
    ("name", "method"),
    [("alice", HEALTH + "Check"), ("carol", "/fairwall.compliance.v1.AuditService/Audit")],
    ids=["a developer", "one whom no policy names"],
)
def test_calls_that_send_no_message_keep_nobody_else_out(deployed: str, dial: Any, method: str, name: str) -> None:
    flooding, bob = (dial(deployed, "compliance", DEPLOYED[f"developer-{one}"]) for one in (name, "bob"))
    over = Event()

    def silent() -> Iterator[bytes]:
        over.wait(300)
        yield from ()

    calls = [flooding.stream_unary(method).future(silent(), timeout=300) for _ in range(40)]
    room = CALLS_PER_CALLER if name == "alice" else 0
    reason = error.REASON_TOO_MANY_CALLS if name == "alice" else error.REASON_CALLER_NOT_ALLOWED
    try:
        assert failure(bob) == IN
        while sum(call.done() for call in calls) < 40 - room:
            time.sleep(0.01)
        assert {reason_of(call.exception()) for call in calls if call.done()} == {reason}
        assert failure(bob) == IN
    finally:
        over.set()


def test_where_everybody_holds_all_their_calls_open_the_next_are_refused_and_do_not_wait(
    deployed: str, dial: Any
) -> None:
    everybody = [
        dial(deployed, "compliance", DEPLOYED[one]) for one in ("compliance", "developer-alice", "developer-bob")
    ]
    over = Event()

    def silent() -> Iterator[bytes]:
        over.wait(300)
        yield from ()

    ask = [each.stream_unary(f"{HEALTH}Check") for each in everybody for _ in range(2 * CALLS_PER_CALLER)]
    calls = [one.future(silent(), timeout=300) for one in ask]
    try:
        deadline = time.monotonic() + 300
        while sum(call.done() for call in calls) < len(calls) // 2:
            assert time.monotonic() < deadline, "refusals wait for calls that say nothing"
            time.sleep(0.01)
        assert {reason_of(call.exception()) for call in calls if call.done()} == {error.REASON_TOO_MANY_CALLS}
    finally:
        over.set()


def bare_connection(address: str, own: Credentials, folder: Path) -> ssl.SSLSocket:
    """A connection that says nothing after its handshake."""
    context = ssl.create_default_context(cadata=own.authority)
    for name, text in (("certificate", own.certificate), ("key", own.key)):
        (folder / name).write_text(text)
    context.load_cert_chain(folder / "certificate", folder / "key")
    context.set_alpn_protocols(["h2"])
    host, port = address.rsplit(":", 1)
    return context.wrap_socket(socket.create_connection((host, int(port))), server_hostname="compliance.loans.fairwall")


def test_connections_that_say_nothing_keep_nobody_out(deployed: str, dial: Any, tmp_path: Path) -> None:
    silent = [bare_connection(deployed, DEPLOYED["developer-carol"], tmp_path) for _ in range(50)]
    try:
        assert failure(dial(deployed, "compliance", DEPLOYED["developer-bob"])) == IN
    finally:
        for connection in silent:
            connection.close()


def test_a_method_of_one_message_takes_one(deployed: str, dial: Any) -> None:
    bob = dial(deployed, "compliance", DEPLOYED["developer-bob"])
    for messages in (0, 2):
        with pytest.raises(grpc.RpcError) as caught:
            bob.stream_unary(AUDIT)(iter([b""] * messages), timeout=300)
        assert reason_of(caught.value) == error.REASON_REQUEST_MALFORMED


def test_a_caller_has_as_many_calls_as_the_protocol_says() -> None:
    text = Path("docs/protocol.md").read_text()
    assert f"at most {CALLS_PER_CALLER} calls of one party at a time" in text
    assert f"this caller has {CALLS_PER_CALLER} calls under way already" in text


def test_a_channel_sends_nothing_twice_of_its_own_accord(credentials: Credit, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, object]] = []
    monkeypatch.setattr(grpc, "secure_channel", lambda *_, options: given.extend(options))
    channel.connect("127.0.0.1:1", "compliance", credentials["developer"])
    assert ("grpc.enable_retries", 0) in given


def test_a_game_knows_no_named_developer(serve: Any, dial: Any) -> None:
    address = serve(REGISTER["compliance"], DEPLOYED["compliance"])
    assert failure(dial(address, "compliance", DEPLOYED["developer-alice"])) == NOT_ALLOWED


def test_a_certificate_with_two_names_names_nobody(serve: Any, dial: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    general_names = x509.SubjectAlternativeName

    def both(names: list[x509.GeneralName]) -> x509.SubjectAlternativeName:
        return general_names([*names, x509.UniformResourceIdentifier("fairwall://loans/developer/bob")])

    monkeypatch.setattr("sim.play.keys.x509.SubjectAlternativeName", both)
    minted = mint("loans", ("compliance",), developers=("alice",))
    address = serve(REGISTER["compliance"], minted["compliance"])
    assert failure(dial(address, "compliance", minted["developer-alice"])) == UNKNOWN


def deployed_with(minted: Credit) -> server.Server:
    return server.serve(REGISTER["compliance"], minted["compliance"], deployed=Deployed(ADMITTED))


def test_a_server_that_is_stopped_takes_no_call(dial: Any) -> None:
    listening = deployed_with(DEPLOYED)
    alice = dial(listening.address, "compliance", DEPLOYED["developer-alice"])
    assert failure(alice) == IN
    listening.stop()
    assert failure(alice) == NO_CONNECTION


@pytest.mark.check
def test_a_connection_does_not_outlive_its_certificate(dial: Any) -> None:
    minted = mint("loans", ("compliance",), developers=("alice",), valid=timedelta(seconds=4))
    listening = deployed_with(minted)
    try:
        alice = dial(listening.address, "compliance", minted["developer-alice"])
        assert failure(alice) == IN
        outcomes = {IN}
        while IN in outcomes:
            time.sleep(0.2)
            outcomes = {failure(alice)}
        assert outcomes == {UNKNOWN}
    finally:
        listening.stop()


@pytest.mark.check
def test_a_deployment_closes_old_connections(dial: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairwall.rpc.server._AGE_SECONDS", 1.0)
    listening = deployed_with(DEPLOYED)
    try:
        alice = dial(listening.address, "compliance", DEPLOYED["developer-alice"])
        seen: queue.SimpleQueue[grpc.ChannelConnectivity] = queue.SimpleQueue()
        alice.subscribe(seen.put)
        assert failure(alice) == IN
        while seen.get(timeout=300) is not grpc.ChannelConnectivity.READY:
            pass
        while seen.empty():  # it is in use all the time
            assert failure(alice) == IN
            time.sleep(0.05)
        assert seen.get() is grpc.ChannelConnectivity.IDLE
        assert failure(alice) == IN  # by another one
    finally:
        listening.stop()
