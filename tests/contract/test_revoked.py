"""Who is revoked is refused at once, on an open connection and within a call; a broken list lets nobody in."""

from __future__ import annotations

import logging
import os
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.compliance.v1.audit_service_pb2_grpc import (
    AuditServiceServicer,
    AuditServiceStub,
    add_AuditServiceServicer_to_server,
)
from fairwall.rpc import channel, identity, server
from fairwall.rpc.errors import reason_of
from fairwall.rpc.fair_use import Quota
from fairwall.rpc.identity import Caller, load
from fairwall.rpc.revoked import Revoked, RevokedError
from fairwall.rpc.server import Deployed
from fairwall.wire.v1 import error_pb2 as error
from sim.deployment.certificates import add, authority_of, renew, revoke, write
from sim.play.keys import RunAuthority

IN = error.REASON_UNSPECIFIED
OUT = error.REASON_CALLER_UNKNOWN


class Answering(AuditServiceServicer):
    """Answers whoever is let in, once it has heard all; `answering` is set once it has, and waits for `may_answer`."""

    def __init__(self) -> None:
        self.heard: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.answering = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def GetTerms(self, __: audit.GetTermsRequest, _: grpc.ServicerContext) -> audit.GetTermsResponse:  # noqa: N802
        return audit.GetTermsResponse()

    def Audit(self, request_iterator: Iterator[Any], _: grpc.ServicerContext) -> audit.AuditResponse:  # noqa: N802
        for message in request_iterator:
            self.heard.put(message)
        self.answering.set()
        assert self.may_answer.wait(300)
        return audit.AuditResponse()


@dataclass(frozen=True)
class Place:
    """A deployment that is served: its folder of certificates, its authority, its server."""

    folder: Path
    authority: RunAuthority
    listening: server.Server
    service: Answering

    @contextmanager
    def dialled(self, name: str) -> Iterator[grpc.Channel]:
        own = load(self.folder / f"developer-{name}")
        with channel.connect(self.listening.address, "compliance", own) as opened:
            yield opened

    def revoke(self, name: str) -> None:
        revoke(self.folder, name, self.authority)

    @property
    def list(self) -> Path:
        return self.folder / "compliance" / "revoked.pem"


@contextmanager
def serving(folder: Path, kind: type[Revoked] = Revoked) -> Iterator[Place]:
    write(folder, "loans", ("alice", "bob"), 1)
    authority = authority_of(folder / "authority/authority.pem", folder / "authority/key.pem")
    service = Answering()
    admitted = {Caller("loans", "developer", name): Quota() for name in ("alice", "bob")}
    listening = server.serve(
        lambda grpc_server: add_AuditServiceServicer_to_server(service, grpc_server),
        load(folder / "compliance"),
        deployed=Deployed(admitted, revoked=kind(folder / "compliance" / "revoked.pem", authority.pem)),
    )
    try:
        yield Place(folder, authority, listening, service)
    finally:
        listening.stop()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with serving(tmp_path) as served:
        yield served


def outcome(opened: grpc.Channel) -> error.Reason:
    try:
        AuditServiceStub(opened).GetTerms(audit.GetTermsRequest(), timeout=300)
    except grpc.RpcError as failed:
        return reason_of(failed)
    return IN


# An open connection --------------------------------------------------------------------------------------------------


def is_refused_at_once(place: Place) -> bool:
    with place.dialled("alice") as alice, place.dialled("bob") as bob:
        assert (outcome(alice), outcome(bob)) == (IN, IN)
        place.revoke("alice")
        refused = outcome(alice) == OUT
        assert outcome(bob) == IN
        return refused


def test_who_is_revoked_is_refused_on_an_open_connection(place: Place) -> None:
    assert is_refused_at_once(place)
    with place.dialled("alice") as again:
        assert outcome(again) == OUT


def test_a_server_that_looks_at_the_handshake_alone_is_caught(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[tuple[bytes, ...], bool] = {}

    def once(certificates: tuple[bytes, ...], revoked: Revoked | None) -> bool:
        return seen.setdefault(certificates, identity.are_valid(certificates, revoked))

    monkeypatch.setattr(server, "are_valid", once)
    assert not is_refused_at_once(place)


def test_a_server_that_reads_the_list_once_is_caught(tmp_path: Path) -> None:
    class Once(Revoked):
        def _look(self) -> None:
            if self._stamp == ():
                super()._look()

    with serving(tmp_path, Once) as place:
        assert not is_refused_at_once(place)


# A call that is under way --------------------------------------------------------------------------------------------


def ends_under_way(place: Place, when: str, leave: Callable[[Place], None]) -> tuple[error.Reason, int]:
    """How alice's stream ends who has to `leave` in its middle, and how many messages the service has heard of it."""
    messages: queue.SimpleQueue[audit.AuditRequest | None] = queue.SimpleQueue()
    if when == "before the answer":
        place.service.may_answer.clear()
    with place.dialled("alice") as alice:
        call = AuditServiceStub(alice).Audit.future(iter(messages.get, None), timeout=300)
        messages.put(audit.AuditRequest())
        place.service.heard.get(timeout=300)
        if when == "before the answer":
            messages.put(None)
            assert place.service.answering.wait(300)
        leave(place)
        if when == "before a message":
            messages.put(audit.AuditRequest())
        messages.put(None)
        place.service.may_answer.set()
        failed = call.exception(timeout=300)
    heard = 1
    while not place.service.heard.empty():
        place.service.heard.get()
        heard += 1
    return (IN if failed is None else reason_of(failed)), heard


def is_revoked(place: Place) -> None:
    place.revoke("alice")


def is_left_out(place: Place) -> None:
    """The policy that is loaded again names bob alone."""
    place.listening.admit(Deployed({Caller("loans", "developer", "bob"): Quota()}))


WHEN = ("before a message", "before the end", "before the answer")
LEAVE = {is_revoked: OUT, is_left_out: error.REASON_CALLER_NOT_ALLOWED}


@pytest.mark.parametrize("leave", LEAVE)
@pytest.mark.parametrize("when", WHEN)
def test_who_has_to_leave_in_the_middle_of_a_call_is_not_heard_out(
    place: Place, when: str, leave: Callable[[Place], None]
) -> None:
    assert ends_under_way(place, when, leave) == (LEAVE[leave], 1)
    assert place.service.answering.is_set() == (when == "before the answer")


@pytest.mark.parametrize("when", WHEN)
def test_a_server_that_looks_at_the_beginning_of_a_call_alone_is_caught(
    place: Place, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_Bytes", lambda recorded, meter, _: SOUND(recorded, meter, lambda: None))
    assert ends_under_way(place, when, is_revoked)[0] == IN


SOUND = server._Bytes


# Renewed -------------------------------------------------------------------------------------------------------------


def test_a_renewed_certificate_is_let_in_while_the_old_one_is_refused(place: Place) -> None:
    with place.dialled("alice") as old:
        assert outcome(old) == IN
        renew(place.folder, "alice", 1, place.authority)
        with place.dialled("alice") as new:
            assert (outcome(old), outcome(new)) == (IN, IN)
            renew(place.folder, "alice", 1, place.authority, revoke_old=True)
            with place.dialled("alice") as newest:
                assert [outcome(each) for each in (old, new, newest)] == [OUT, OUT, IN]


def shown(place: Place) -> int:
    """The number of the certificate with which the server proves itself to who connects now."""
    folder = place.folder / "developer-bob"
    context = ssl.create_default_context(cafile=str(folder / "authority.pem"))
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    context.set_alpn_protocols(["h2"])
    host, port = place.listening.address.rsplit(":", 1)
    with (
        socket.create_connection((host, int(port)), timeout=300) as plain,
        context.wrap_socket(plain, server_hostname="compliance.loans.fairwall") as connection,
    ):
        certificate = connection.getpeercert(binary_form=True)
    assert certificate is not None
    return x509.load_der_x509_certificate(certificate).serial_number


def test_a_server_shows_a_renewed_certificate_and_loses_no_call(place: Place) -> None:
    before, numbers = shown(place), []
    outcomes: list[error.Reason] = []
    over = threading.Event()

    def keep_asking() -> None:
        with place.dialled("alice") as alice:
            while not over.is_set():
                outcomes.append(outcome(alice))
                with place.dialled("bob") as fresh:
                    outcomes.append(outcome(fresh))

    asking = threading.Thread(target=keep_asking)
    asking.start()
    try:
        for _ in range(5):
            renew(place.folder, "compliance", 1, place.authority)
            place.listening.show(load(place.folder / "compliance"))
            numbers.append(shown(place))
    finally:
        over.set()
        asking.join()
    assert len({before, *numbers}) == 6
    assert set(outcomes) == {IN}


# A list that cannot be relied on -------------------------------------------------------------------------------------


def signed(
    authority: RunAuthority,
    *extensions: x509.ExtensionType,
    critical: bool = True,
    begins: timedelta = -timedelta(hours=2),
    ends: timedelta = timedelta(hours=1),
    entry: x509.ExtensionType | None = None,
) -> bytes:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(authority.certificate.subject)
        .last_update(now + begins)
        .next_update(now + ends)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=critical)
    if entry is not None:
        revoked = x509.RevokedCertificateBuilder().serial_number(1).revocation_date(now)
        builder = builder.add_revoked_certificate(revoked.add_extension(entry, critical=False).build())
    return builder.sign(authority.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def for_part(**kind: Any) -> x509.IssuingDistributionPoint:
    """What says that a list is for a part of the certificates alone."""
    none: dict[str, Any] = {
        "full_name": None,
        "relative_name": None,
        "only_contains_user_certs": False,
        "only_contains_ca_certs": False,
        "only_some_reasons": None,
        "indirect_crl": False,
        "only_contains_attribute_certs": False,
    }
    return x509.IssuingDistributionPoint(**{**none, **kind})


ELSEWHERE = [x509.UniformResourceIdentifier("http://example.org/crl")]
PARTS: dict[str, x509.ExtensionType] = {
    "of changes alone": x509.DeltaCRLIndicator(1),
    "with changes elsewhere": x509.FreshestCRL([x509.DistributionPoint(ELSEWHERE, None, None, None)]),
    "for authorities": for_part(only_contains_ca_certs=True),
    "for users": for_part(only_contains_user_certs=True),
    "for attributes": for_part(only_contains_attribute_certs=True),
    "for one reason": for_part(only_some_reasons=frozenset({x509.ReasonFlags.key_compromise})),
    "of several issuers": for_part(indirect_crl=True),
    "for one place": for_part(full_name=ELSEWHERE),
    "with what nobody knows": x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00"),
}
"""What a list says that may leave out some who are revoked, critical or not."""

ENTRIES: dict[str, x509.ExtensionType] = {
    "that takes one off again": x509.CRLReason(x509.ReasonFlags.remove_from_crl),
    "with another's certificate": x509.CertificateIssuer([x509.DirectoryName(x509.Name([]))]),
}


def replace(path: Path, text: bytes) -> None:
    aside = path.with_name("aside")
    aside.write_bytes(text)
    aside.replace(path)


def fold(path: Path) -> None:
    path.unlink()
    path.mkdir()


OTHER = RunAuthority.new("loans", datetime.now(UTC) + timedelta(days=1))
"""Of the same name, with another key."""

BROKEN: dict[str, tuple[Callable[[Place], object], str]] = {
    "empty": (lambda place: replace(place.list, b""), "not a list of revoked certificates"),
    "half": (lambda place: replace(place.list, place.list.read_bytes()[:200]), "not a list of revoked certificates"),
    "a certificate": (
        lambda place: replace(place.list, place.authority.pem.encode()),
        "not a list of revoked certificates",
    ),
    "gone": (lambda place: place.list.unlink(), "cannot be read: No such file"),
    "a folder": (lambda place: fold(place.list), "cannot be read: Is a directory"),
    "signed by another": (lambda place: replace(place.list, signed(OTHER)), "not signed by the authority"),
    "changed": (
        lambda place: replace(place.list, resigned(place.list.read_bytes())),
        "not signed by the authority",
    ),
    "two lists": (
        lambda place: replace(place.list, signed(place.authority) + place.list.read_bytes()),
        "must hold one list of revoked certificates and nothing else",
    ),
    "a list and a certificate": (
        lambda place: replace(place.list, place.list.read_bytes() + place.authority.pem.encode()),
        "must hold one list of revoked certificates and nothing else",
    ),
    "more behind it": (
        lambda place: replace(place.list, place.list.read_bytes() + b"\x00"),
        "must hold one list of revoked certificates and nothing else",
    ),
    "a pipe": (lambda place: (place.list.unlink(), os.mkfifo(place.list)), "cannot be read: not a file"),
    **{
        f"{what}, {'' if critical else 'not '}critical": (
            lambda place, part=part, critical=critical: replace(
                place.list, signed(place.authority, part, critical=critical)
            ),
            "not a plain list of all revoked certificates: it has the extension ",
        )
        for what, part in PARTS.items()
        for critical in (True, False)
    },
    **{
        what: (
            lambda place, entry=entry: replace(place.list, signed(place.authority, entry=entry)),
            "not a plain list of all revoked certificates: it has the extension ",
        )
        for what, entry in ENTRIES.items()
    },
    "not valid yet": (
        lambda place: replace(place.list, signed(place.authority, begins=timedelta(minutes=7))),
        "not valid yet: it begins at ",
    ),
    "overdue": (
        lambda place: replace(place.list, signed(place.authority, ends=-timedelta(hours=1))),
        "too old: a newer list was due at 20",
    ),
}


def resigned(pem: bytes) -> bytes:
    """The same list with its last byte changed, which is the signature's."""
    der = bytearray(x509.load_pem_x509_crl(pem).public_bytes(serialization.Encoding.DER))
    der[-1] ^= 1
    return x509.load_der_x509_crl(bytes(der)).public_bytes(serialization.Encoding.PEM)


def outcomes_with_broken_lists(place: Place) -> dict[str, list[error.Reason]]:
    """What bob hears before a list is broken, twice while it is, and after."""
    sound, outcomes = place.list.read_bytes(), {}
    with place.dialled("bob") as bob:
        for what, (spoil, _) in BROKEN.items():
            heard = [outcome(bob)]
            spoil(place)
            heard += [outcome(bob), outcome(bob)]
            if place.list.is_dir():
                place.list.rmdir()
            replace(place.list, sound)
            outcomes[what] = [*heard, outcome(bob)]
    return outcomes


def test_a_list_that_cannot_be_relied_on_lets_nobody_in_and_is_one_line_of_the_log(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "fairwall.rpc.revoked"):
        failed = error.REASON_INTERNAL
        assert outcomes_with_broken_lists(place) == {what: [IN, failed, failed, IN] for what in BROKEN}
    said = [record.getMessage() for record in caplog.records if record.name == "fairwall.rpc.revoked"]
    assert len(said) == 2 * len(BROKEN)
    for what, began, over in zip(BROKEN, said[::2], said[1::2], strict=True):
        assert began.startswith(f"nobody is let in: {place.list}: ")
        assert BROKEN[what][1] in began
        assert over == f"{place.list}: can be relied on again"


def test_a_server_that_takes_a_broken_list_for_an_empty_one_is_caught(tmp_path: Path) -> None:
    class Open(Revoked):
        def _look(self) -> None:
            super()._look()
            self._problem = ""

    with serving(tmp_path, Open) as place:
        assert outcomes_with_broken_lists(place) == {what: [IN, IN, IN, IN] for what in BROKEN}


def test_what_a_list_may_say_beside_whom_it_revokes(place: Place) -> None:
    harmless = (
        x509.CRLNumber(7),
        x509.AuthorityKeyIdentifier(b"key", None, None),
        x509.IssuerAlternativeName(ELSEWHERE),
        x509.AuthorityInformationAccess([]),
    )
    reason = x509.CRLReason(x509.ReasonFlags.key_compromise)
    with place.dialled("bob") as bob:
        # The clock of whoever signed it may be ahead by a little.
        made = signed(place.authority, *harmless, critical=False, begins=timedelta(minutes=4), entry=reason)
        replace(place.list, b"\n" + made + b"\n")
        assert outcome(bob) == IN


def test_who_has_a_certificate_of_another_issuer_than_the_lists_is_not_let_in(tmp_path: Path) -> None:
    """Two authorities, of which one has signed a list, that is: it tells nothing of the other one's certificates."""
    write(tmp_path, "loans", ("alice",), 1)
    authority = authority_of(tmp_path / "authority/authority.pem", tmp_path / "authority/key.pem")
    listed = tmp_path / "compliance" / "revoked.pem"
    own = (tmp_path / "developer-alice" / "certificate.pem").read_bytes()
    others = OTHER.issue(
        "loans", "developer", "alice", until=datetime.now(UTC) + timedelta(hours=1)
    ).certificate.encode()
    both = Revoked(listed, authority.pem + OTHER.pem)
    assert (both.holds(own), both.holds(others)) == (False, True)
    listed.unlink()
    assert not Revoked(listed, authority.pem + OTHER.pem).holds(others)


def test_a_list_that_could_not_be_read_once_is_read_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with place.dialled("bob") as bob:
        place.revoke("alice")
        with monkeypatch.context() as patch:
            patch.setattr("fairwall.rpc.revoked.signed", no_descriptor_left)
            assert outcome(bob) == error.REASON_INTERNAL
        assert outcome(bob) == IN


def no_descriptor_left(path: Path, _: str) -> None:
    raise RevokedError(f"{path}: cannot be read: Too many open files")


def test_a_list_that_is_gone_is_missed_by_what_takes_its_place_too(place: Place) -> None:
    before = Revoked(place.list, place.authority.pem)
    place.list.unlink()
    with pytest.raises(RevokedError, match="cannot be read: No such file"):
        Revoked(place.list, place.authority.pem, before)


class Yesterday(datetime):
    """What a clock says that was set back by a day."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) - timedelta(days=1)


def test_a_list_that_has_held_goes_on_holding_where_the_clock_is_set_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Revoked(place.list, place.authority.pem)
    monkeypatch.setattr("fairwall.rpc.revoked.datetime", Yesterday)
    bob = (place.folder / "developer-bob" / "certificate.pem").read_bytes()
    assert not running.holds(bob)
    os.utime(place.list)  # it is read again
    assert not running.holds(bob)
    assert not Revoked(place.list, place.authority.pem, running).holds(bob)
    with pytest.raises(RevokedError, match="not valid yet"):
        Revoked(place.list, place.authority.pem)
    replace(place.list, signed(place.authority, begins=timedelta(minutes=7)))
    with pytest.raises(RevokedError, match="not valid yet"):
        running.holds(bob)


def test_without_a_list_nobody_is_revoked_until_there_is_one(tmp_path: Path) -> None:
    with serving(tmp_path / "loans") as place:
        sound = place.list.read_bytes()
        place.list.unlink()
        revoked = Revoked(place.list, place.authority.pem)
        bob = (place.folder / "developer-bob" / "certificate.pem").read_bytes()
        assert not revoked.holds(bob)
        replace(place.list, sound)
        place.revoke("bob")
        assert revoked.holds(bob)


# Admitted later ------------------------------------------------------------------------------------------------------


def bob_is_heard_beside_calls_that_say_nothing(place: Place) -> bool:
    """Let three more developers in, who hold open as many calls as they may."""
    new = ("carol", "dave", "erin")
    for name in new:
        add(place.folder, name, 1, place.authority)
    place.listening.admit(Deployed({Caller("loans", "developer", name): Quota() for name in ("alice", "bob", *new)}))
    with ExitStack() as opened:
        bob, *others = (opened.enter_context(place.dialled(name)) for name in ("bob", *new))
        silent = [
            AuditServiceStub(each).Audit.future(iter(queue.SimpleQueue[Any]().get, None), timeout=300)
            for each in others
            for _ in range(server.CALLS_PER_CALLER)
        ]
        places, threads = place.listening._gate._places.values(), place.listening._threads._max_workers
        while sum(server.CALLS_PER_CALLER - each.room._value for each in places) < min(len(silent), threads):
            time.sleep(0.01)
        failed = AuditServiceStub(bob).GetTerms.future(audit.GetTermsRequest(), timeout=2).exception()
        for call in silent:
            call.cancel()
    assert failed is None or failed.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    return failed is None


def test_who_is_admitted_later_keeps_nobody_out(place: Place) -> None:
    assert bob_is_heard_beside_calls_that_say_nothing(place)


@pytest.mark.check
def test_a_server_that_has_no_more_room_than_at_the_start_is_caught(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server._Threads, "grow", lambda *_: None)
    assert not bob_is_heard_beside_calls_that_say_nothing(place)
