"""The health of a deployment's service, asked with the operator's credentials."""

from __future__ import annotations

from pathlib import Path

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from fairwall import toml
from fairwall.errors import UserError
from fairwall.rpc import channel, identity
from fairwall.rpc.addresses import mistake
from fairwall.rpc.identity import Credentials

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - where to ask a service that listens so


class HealthError(UserError):
    """A service whose health cannot be asked. Its text is one line."""


def is_serving(policy: Path, seconds: float, listen: str | None = None) -> bool:
    """Ask the service of a policy, with compliance's own certificate, on this machine, for at most ``seconds``.

    The policy is read for its address, unless ``listen`` is given, and its credentials alone; the service checks the
    rest when it starts. Raises HealthError if the policy lacks either, and CredentialsError.
    """
    try:
        place = toml.read(policy)["deployment"]
        address, folder = str(listen or place["listen"]), policy.parent / str(place["credentials"])
    except (OSError, UnicodeDecodeError, toml.TomlError) as error:
        raise HealthError(f"{policy}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except (KeyError, TypeError):
        raise HealthError(
            f"{policy}: deployment.listen, deployment.credentials: say where to ask, and as whom"
        ) from None
    if wrong := mistake(address):
        raise HealthError(f"{policy}: deployment.listen: must be host:port{wrong}, not {address}")
    return status(address, identity.load(folder), seconds) == int(HealthCheckResponse.SERVING)


def status(address: str, credentials: Credentials, seconds: float) -> int | None:
    """Return the health status of compliance's service at an address of this machine; None without a service."""
    host, _, port = address.rpartition(":")
    with channel.connect(f"{_EVERYWHERE.get(host, host)}:{port}", "compliance", credentials) as connection:
        try:
            return int(HealthStub(connection).Check(HealthCheckRequest(), timeout=seconds).status)
        except grpc.RpcError:
            return None
