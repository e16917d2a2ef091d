"""Admission of a developer to a policy that is being served."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from compliance.deployment.policy.reading import parse, read
from compliance.deployment.policy.schema import Policies
from compliance.deployment.running import read_by, service_of
from fairwall.errors import RunFailed, UserError

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
