"""Servers that read names in certificates wrongly, or take certificates whose time is over."""

import copy
import hashlib
import re

import grpc

from compliance.answers import audit_service
from fairwall.rpc import identity, revoked, server
from fairwall.rpc.revoked import Revoked
from tests.broken import broken


@broken("C102", "Asks callers for no certificate, and takes who has none for the first developer.")
def no_certificate_needed():
    sound_credentials, sound_identify = grpc.dynamic_ssl_server_credentials, identity.identify

    def credentials(initial_certificate_configuration, certificate_configuration_fetcher, *_, **__):
        return sound_credentials(initial_certificate_configuration, certificate_configuration_fetcher)

    def identify(context):
        names = context.auth_context().get("peer_uri", ())
        return sound_identify(context) if names else identity.Caller("kit", "developer", "alice")

    grpc.dynamic_ssl_server_credentials = credentials
    server.identify = audit_service.identify = identify


@broken("C108", "Takes the first of several names in a certificate.")
def first_of_two_names():
    def only_caller(names, sound=identity._only_caller):
        found = [caller for name in names if (caller := sound([name]))]
        return found[0] if found else None

    identity._only_caller = only_caller


@broken("C117", "Takes a name that stands twice for one.")
def counts_a_name_once():
    sound = identity._only_caller
    identity._only_caller = lambda names: sound(set(names))


@broken("C117", "Refuses a developer whose certificate has another URI besides.")
def wants_one_uri():
    sound = identity._only_caller
    identity._only_caller = lambda names: sound(listed) if len(listed := list(names)) == 1 else None


@broken("C109", "Takes a certificate's common name for a URI.")
def trusts_the_common_name():
    def identify(context, sound=server.identify):
        names = context.auth_context().get("x509_common_name", ())
        return sound(context) or identity._only_caller(name.decode() for name in names)

    server.identify = identify


@broken("C118", "Takes a name from whichever part of a certificate's alternative names.")
def reads_dns_names():
    def identify(context):
        names = context.auth_context().get("x509_subject_alternative_name", ())
        return identity._only_caller(name.decode("utf-8", "replace") for name in names)

    server.identify = audit_service.identify = identify


@broken("C116", "Looks for a name at the end of a URI.")
def looks_for_names():
    identity._URI = type("Pattern", (), {"fullmatch": re.compile(identity._URI.pattern + r"\Z").search})


@broken("C116", "Reads a URI up to the end of its line.")
def reads_lines():
    identity._URI = type("Pattern", (), {"fullmatch": re.compile(identity._URI.pattern + "$").match})


@broken("C116", "Takes a name with a slash behind it, or in capitals, for the name.")
def reads_names_loosely():
    sound = identity._only_caller
    identity._only_caller = lambda names: sound(name.rstrip("/").lower() for name in names)


@broken("C119", "Takes a request under a renewed certificate for another one.")
def ids_of_each_certificate():
    sound = audit_service._answer

    def settle(case, header, metric, predictions, context, *rest, **named):
        shown = hashlib.sha256(context.auth_context()["x509_pem_cert"][0]).hexdigest()
        changed = copy.deepcopy(header)
        changed.request_id = shown[:24] + header.request_id
        return sound(case, changed, metric, predictions, context, *rest, **named)

    audit_service._answer = settle


@broken("C130", "Reads the list of revoked certificates and lets everybody on it in.")
def forgets_who_is_revoked():
    sound = Revoked.holds
    Revoked.holds = lambda self, certificate: sound(self, certificate) and False


@broken("C130", "Reads the list of revoked certificates when it is started, and never again.")
def reads_who_is_revoked_once():
    sound, seen = revoked._stamp, {}
    revoked._stamp = lambda path: seen.setdefault(path, sound(path))


@broken("C753", "Looks at a certificate's end in the handshake alone.")
def serves_ended_certificates():
    server.are_valid = lambda *_, **__: True
