"""The console's page: the present state of a ledger, its services' logs and certificates. Nothing is changed."""

from __future__ import annotations

import re
import shlex
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from compliance.deployment.policy.reading import read
from compliance.deployment.policy.schema import DeploymentSection, Policies
from compliance.deployment.running import read_by, service_of
from compliance.ledger.entries import Admission
from compliance.ledger.place import Inspection, inspect
from compliance.ledger.postgres import connected
from fairwall.errors import UserError
from sim.attestation import check, figures, refusals, statement
from sim.attestation.page import budget, columns, moment, refused, wholes
from sim.attestation.page import refusals as refused_calls
from sim.deployment.certificates import Issued, issued
from sim.report.drawing import canvas_svg, on_axes
from sim.report.notation import MISSING, as_float, number, plural
from sim.report.page import Bar, Card, PageSection, Term, fill
from sim.report.tables import PageTable, PrintedColumn

SECONDS = 30
"""Seconds between a browser's reloads of the page."""

_QUESTIONS_MAX = 100
_POLICIES_MAX = 10
_SOON = timedelta(days=30)
_LONGEST = 120

_Told = Mapping[str, Any]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Sources:
    """The sources of the page: a policy, the logs of the services on its ledger, and the folder of signed pages."""

    policy: Path
    logs: Sequence[Path]
    pages: Path


def page(sources: Sources) -> str:
    """Return the page, HTML without scripts. A line of the page reports what cannot be read; the rest is shown."""
    now, faults = datetime.now(UTC), list[str]()
    policies = _tried(faults, lambda: read(sources.policy))
    told = list[PageSection]()
    account, certificates = None, None
    if policies is not None:
        place = policies.deployment
        chains = _tried(faults, lambda: inspect(place.ledger)) or ()
        faults += [f"The chain is BROKEN; shown is what was before: {found.fault}" for found in chains if found.fault]
        counted = _tried(faults, lambda: refusals.count(sources.logs)) if sources.logs else None
        account = harmless(statement.account_of(chains, place.name, now, {}, refusals=counted)) if chains else None
        certificates = _tried(faults, lambda: issued(place.credentials.parent))
        left, *changes = budget(account, figures.left) if account else [None]
        told = [
            *([left] if left else ()),
            *(_questions(account) if account else ()),
            *(refused_calls(account or {"refusals": counted})),
            *(_certificates(certificates, now) if certificates is not None else ()),
            _services(place, policies, chains, faults),
            _signed(sources, place, account, faults),
            *changes,
        ]
    commands = _commands(sources, policies) if policies else []
    named = [("headline", "In short"), *((one.name, one.heading) for one in told)]
    return fill(
        "console.html.j2",
        name=policies.deployment.name if policies else sources.policy.name,
        at=f"{now:%Y-%m-%d %H:%M:%S}",
        seconds=SECONDS,
        faults=faults,
        budgets=[_card(one) for one in wholes(account)] if account else [],
        findings=_findings(account, certificates or (), now),
        told=told,
        named=[*named, ("commands", "Commands to copy")] if commands else named,
        commands=commands,
    )


def styles() -> list[str]:
    """Return the SHA-256 of each style sheet of the page, in base64: the kit's own, and that of its drawings."""
    whole = fill("style.html.j2") + canvas_svg("none", on_axes(lambda _: None))
    sheets = re.findall(r"<style[^>]*>(.*?)</style>", whole, re.DOTALL)
    return [b64encode(sha256(sheet.encode()).digest()).decode() for sheet in sheets]


def harmless(account: Any) -> Any:
    """Return a value with unprintable and direction-changing letters replaced, and long texts cut."""
    match account:
        case str():
            seen = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in account)
            return seen if len(seen) <= _LONGEST else f"{seen[:_LONGEST]}…"
        case dict():
            return {key: harmless(value) for key, value in account.items()}
        case list():
            return [harmless(value) for value in account]
        case _:
            return account


def _tried(faults: list[str], look: Callable[[], _T]) -> _T | None:
    """Return the result of a function; None, and one more fault, where it fails."""
    try:
        return look()
    except (UserError, OSError) as error:
        faults.append(str(error))
        return None


def _card(whole: _Told) -> Card:
    most, left = as_float(whole["epsilon"]), as_float(whole["left"])
    said = f"ε = {number(left)} of {number(most)} is left, after {plural(whole['charges'], 'charge')}."
    ends = ("nothing left", f"all of {number(most)}")
    bar = Bar.on((0, most), 0, left, ends, f"Bar: {left / most:.0%}") if 0 < most < float("inf") else None
    return Card(whole["dataset"], said, bar)


def _findings(account: _Told | None, certificates: Sequence[Issued], now: datetime) -> list[str]:
    found = []
    if account and account["refusals"]:
        many = refused(account)
        found.append(f"{plural(many, 'call')} {'was' if many == 1 else 'were'} refused, by the log.")
    for owner in sorted({each.owner for each in certificates}):
        until = [each.until for each in certificates if each.owner == owner and not each.is_revoked]
        if until and max(until) < now + _SOON:
            found.append(f"{owner}: the last certificate {_end(max(until), now)}.")
    return found


def _end(until: datetime, now: datetime) -> str:
    days = (until - now).days
    return f"ended on {until:%Y-%m-%d}" if until < now else f"ends on {until:%Y-%m-%d}, in {plural(days, 'day')}"


def _questions(account: _Told) -> list[PageSection]:
    asked = sorted(
        (*account["audits"], *account["byGroup"], *account["releases"]),
        key=lambda one: (one["time"], one["record"]),
        reverse=True,
    )
    shown = [{**one, "models": len(one["models"]) if "models" in one else None} for one in asked[:_QUESTIONS_MAX]]
    heading = "Last questions"
    if not shown:
        return [PageSection("questions", heading, before=("Nothing was asked.",))]
    notes = () if len(shown) == len(asked) else (f"The last {len(shown)} of {len(asked):,}; a signed page has more.",)
    keys = ("time", "dataset", "developer", "request", "metric", "models", "epsilon")
    return [PageSection("questions", heading, table=PageTable(columns(shown, *keys), notes))]


def _certificates(certificates: Sequence[Issued], now: datetime) -> list[PageSection]:
    def state(certificate: Issued) -> str:
        if certificate.is_revoked:
            return "revoked"
        return _end(certificate.until, now) if certificate.until < now + _SOON else "holds"

    rows = sorted(certificates, key=lambda one: one.until)
    table = PageTable(
        (
            PrintedColumn("owner", [each.owner for each in rows], numeric=False),
            PrintedColumn("ends", [f"{each.until:%Y-%m-%d}" for each in rows], numeric=False),
            PrintedColumn("state", [state(each) for each in rows], numeric=False, stays=True),
            PrintedColumn("number", [f"{each.serial:040X}" for each in rows], numeric=False, wraps=True),
        )
    )
    return [PageSection("certificates", "Certificates", table=table)]


def _services(
    place: DeploymentSection, policies: Policies, chains: Sequence[Inspection], faults: list[str]
) -> PageSection:
    ledger = place.ledger
    if isinstance(ledger, str):
        names = _tried(faults, lambda: connected(ledger)) or ()
        said = [f"Connected to the ledger's database, by host and process: {', '.join(names) or 'nobody'}."]
    else:
        process = _tried(faults, lambda: service_of(ledger))
        known = {None: "No service on this machine has the ledger open.", 0: "A service in another container has it."}
        said = [known.get(process, f"Process {process} serves this ledger.")]
        if process and (problem := read_by(ledger).problem):
            said.append(f"It keeps the policy that it had: {problem}")
    records = [record for found in chains for record in found.records if isinstance(record, Admission)]
    last = sorted(records, key=lambda record: record.time)[-_POLICIES_MAX:][::-1]
    if last:
        is_same = last[0].policy == policies.digest
        said.append(f"The policy in force is {'the one in the file' if is_same else 'not the one in the file'}.")
    rows = [(record, each) for record in last for each in record.served]
    texts = {
        "read, UTC": [f"{datetime.fromtimestamp(record.time, UTC):%Y-%m-%d %H:%M:%S}" for record, _ in rows],
        "policy, SHA-256": [record.policy.hex()[:12] for record, _ in rows],
        "data set": [harmless(each.dataset) for _, each in rows],
        "metrics": [harmless(", ".join(each.metrics)) or MISSING for _, each in rows],
        "developers": [harmless(", ".join(each.developers)) for _, each in rows],
    }
    shown = [PrintedColumn(name, column, numeric=False, wraps=name == "developers") for name, column in texts.items()]
    return PageSection("services", "Services and policies", before=said, table=PageTable(shown) if rows else None)


def _signed(sources: Sources, place: DeploymentSection, account: _Told | None, faults: list[str]) -> PageSection:
    ending, heading = f"*{check.STATEMENT}", "Last signed page"
    found = _tried(faults, lambda: max(sources.pages.glob(ending), key=lambda path: path.stat().st_mtime, default=None))
    if found is None:
        return PageSection("signed", heading, before=(f"There is none in {sources.pages}; the command is below.",))
    name = found.with_name(found.name.removesuffix(check.STATEMENT) + check.PAGE)
    try:
        signed = check.check(found, authority=place.credentials / "authority.pem").account
    except UserError as error:
        faults.append(f"{name}: {error}")
        return PageSection("signed", heading, before=(f"{name} was changed, or was never signed.",))
    now = f"; now it has {plural(account['ledger']['records'], 'record')}" if account else ""
    records = plural(signed["ledger"]["records"], "record")
    return PageSection(
        "signed",
        heading,
        before=(f"{name}: signed at {moment(signed['signedAt'])} UTC, when the ledger had {records}{now}.",),
    )


def _commands(sources: Sources, policies: Policies) -> list[Term]:
    policy = shlex.quote(str(sources.policy))
    folder = shlex.quote(str(policies.deployment.credentials.parent))
    about = " --dataset DATASET" if policies.is_several else ""
    logs = "".join(f" --log {shlex.quote(str(log))}" for log in sources.logs)
    certificates, report = "fairwall deploy certificates", "fairwall deploy ledger report"
    out = shlex.quote(str(sources.pages / f"{policies.deployment.name}.html"))
    return [
        ("Add a developer", f"{certificates} add NAME --policy {policy}{about} --epsilon EPSILON --dir {folder}"),
        *((f"Revoke {name}", f"{certificates} revoke {name} --dir {folder}") for name in policies.quotas),
        ("Sign a page", f"{report} --policy {policy}{logs} --out {out}"),
    ]
