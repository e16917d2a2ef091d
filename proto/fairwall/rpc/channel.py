"""A client's side of a connection: mTLS to a named party."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence

import grpc

from fairwall.rpc.identity import Credentials, server_name_of
from fairwall.rpc.recorder import RecordedChannel, Recorder

CALL_SECONDS = 60.0
"""The deadline of an ordinary call."""

PING_SECONDS = 10.0
"""After so long a silence during a call the server is asked whether it is there."""

_LOST_SECONDS = 15.0
"""How long it has to answer: one that is only held up is not cancelled."""

_RECONNECT_FIRST_MS, _RECONNECT_MOST_MS = 100, 1000


def connect(
    address: str | Sequence[str], server: str, credentials: Credentials, recorder: Recorder | None = None
) -> grpc.Channel:
    """Open a channel to a party of the same run, of which every call is recorded where there is a recorder.

    The party must answer at the address, "host:port": another one's certificate is refused in the handshake. At several
    addresses it answers at each, and calls take turns among those where it is there.

    Raises
    ------
    ValueError
        If an address of several is not "host:port", or none has a host that is known.
    """
    several = not isinstance(address, str)
    channel = grpc.secure_channel(
        address if isinstance(address, str) else _target(address),
        grpc.ssl_channel_credentials(
            root_certificates=credentials.authority.encode(),
            private_key=credentials.key.encode(),
            certificate_chain=credentials.certificate.encode(),
        ),
        options=(
            ("grpc.ssl_target_name_override", server_name_of(credentials.run, server)),
            # Nothing is retried behind a caller's back: a retry is the caller's decision, under the same request id.
            ("grpc.enable_retries", 0),
            # A service that was restarted is back within seconds; by default a client stays away for up to two minutes.
            # This holds while a caller waits for the connection: grpc hardly looks at its sockets else.
            ("grpc.initial_reconnect_backoff_ms", _RECONNECT_FIRST_MS),
            ("grpc.max_reconnect_backoff_ms", _RECONNECT_MOST_MS),
            ("grpc.keepalive_time_ms", int(1000 * PING_SECONDS)),
            ("grpc.http2.ping_timeout_ms", int(1000 * _LOST_SECONDS)),
            ("grpc.http2.max_pings_without_data", 0),  # as many as the silence takes
            *(
                (("grpc.service_config", json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})),)
                if several
                else ()
            ),
        ),
    )
    return channel if recorder is None else RecordedChannel(channel, server, recorder)


def _target(addresses: Sequence[str]) -> str:
    """Name several addresses in one target, which takes numbers alone: of one family, the one that most hosts have."""
    found = dict[int, list[str]]()
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise ValueError(f"{address!r} is not host:port")
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
        raise ValueError(f"no host of {', '.join(addresses)} is known here")
    most, numbers = max(found.items(), key=lambda each: len(each[1]))
    return ("ipv6:" if most == socket.AF_INET6 else "ipv4:") + ",".join(numbers)
