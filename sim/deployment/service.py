"""A deployment's service: the check of its policy before it serves, its health, and the admission of a developer."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from compliance.deployment import answer_value
from compliance.deployment.ledger import check_folders, check_ledger
from compliance.deployment.policy.loading import counted, load_all
from compliance.deployment.policy.reading import parse, read
from compliance.deployment.policy.schema import Policies
from compliance.deployment.running import read_by, service_of
from compliance.deployment.serve import check_at_once, check_worth
from fairwall import toml
from fairwall.errors import RunFailed, UserError
from fairwall.rpc import channel, identity, server
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


_SECONDS = 2.0
"""Most seconds for the process at the address to prove to be this deployment's service."""


class CheckError(UserError):
    """A system error that would prevent a start. Its text is one line."""


def check(
    path: Path, *, listen: str | None, new_ledger: bool, even_if_worthless: bool, even_if_revealing: bool
) -> Iterator[str]:
    """Make all checks of a start, with its parameters, and yield its lines on what answers are worth; write nothing.

    The deployment's own service may be running. Raises UserError with the line with which the start would be refused.
    """
    try:
        policy = read(path, listen)
        credentials, _ = check_at_once(policy, new=new_ledger)
        _check_address(policy.deployment.listen, credentials)
        check_folders(policy.deployment)
        data = load_all(policy)
        check_ledger(policy, data)
    except OSError as error:
        raise CheckError(str(error)) from None
    for each in data:
        yield each.policy.summary
        yield from counted(each.policy)
        found = list(answer_value.worths(each.policy, each.first))
        yield from (line for _, line in answer_value.told(each.policy, each.first, found))
    check_worth(data, worthless=even_if_worthless, revealing=even_if_revealing)


def _check_address(address: str, credentials: Credentials) -> None:
    """Refuse an address in use, except by a process that proves to be this deployment's compliance."""
    try:
        server.check(address, credentials)
    except OSError:
        if status(address, credentials, _SECONDS) is None:
            raise


_PATIENCE_SECONDS = 60.0
"""Most seconds for a service to reload its policy and data."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
"""A TOML key without quotes."""


class AdmissionError(UserError):
    """A developer who cannot be added to a policy. Its text is one line with the remedy."""


def with_developer(path: Path, name: str, terms: Mapping[str, float], data: str | None = None) -> tuple[str, bool]:
    """Return a policy's text with one more developer, and whether another of its data sets has that developer.

    ``terms`` are the keys of the developer's section. Raises AdmissionError if the data set has the developer already,
    is unknown, or is not named although there are several; PolicyError if the new policy could not be served.
    """
    policy = read(path)
    chosen = data or (next(iter(policy.datasets)) if len(policy.datasets) == 1 else "")
    if chosen not in policy.datasets:
        raise AdmissionError(f"--dataset: {path} serves {' and '.join(policy.datasets)}: choose one")
    key = f"developers.{name}"
    if policy.is_several:
        key = f"datasets.{chosen if _BARE.fullmatch(chosen) else json.dumps(chosen)}.{key}"
    if name in policy.datasets[chosen].developers:
        raise AdmissionError(f"{path}: {key}: is there already")
    text = path.read_text(encoding="utf-8")
    section = "".join(f"{term} = {value!r}\n" for term, value in terms.items())
    text = f"{text.rstrip()}\n\n[{key}]\n{section}"
    parse(text.encode(), path)
    return text, name in policy.quotas


def tell(path: Path) -> str:
    """Have the service of a policy reload it, if it is running; return the result in one line.

    Raises PolicyError if the policy cannot be served, AdmissionError if the running service cannot be signalled,
    RunFailed if it has not loaded the policy.
    """
    policy = read(path)
    ledger = policy.deployment.ledger
    if isinstance(ledger, str):
        return "any number of services may use this ledger: send one of them SIGHUP, and the others follow"
    process = service_of(ledger)
    if process is None:
        return "the service is not running: it reads its policy when it starts"
    if not process:
        raise AdmissionError(f"{ledger}: its service runs in another container: send it SIGHUP")
    before = read_by(ledger).times
    try:
        os.kill(process, signal.SIGHUP)
    except PermissionError:
        raise AdmissionError(f"process {process}, the service, is another user's: send it SIGHUP") from None
    _wait(policy, ledger, process, before)
    return f"the service (process {process}) has read its policy again"


def _wait(policy: Policies, ledger: Path, process: int, before: int) -> None:
    give_up = time.monotonic() + _PATIENCE_SECONDS
    while (told := read_by(ledger)).times <= before or not (told.problem or told.policy == policy.digest.hex()):
        if time.monotonic() > give_up or service_of(ledger) != process:
            raise RunFailed(f"the service (process {process}) has not read its policy again: see its log")
        time.sleep(0.01)
    if told.problem:
        raise RunFailed(f"the service (process {process}) keeps the policy that it had: {told.problem}")
