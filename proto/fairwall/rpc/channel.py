"""A client's side of a connection: mTLS to a named party."""

from __future__ import annotations

import grpc

from fairwall.rpc.identity import Credentials, server_name_of

CALL_SECONDS = 60.0
"""The deadline of an ordinary call."""

_RECONNECT_FIRST_MS, _RECONNECT_MOST_MS = 100, 1000


def connect(address: str, server: str, credentials: Credentials) -> grpc.Channel:
    """Open a channel to a party of the same run.

    Parameters
    ----------
    address : str
        "host:port".
    server : str
        The party that must answer there: another one's certificate is refused in the handshake.
    credentials : Credentials
        The caller's own.
    """
    return grpc.secure_channel(
        address,
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
        ),
    )
