"""Failed handshakes in the log: connections that end before there is a call, a line of JSON each.

gRPC has no hook for these, and calls interceptors for calls alone (https://github.com/grpc/grpc/issues/38665). Its core
can be set to write the outcome of handshakes on stderr, for its developers. A separate process reads stderr, writes a
line for each failure, and passes all other output on, so that nothing is lost if the service crashes, and no thread of
the service waits. Both processes run this file, without a library: the service `reported`, the other one `main`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from fairwall.rpc import journal

LOG = logging.getLogger(__name__)

ENVIRONMENT = {"GRPC_VERBOSITY": "INFO", "GRPC_TRACE": "handshaker"}
"""Settings that make gRPC's core write about its handshakes; read when it is imported."""

LINES_PER_SECOND = 10
"""Most failures of a second with a line each; the others are counted in one line per reason."""

REASONS = {
    "NO_CERTIFICATE": "PEER_DID_NOT_RETURN_A_CERTIFICATE",
    "CERTIFICATE_EXPIRED": "certificate has expired",
    "CERTIFICATE_NOT_TRUSTED": "CERTIFICATE_VERIFY_FAILED|certificate signature failure",
    "SERVER_NOT_TRUSTED": "ALERT_UNKNOWN_CA|ALERT_BAD_CERTIFICATE|ALERT_CERTIFICATE_|BAD_PACKET_LENGTH",
    "NOT_TLS": "HTTP_REQUEST|HTTPS_PROXY_REQUEST|WRONG_VERSION_NUMBER",
    "TLS_VERSION": "UNSUPPORTED_PROTOCOL|NO_SHARED_CIPHER",
    "NOT_HTTP2": "ALPN",
    "TIMED_OUT": "timed out|Endpoint closing",
    "CLOSED": "Socket closed|Connection reset",
}
"""gRPC's log patterns by reason; every other failure is ``OTHER``."""

_OF_CORE = re.compile(rb"[IWE]\d{4} [\d:.]+ +\d+ [\w.]+:\d+\] ")
"""The beginning of a line of the core; a line that ends the process (F) does not match, and is passed on."""

_FAILED = re.compile(rb"handshaker\.cc:\d+\] CallNextHandshakerLocked: error=(?!OK)(.*)")
_GOES_ON = re.compile(rb"=== Source Location Trace: === *$|src/core/[\w/]+\.cc:\d+$| shutdown=(true|false) index=|$")
_PEER = re.compile(rb"endpoint_peer_address=(?:ipv[46]:)?([\w%:.]+)")


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Put failed handshakes into the log while the body runs; to be entered before anything logs.

    Python's stderr keeps its target, past the other process. C's output goes through the other process.
    """
    if any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        LOG.warning("failed handshakes are not in the log: %s", " ".join(f"{key} is set" for key in ENVIRONMENT))
        yield
        return
    straight = os.dup(2)
    reads, writes = os.pipe()
    command = [sys.executable, "-I", "-m", "fairwall.rpc.handshakes"]
    # In its own process group: Ctrl-C ends the service, and the end of the service's output ends this process.
    with subprocess.Popen(  # noqa: S603 - our own interpreter and package
        command, stdin=reads, stdout=subprocess.DEVNULL, stderr=straight, process_group=0
    ):
        os.close(reads)
        os.dup2(writes, 2)
        os.close(writes)
        before, sys.stderr = sys.stderr, os.fdopen(straight, "w", buffering=1, errors="backslashreplace")
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(straight, 2)
            sys.stderr = before


def main() -> None:
    """Read a service's stderr until the service has ended, and write and pass on lines."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    journal.start()
    report = FailureLog(journal.handshake)
    reader = Reader(report.failed, lambda line: os.write(2, line))
    while True:
        ready, _, _ = select.select([0], [], [], 1.0)
        data = os.read(0, 1 << 16) if ready else None
        report.tick()
        if data:
            reader.read(data)
        elif data is not None:
            break
    reader.end()
    report.end()


class Reader:
    """A reader of a process's stderr that separates failures, other lines of the core about sockets, and the rest.

    Parameters
    ----------
    failed : called with a failure's reason and the peer's address.
    other : called with each line, its end included, that is not the core's about a connection.
    """

    def __init__(self, failed: Callable[[str, str], object], other: Callable[[bytes], object]) -> None:
        self._failed = failed
        self._other = other
        self._rest = b""
        self._of_core = False
        self._why: bytes | None = None

    def read(self, data: bytes) -> None:
        """Process the next output."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line)

    def end(self) -> None:
        """Pass on a last line without an end."""
        if self._rest:
            self._other(self._rest + b"\n")

    def _line(self, line: bytes) -> None:
        if _OF_CORE.match(line):
            found = _FAILED.search(line)
            self._of_core, self._why = True, found and found[1]
        elif not (self._of_core and _GOES_ON.match(line)):
            self._of_core, self._why = False, None
            self._other(line + b"\n")
            return
        peer = _PEER.search(line)
        if self._why is not None and peer:
            self._failed(_reason(self._why.decode(errors="replace")), unquote(peer[1].decode()))
            self._why = None


class FailureLog:
    """A writer of lines, by `write`, about a limited number of failures a second; others are counted by reason."""

    def __init__(self, write: Callable[..., object], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._until = 0.0
        self._written = 0
        self._more: Counter[str] = Counter()

    def failed(self, reason: str, peer: str) -> None:
        """Write a failure, or count it."""
        self.tick()
        if self._written < LINES_PER_SECOND:
            self._written += 1
            self._write(peer=peer, reason=reason)
        else:
            self._more[reason] += 1

    def tick(self) -> None:
        """Begin the next second if it is time."""
        if self._clock() >= self._until:
            self.end()
            self._until, self._written = self._clock() + 1.0, 0

    def end(self) -> None:
        """Write the counts."""
        for reason, count in sorted(self._more.items()):
            self._write(reason=reason, more=count)
        self._more.clear()


def _reason(text: str) -> str:
    return next((reason for reason, written in REASONS.items() if re.search(written, text)), "OTHER")


if __name__ == "__main__":
    main()
