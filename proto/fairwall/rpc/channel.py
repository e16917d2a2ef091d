"""A client's side of a connection: mTLS to a named party."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence

import grpc

from fairwall.rpc import addresses
from fairwall.rpc.identity import Credentials, server_name_of
from fairwall.rpc.recorder import RecordedChannel, TranscriptRecorder

CALL_SECONDS = 60.0
"""Deadline of an ordinary call."""

PING_SECONDS = 10.0
"""Silence during a call after which a client pings the server."""

_LOST_SECONDS = 15.0
"""Time for the server's reply to a ping: a server that is only held up is not given up."""

STARTING = "the service is starting"
"""A service's answer to calls before it is ready."""

_RECONNECT_FIRST_MS, _RECONNECT_MOST_MS = 100, 1000

_NO_TLS = "what listens there does not speak TLS: is the port the service's, and no plain HTTP before it?"
_WEB = "what listens there speaks HTTPS as web servers do, not gRPC: is the port the service's, and no proxy before it?"
_HUNG_UP = (
    "it hung up on you: it does not accept your certificate (of another authority, expired or revoked), "
    "or is just ending"
)

_WHY_LOST = {
    STARTING: f"{STARTING}: ask again in a moment",
    "HTTP proxy": "a proxy of your environment does not let you through; name the host in no_proxy",
    "Connection refused": "nobody is there: nothing listens on this port; is it right, and the service started?",
    "lookup": "no host of this name is known here",
    "WRONG_VERSION_NUMBER": _NO_TLS,
    "ALPN": _WEB,
    "HTTP/2": _WEB,
    "expired": "the service's certificate, or its authority's, has expired: compliance renews it",
    "not yet valid": "the service's certificate does not hold yet: is this machine's clock right?",
    "Hostname": "its certificate names another deployment than yours: is the address your service's?",
    "purpose": "its certificate is no server's: is the address the service's?",
    "_ALERT_": _HUNG_UP,
    "Tls handshake failed": "its certificate is not by your authority.pem: it is another deployment's, or no service "
    "of this kind, or your credentials are of an older authority",
    "Handshake read failed": "something listens there, and says nothing: is the port the service's?",
    "losed": _HUNG_UP,
    "reset": _HUNG_UP,
}
"""Remedies for a failed connection, by a part of gRPC's text about the failure; the first that matches."""

_BEFORE = ("HTTP proxy", "Connection refused", "lookup", "Timeout", "timed out", "unreachable", "losed", "reset")
"""The parts of these texts that a proxy may have caused."""


def connect(
    address: str | Sequence[str], server: str, credentials: Credentials, recorder: TranscriptRecorder | None = None
) -> grpc.Channel:
    """Open a channel to a party of the same run; with a recorder, every call is recorded.

    A server with another party's certificate is refused in the handshake. With several addresses, calls take turns
    among those where the party is there. ValueError if an address is not "host:port", or no host of several is known.
    """
    several = not isinstance(address, str)
    for each in _several(address):
        addresses.require(each)
    channel = grpc.secure_channel(
        address if isinstance(address, str) else _target(address),
        grpc.ssl_channel_credentials(
            root_certificates=credentials.authority.encode(),
            private_key=credentials.key.encode(),
            certificate_chain=credentials.certificate.encode(),
        ),
        options=(
            ("grpc.ssl_target_name_override", server_name_of(credentials.run, server)),
            # No hidden retries: a retry is the caller's decision, under the same request id.
            ("grpc.enable_retries", 0),
            ("grpc.enable_http_proxy", int(not all(map(addresses.is_loopback, _several(address))))),
            # A restarted service is back within seconds; by default a client stays away for up to two minutes.
            # This works while a caller waits for the connection: otherwise grpc hardly looks at its sockets.
            ("grpc.initial_reconnect_backoff_ms", _RECONNECT_FIRST_MS),
            ("grpc.max_reconnect_backoff_ms", _RECONNECT_MOST_MS),
            ("grpc.keepalive_time_ms", int(1000 * PING_SECONDS)),
            ("grpc.http2.ping_timeout_ms", int(1000 * _LOST_SECONDS)),
            ("grpc.http2.max_pings_without_data", 0),  # no limit
            *(
                (("grpc.service_config", json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})),)
                if several
                else ()
            ),
        ),
    )
    return channel if recorder is None else RecordedChannel(channel, server, recorder)


def _several(address: str | Sequence[str]) -> Sequence[str]:
    return [address] if isinstance(address, str) else address


def is_starting(error: grpc.RpcError) -> bool:
    """Return whether a call came before the service was ready."""
    return isinstance(error, grpc.Call) and (error.code(), error.details()) == (grpc.StatusCode.UNAVAILABLE, STARTING)


def why_lost(error: grpc.Call, address: str = "") -> str:
    """Return one line with the reason for a missing connection, from gRPC's text about the last try, and a remedy."""
    details = error.details() or ""
    if (proxy := addresses.proxy_of(address)) and any(part in details for part in _BEFORE):
        return f"the proxy of your environment, {proxy}, does not answer or let you through; name the host in no_proxy"
    return next(
        (why for part, why in _WHY_LOST.items() if part in details),
        "nobody is there, or one side does not accept the other's certificate",
    )


def _target(hosts: Sequence[str]) -> str:
    """Return one gRPC target for several addresses, of numbers of one family only: the one that most hosts have."""
    found = dict[int, list[str]]()
    for address in hosts:
        host, _, port = address.rpartition(":")
        try:
            known = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        except OSError:
            continue  # the others may be there
        for family, _, _, _, (number, *_) in known:
            shown = f"[{number!s}]:{port}" if family == socket.AF_INET6 else f"{number!s}:{port}"
            of_family = found.setdefault(family, [])
            if shown not in of_family:
                of_family.append(shown)
    if not found:
        raise ValueError(f"no host of {', '.join(hosts)} is known here")
    most, numbers = max(found.items(), key=lambda entry: len(entry[1]))
    return ("ipv6:" if most == socket.AF_INET6 else "ipv4:") + ",".join(numbers)
