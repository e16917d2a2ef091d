"""The life of a party's process, from its configuration to its end.

The configuration, private key included, comes in on stdin as one line of JSON (or from a file, by hand), so that the
command line and environment hold no secret; the address goes out on stdout; the process ends when stdin closes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import resource
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import NoReturn

import grpc

from fairwall import plugins
from fairwall.errors import UserError
from fairwall.rpc import confine, program
from fairwall.rpc.confine import Layer
from fairwall.rpc.errors import reason_of
from fairwall.rpc.identity import Credentials, unusable
from fairwall.rpc.recorder import MODES, TranscriptRecorder
from fairwall.wire.v1.error_pb2 import Reason

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class PartyConfig:
    """The configuration of a party's process; an empty text stands for none.

    Parameters
    ----------
    run, party : the party's identity; the certificate must name the same.
    referee, listen : the referee's address, and the party's own, "host:port"; port 0 lets the system choose.
    authority, certificate, key : PEM texts.
    counterpart : the address of the service that the party calls; if it is unknown, connections are not confined.
    scratch : the folder for temporary files, this party's alone.
    log : the file to append the log to; without one stderr stays.
    transcript : the file for the party's transcript, which must not exist.
    record : "full" or "digest".
    plugins, plugin_seconds : the plug-ins in use, by `fairwall.plugins.told`, and the limit of a call.
    """

    run: str
    party: str
    referee: str
    listen: str
    authority: str
    certificate: str
    key: str = field(repr=False)
    counterpart: str = ""
    scratch: str = ""
    log: str = ""
    transcript: str = ""
    record: str = "full"
    scenario_digest: str = ""
    plugins: str = ""
    plugin_seconds: str = ""

    @property
    def credentials(self) -> Credentials:
        """The party's credentials."""
        return Credentials(self.run, self.party, self.authority, self.certificate, self.key)


def arguments(party: str, *, deployable: bool = False) -> argparse.Namespace:
    """Parse a party's command line: ``config``, or for a party that can be deployed ``policy`` in its place."""
    parser = argparse.ArgumentParser(prog=f"python -m {party}", description=f"The {party} party of fairwall.")
    sources = parser.add_mutually_exclusive_group(required=True)
    sources.add_argument("--config", metavar="FILE", help="a game's configuration in JSON; - reads one line of stdin")
    if deployable:
        sources.add_argument("--policy", metavar="FILE", help="a deployment's policy in TOML")
        parser.add_argument("--listen", metavar="HOST:PORT", help="listen here, and not where the policy says")
        parser.add_argument("--new-ledger", action="store_true", help="begin a ledger where one was lost")
        parser.add_argument(
            "--even-if-worthless", action="store_true", help="serve answers that are worth less than a guess"
        )
        parser.add_argument(
            "--even-if-revealing", action="store_true", help="serve what gives away more than the policy says"
        )
    return parser.parse_args()


def log(party: str) -> None:
    """Send the log to stderr, each line with the party's name."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format=f"%(asctime)s {party} %(levelname)s %(name)s: %(message)s"
    )


def log_of_service() -> None:
    """Send a deployment's log to stderr, in short lines: only one party writes, and people read."""
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
    )


def start(party: str, source: str | None = None) -> tuple[PartyConfig, tuple[Layer, ...]]:
    """Begin a party's process: read its configuration, confine it, prepare its end; return configuration and layers.

    To be called while there is no other thread, so before numerical libraries are imported: only then can all layers be
    active. The configuration's source is a file or "-", by default the command line's. An unreadable configuration, or
    libraries that are unreadable once the process is confined, end it with one line on stderr and status 2.
    """
    source = source or str(arguments(party).config)
    log(party)
    try:
        text = sys.stdin.readline() if source == "-" else Path(source).read_text(encoding="utf-8")
        config = _parse(text, party)
        if config.log:
            _log_to(config.log)
        layers = _confine(config)
    except (OSError, ValueError) as error:
        print(f"{party}: configuration {source}: {error}", file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from None
    hidden = program.closed(confine.libraries())
    if hidden:
        print(f"{party}: the libraries in {', '.join(hidden)} cannot be read", file=sys.stderr)  # noqa: T201
        raise SystemExit(2)
    try:
        plugins.seat(config.plugins, config.plugin_seconds)
    except (ValueError, TypeError):
        print(f"{party}: configuration {source}: key 'plugins' or 'plugin_seconds' cannot be read", file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from None
    if source == "-":
        # The starter holds the other end: a closed pipe is the end of the run, however it came about.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_end_with_stdin, name="stdin", daemon=True).start()
    return config, layers


@contextlib.contextmanager
def playing(config: PartyConfig, layers: Sequence[Layer] = ()) -> Iterator[TranscriptRecorder | None]:
    """Yield the recorder of a party's transcript, or None; errors not of the party's making end with one line.

    The exit status is then 2 for unusable credentials, addresses or code, and 1 for another party that is gone or
    refuses.
    """
    recorder = None
    try:
        if config.transcript:
            path = Path(config.transcript)
            recorder = TranscriptRecorder(path, config.run, config.party, config.scenario_digest, config.record, layers)
        yield recorder
    except (OSError, ImportError, UserError) as error:
        why = f"configuration: {error}" if isinstance(error, OSError) else str(error)
        if isinstance(error, ImportError):
            why = program.reason(error, config.party)
        print(f"{config.party}: {why}", file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from None
    except grpc.RpcError as error:
        reason = reason_of(error)
        if not reason and (why := unusable(config.credentials)):
            print(f"{config.party}: configuration: {why}", file=sys.stderr)  # noqa: T201
            raise SystemExit(2) from None
        code = error.code().name if isinstance(error, grpc.Call) else "unknown"
        asked = "".join(f" to {peer}" for peer in getattr(error, "__notes__", ()))
        LOG.error("a call%s %s", asked, f"was refused: {Reason.Name(reason)}" if reason else f"failed: {code}")
        raise SystemExit(1) from None
    finally:
        if recorder is not None:
            recorder.close()


@contextlib.contextmanager
def until_told(again: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Run the body, which starts a server, wait for Ctrl-C or a request to terminate, and go on.

    ``again`` is called at each SIGHUP, to read changed files; the service goes on, and logs, whatever it raises.
    """
    # The kernel sends a signal to any thread. A byte in a pipe wakes this one in any case, and waits if the body is
    # still starting.
    wakes, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, lambda *_: None)
    yield
    while (told := signal.Signals(os.read(wakes, 1)[0])) == signal.SIGHUP:
        try:
            again()
        except Exception:
            LOG.exception("SIGHUP: what was read before holds")
    LOG.info("%s: leaving", told.name)


def open_files_max() -> None:
    """Raise the limit of open files, and connections, to the most that the system allows this process."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def announce(address: str, layers: Sequence[Layer]) -> None:
    """Report on stdout that this process is ready, with its address, if any, and layers; it listens nowhere else now.

    The log gets a line about the layers too: a warning, if a wall is missing.
    """
    layers = confine.seal(layers)
    free = [layer for layer in layers if layer.name in confine.WALLS and not layer.active]
    LOG.log(logging.WARNING if free else logging.INFO, "%s", confine.describe(layers))
    print(json.dumps({"address": address, "layers": confine.as_values(layers)}), flush=True)  # noqa: T201


def _log_to(path: str) -> None:
    """Redirect stderr, outside Python too, to a file; earlier output is copied if stderr was a file."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    before = os.fstat(2)
    if stat.S_ISREG(before.st_mode):
        os.write(file, os.pread(2, before.st_size, 0))
    os.dup2(file, 2)
    os.close(file)


def _confine(config: PartyConfig) -> tuple[Layer, ...]:
    folders = [Path(config.transcript).parent] if config.transcript else []
    if config.scratch:
        folders.append(Path(config.scratch))
        os.environ["TMPDIR"] = config.scratch
    return confine.confine(
        config.party,
        listen="" if config.party == "adversary" else config.listen,
        connects=(config.referee, config.counterpart),
        folders=folders,
    )


def _parse(text: str, party: str) -> PartyConfig:
    try:
        values = json.loads(text)
    except json.JSONDecodeError:
        raise ValueError("not a JSON object") from None
    if not isinstance(values, dict):
        raise ValueError("not a JSON object")
    names = {field.name for field in fields(PartyConfig)}
    needed = {field.name for field in fields(PartyConfig) if field.default is MISSING}
    for name in sorted(needed - values.keys()):
        raise ValueError(f"key {name!r} is missing")
    for name in sorted(values.keys() - names):
        raise ValueError(f"unknown key {name!r}")
    for name in sorted(values):
        if not isinstance(values[name], str):
            raise ValueError(f"key {name!r} must be a string")
    if values.get("record", MODES[0]) not in MODES[:2]:
        raise ValueError(f"key 'record' must be {' or '.join(MODES[:2])}")
    if values["party"] != party:
        raise ValueError(f"it is for party {values['party']!r}")
    return PartyConfig(**values)


def _end_with_stdin() -> NoReturn:
    while sys.stdin.readline():
        pass
    LOG.info("stdin closed: leaving")
    logging.shutdown()
    os._exit(0)
