"""A developer comes into a policy that is being served, and the service hears of it."""

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
"""How long a service may take to read its policy, and its data, again."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
"""What TOML takes for a key without quotes."""


class AdmissionError(UserError):
    """A developer that a policy cannot take in. Its text is one line that says what would be right."""


def with_developer(path: Path, name: str, terms: Mapping[str, float], data: str | None = None) -> tuple[str, bool]:
    """Return a policy's text with one more developer at its end, and whether it names that developer already.

    It does where the developer is one of another data set. ``terms`` are the keys of the developer's section; ``data``,
    the data set, may be left out where there is one.

    Raises AdmissionError if the developer is there already, or there is no such data set, or several; PolicyError if it
    could not be served so.
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
    """Have the service of a policy read it again, if it is running; what came of it, in one line.

    Raises PolicyError if the policy cannot be served, AdmissionError if the service is there and cannot be told,
    RunFailed if it does not serve the policy now.
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
