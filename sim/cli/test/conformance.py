"""The commands ``fairwall test conformance ...``."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from fairwall.rpc.addresses import mistake
from sim.cli.common import FAILED, WIDTH

if TYPE_CHECKING:
    from sim.conformance.cases import ConformanceCase
    from sim.conformance.target import Target

_INDENT = " " * 6

app = typer.Typer(
    help="Test anybody's servers and clients against the protocol.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

_Address = Annotated[
    list[str] | None,
    typer.Option("--address", metavar="[NAME=]HOST:PORT", help="Where a deployment answers. May be repeated."),
]
_Certs = Annotated[Path | None, typer.Option("--certs", metavar="DIR", help="The kit's certificates.")]
_Target = Annotated[Path | None, typer.Option("--target", metavar="FILE", help="The kit's target.toml.")]
_Start = Annotated[str, typer.Option("--start", metavar="COMMAND", help="Starts what is tested.")]
_Restart = Annotated[str, typer.Option("--restart", metavar="COMMAND", help="Kills {deployment} and starts it again.")]
_Reference = Annotated[bool, typer.Option("--reference", help="Test fairwall's own.")]
_Cases = Annotated[
    list[Path] | None, typer.Option("--cases", metavar="DIR", help="A folder of further cases. May be repeated.")
]
_Only = Annotated[list[str] | None, typer.Option("--only", metavar="NUMBER", help="Run this check. May be repeated.")]
_Known = Annotated[
    Path | None,
    typer.Option("--known-failures", metavar="FILE", help="Numbers of checks that fail; they are run all the same."),
]
_Junit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit's XML.")]
_Mechanism = Annotated[
    str, typer.Option("--mechanism", metavar="NAME", help="Of compliance: what answers, one of an installed plug-in.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines.")]


class _Server(NamedTuple):
    """The address of a server, or the command that starts it; an address without a name belongs to ``unnamed``."""

    unnamed: str
    addresses: list[str]
    certs: Path | None = None
    target: Path | None = None
    start: str = ""
    restart: str = ""
    mechanism: str = "laplace"


class _Wanted(NamedTuple):
    """The checks to run, and how to report them."""

    cases: list[Path] | None
    only: list[str] | None
    known_failures: Path | None
    junit: Path | None
    as_json: bool


@app.command()
def kit(folder: Annotated[Path, typer.Argument(help="A new folder.", metavar="DIR")]) -> None:
    """Make what a server is tested with. People, certificates, policies, and their description."""
    from sim.conformance.sample_deployments import make

    typer.echo(make(folder))


@app.command("list")
def list_checks(
    kind: Annotated[str, typer.Argument(help="compliance, developer, referee or client.")] = "compliance",
    cases: _Cases = None,
) -> None:
    """List the checks. Each names the sentence of the protocol that it tests."""
    from sim.conformance.cases import read

    for case in read(kind, cases or ()):
        typer.echo(fill(f"{case.number}  {case.subject}: {case.title}", WIDTH, subsequent_indent=_INDENT))
        typer.echo(fill(case.sentence, WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT))


_POLICY = " --policy {policy}"
_SERVERS = {
    "compliance": (
        "Test an AuditService. It is served already, or a command starts it on {policy}.",
        "main",
        ["-I", "-m", "compliance"],
    ),
    "developer": (
        "Test a ModelService that serves the models of {policy}.",
        "model",
        ["-m", "sim.conformance.reference_developer"],
    ),
    "referee": (
        "Test a RefereeService that plays the one trial of {policy}.",
        "game",
        ["-m", "sim.conformance.reference_referee"],
    ),
}
"""By command: its help, the deployment of an address without a name, and the arguments that start fairwall's own."""


def _tests(kind: str) -> Callable[..., None]:
    about, unnamed, own = _SERVERS[kind]

    def test(
        address: _Address = None,
        certs: _Certs = None,
        target: _Target = None,
        restart: _Restart = "",
        start: _Start = "",
        reference: _Reference = False,
        cases: _Cases = None,
        only: _Only = None,
        known_failures: _Known = None,
        junit: _Junit = None,
        mechanism: _Mechanism = "laplace",
        as_json: _Json = False,
    ) -> None:
        if reference:
            start = shlex.join([sys.executable, *own]) + _POLICY
        server = _Server(unnamed, address or [], certs, target, start, restart, mechanism)
        _test(kind, server, _Wanted(cases, only, known_failures, junit, as_json))

    test.__doc__ = about
    return test


for _kind in _SERVERS:
    app.command(_kind)(_tests(_kind))


@app.command()
def client(
    start: _Start = "",
    reference: _Reference = False,
    cases: _Cases = None,
    only: _Only = None,
    known_failures: _Known = None,
    junit: _Junit = None,
    as_json: _Json = False,
) -> None:
    """Judge a developer's client. A command asks {address} with {credentials} for one batch by the terms."""
    if reference:
        own = shlex.join([sys.executable, "-m", "sim.conformance.reference_client"])
        start = own + " --address {address} --credentials {credentials}"
    _test("client", _Server("main", [], start=start), _Wanted(cases, only, known_failures, junit, as_json))


def _test(kind: str, server: _Server, wanted: _Wanted) -> None:
    # Refused handshakes are expected; gRPC would write a line about each.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from sim.conformance import cases
    from sim.conformance.cases import run
    from sim.conformance.inputs import ConformanceError
    from sim.conformance.subject import ServerUnderTest

    if bool(server.addresses) == bool(server.start):
        raise ConformanceError("say what is tested: --address, --start or --reference")
    for address in server.addresses:
        if wrong := mistake(address.rpartition("=")[2]):
            raise ConformanceError(f"--address: must be [NAME=]host:port{wrong}, not {address}")
    chosen = _chosen(cases.read(kind, wanted.cases or ()), wanted.only)
    known, told = _known(wanted.known_failures), []
    with _described(server) as target, ServerUnderTest(target, server.start, server.restart) as subject:
        for outcome in run(subject, kind, chosen, known):
            told.append(outcome)
            if not wanted.as_json:
                typer.echo(cases.line(outcome))
    if wanted.junit is not None:
        wanted.junit.write_text(cases.as_junit(kind, told), encoding="utf-8")
    record = cases.as_record(told)
    typer.echo(json.dumps(record, allow_nan=False) if wanted.as_json else cases.summary(told))
    if not record["conforms"]:
        raise typer.Exit(FAILED)


@contextmanager
def _described(server: _Server) -> Iterator[Target]:
    """Yield the target of a test; make a kit for a server that is started on nothing else."""
    from fairwall.laws.mechanisms.table import MECHANISM_LAWS
    from sim.conformance import sample_deployments, target
    from sim.conformance.inputs import ConformanceError

    split = (address.rpartition("=") for address in server.addresses)
    addresses = {name or server.unnamed: place for name, _, place in split}
    path = server.target or (server.certs.parent / "target.toml" if server.certs is not None else None)
    if path is not None:
        yield target.read(path, server.certs, addresses)
        return
    if server.mechanism not in MECHANISM_LAWS:
        raise ConformanceError(f"--mechanism: neither fairwall nor a plug-in has a mechanism {server.mechanism!r}")
    if addresses:
        raise ConformanceError("--address: needs --certs, the certificates of the kit that is served")
    with tempfile.TemporaryDirectory(prefix="fairwall-kit-") as folder:
        yield target.read(sample_deployments.make(Path(folder) / "kit", server.mechanism))


def _chosen(cases: list[ConformanceCase], only: list[str] | None) -> list[ConformanceCase]:
    from sim.conformance.inputs import ConformanceError

    if only is None:
        return cases
    if missing := sorted(set(only) - {case.number for case in cases}):
        raise ConformanceError(f"--only: no check {missing[0]}")
    return [case for case in cases if case.number in only]


def _known(path: Path | None) -> frozenset[str]:
    """Read a list of known failures: a number a line, followed by any explanation."""
    from sim.conformance.inputs import read_text

    if path is None:
        return frozenset()
    lines = read_text(path).splitlines()
    return frozenset(line.split()[0] for line in lines if line.strip() and not line.startswith("#"))
