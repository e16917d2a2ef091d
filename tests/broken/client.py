"""Developers' clients that are broken."""

import hashlib
import math
import os
import random
import secrets
import socket
import ssl
import time
import uuid
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import grpc
from cryptography import x509
from cryptography.x509.oid import NameOID

from fairwall.client import AuditClient, AuditRefused, AuditUnavailable, audit_client, gaps
from fairwall.rpc import arrays, channel
from tests.broken import broken


def _ids(fresh):
    """Let the id of each request be what a function returns."""
    audit_client.uuid = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=fresh()))


def _asks_again(error, why=""):
    """Let a client ask a second time, under another id, after an error that says why."""
    sound = AuditClient.ask

    def ask(self, *rest, **named):
        try:
            return sound(self, *rest, **named)
        except error as caught:
            if why not in getattr(caught, "reason", str(caught)):
                raise
            return sound(self, *rest, **named)

    AuditClient.ask = ask


def _dns_names(shown):
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.DNSName)


def _takes(is_taken):
    """Let a client take a server for the one it means if a function of certificate and wanted name says so."""
    sound = channel.connect

    def connect(address, server, credentials, *rest, **named):
        host, _, port = address.rpartition(":")
        shown = x509.load_pem_x509_certificate(ssl.get_server_certificate((host, int(port))).encode())
        if is_taken(shown, channel.server_name_of(credentials.run, server)):
            channel.server_name_of = lambda *_: _dns_names(shown)[0]
        return sound(address, server, credentials, *rest, **named)

    channel.connect = connect


@broken("K101", "Waits for ever.")
def no_deadline():
    gaps.AUDIT_SECONDS = None


@broken("K101", "Sends all predictions in one message.")
def one_large_message():
    arrays.CHUNK_BYTES = 1 << 40


@broken("K112", "Speaks plain text where TLS does not come about.")
def plain_text_when_refused():
    sound = channel.connect

    def connect(address, *rest, **named):
        secure = sound(address, *rest, **named)
        try:
            grpc.channel_ready_future(secure).result(3)
        except grpc.FutureTimeoutError:
            return grpc.insecure_channel(address)
        return secure

    channel.connect = connect


@broken("K105", "Takes whatever name a server shows for that of the server it means.")
def any_server():
    _takes(lambda *_: True)


@broken("K113", "Takes a server's common name for the name it means.")
def trusts_common_names():
    _takes(lambda shown, wanted: shown.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == wanted)


@broken("K113", "Takes a server whose name begins like the one it means.")
def trusts_names_that_begin_well():
    _takes(lambda shown, wanted: any(name.startswith(wanted) for name in _dns_names(shown)))


@broken("K108", "Tells the service its machine's name.")
def tells_its_machine():
    sound = channel.connect

    class Telling(grpc.UnaryUnaryClientInterceptor, grpc.StreamUnaryClientInterceptor):
        def intercept_unary_unary(self, continuation, client_call_details, request):
            told = (*(client_call_details.metadata or ()), ("x-client", f"audit on {socket.gethostname()}"))
            return continuation(client_call_details._replace(metadata=told), request)

        def intercept_stream_unary(self, continuation, client_call_details, request_iterator):
            return self.intercept_unary_unary(continuation, client_call_details, request_iterator)

    channel.connect = lambda *rest, **named: grpc.intercept_channel(sound(*rest, **named), Telling())


@broken("K101", "Has its user's home in its user agent.")
def tells_its_user_in_its_agent():
    sound = grpc.secure_channel

    def secure(target, credentials, options=(), compression=None):
        return sound(
            target, credentials, (*options, ("grpc.secondary_user_agent", f"audits of {Path.home()}")), compression
        )

    grpc.secure_channel = secure


@broken("K108", "Numbers its requests.")
def numbers_its_requests():
    _ids(lambda: "request-1")


@broken("K108", "Makes request ids of four random bytes.")
def short_ids():
    _ids(lambda: "audit-" + secrets.token_hex(4))


@broken("K108", "Makes request ids of the first kind: the time, and the machine's address.")
def old_uuids():
    _ids(lambda: uuid.uuid1().hex)


@broken("K108", "Makes a request id of the time and of its process.")
def ids_of_the_time():
    _ids(lambda: hashlib.sha256(f"{time.time_ns()}{os.getpid()}".encode()).hexdigest())


@broken("K108", "Puts the name of its machine before a request id.")
def ids_of_its_host():
    _ids(lambda: f"{socket.gethostname()[:24]}-{uuid.uuid4().hex}")


@broken("K108", "Draws request ids from a generator that the seconds of the clock seed.")
def ids_of_a_seeded_generator():
    generator = random.Random(int(time.time()))  # noqa: S311
    _ids(lambda: f"{generator.getrandbits(128):032x}")


@broken("K108", "Makes the id of what is asked.")
def id_by_content():
    sound = AuditClient.ask

    def ask(self, predictions, metric, epsilon, **named):
        named["request_id"] = hashlib.sha256(predictions.tobytes() + metric.encode()).hexdigest()
        return sound(self, predictions, metric, epsilon, **named)

    AuditClient.ask = ask


@broken("K102", "Asks again under a new request id when an answer is lost.")
def new_id_when_lost():
    sound = gaps.ask

    def ask(service, deal_id, request_id, *rest, **named):
        return sound(service, deal_id, f"{request_id[:20]}-{uuid.uuid4().hex}", *rest, **named)

    gaps.ask = ask


@broken("K109", "Asks again under a new request id where the deadline has passed.")
def new_id_after_a_deadline():
    _asks_again(AuditUnavailable, "DEADLINE")


@broken("K109", "Asks again under a new request id where the service failed.")
def new_id_after_internal():
    _asks_again(AuditRefused, "INTERNAL")


@broken("K103", "Asks again, under another id, when it was refused.")
def insists():
    _asks_again(AuditRefused)


@broken("K104", "Takes a ledger that cannot be written for a request that was not charged, and asks anew.")
def lost_ledger():
    _asks_again(AuditRefused, "LEDGER_UNAVAILABLE")


@broken("K110", "Asks for less where it was refused.")
def asks_for_less():
    sound = AuditClient.ask

    def ask(self, predictions, metric, epsilon, **named):
        try:
            return sound(self, predictions, metric, epsilon, **named)
        except AuditRefused as refused:
            if refused.reason != "EPSILON_INVALID":
                raise
            return sound(self, predictions, metric, epsilon / 2, **named)

    AuditClient.ask = ask


@broken("K111", "Asks for statistical parity whatever may be asked for.")
def knows_its_metric():
    sound = AuditClient.terms
    AuditClient.terms = lambda self: replace(sound(self), metrics=("sp",))


@broken("K111", "Offers a share of what is left, whatever one batch may spend.")
def spends_what_is_left():
    sound = AuditClient.terms
    AuditClient.terms = lambda self: replace(sound(self), epsilon_max=math.inf)
