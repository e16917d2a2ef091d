"""A read-only page for browsers on this machine, without scripts, on 127.0.0.1, for named users."""

from __future__ import annotations

import os
import pwd
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer

from fairwall.errors import UserError

HOST = "127.0.0.1"

_PATHS = ("/", "/still")
"""Paths of the page that browsers reload by themselves, and of the one that they do not."""

_FRESH_SECONDS = 0.25
"""Seconds for which a page is cached: many requests at once make it once."""

_PATIENCE_SECONDS = 10.0

_CONNECTIONS = Path("/proc/net/tcp")
_ESTABLISHED = "01"


class LocalPageError(UserError):
    """A page that cannot be served here. Its text is one line."""


class LocalPage(ThreadingTCPServer):
    """A server of one page, until `shutdown` or an exception in `serve_forever`.

    ``port`` 0 is one of the system's choice. ``make`` returns the page, HTML, and is called by one thread at a time.
    ``users`` are the numbers of the users, besides root, whose browsers are answered. ``styles`` are the SHA-256 of the
    page's style sheets, in base64: a browser accepts no others. ``seconds`` is the time between reloads by a browser.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(
        self, port: int, make: Callable[[], str], users: Collection[int], styles: Collection[str], seconds: int
    ) -> None:
        if not _CONNECTIONS.exists():
            raise LocalPageError(f"{_CONNECTIONS}: is not there: this system does not tell whose a connection is")
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise LocalPageError(f"--port {port}: {error.strerror}: choose another, or 0 for any") from None
        self.users, self.seconds = {0, *users}, seconds
        self.port: int = self.server_address[1]
        sheets = " ".join(f"'sha256-{digest}'" for digest in styles)
        self.policy = (
            f"default-src 'none'; style-src-elem {sheets}; style-src-attr 'unsafe-inline'; img-src data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        self._make, self._lock = make, threading.Lock()
        self._page, self._until = b"", 0.0

    def page(self) -> bytes:
        """Return the page, at most `_FRESH_SECONDS` old."""
        with self._lock:
            if time.monotonic() > self._until:
                self._page = self._make().encode()
                self._until = time.monotonic() + _FRESH_SECONDS
            return self._page

    def user_of(self, port: int) -> int | None:
        """Return the user of a connection from a port of this machine, as the kernel tells; None if unknown.

        A port on 127.0.0.1 is open to all users of the machine, and the ledger's file is not.
        """
        ends = [f"0100007F:{port:04X}", f"0100007F:{self.port:04X}", _ESTABLISHED]
        for line in _CONNECTIONS.read_text().splitlines():
            words = line.split()
            if words[1:4] == ends:
                return int(words[7])
        return None

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002
        """Report an error, unless the browser hung up."""
        error = sys.exception()
        if not isinstance(error, OSError):
            print(f"fairwall: {type(error).__name__} while a browser was answered", file=sys.stderr)  # noqa: T201


def users_of(names: Sequence[str]) -> set[int]:
    """Return the numbers of this process's user and of the users with these names; LocalPageError if unknown."""
    numbers = {os.getuid()}
    for name in names:
        try:
            numbers.add(pwd.getpwnam(name).pw_uid)
        except (KeyError, ValueError):
            raise LocalPageError(f"--user {name}: there is no such user on this machine") from None
    return numbers


class _Handler(BaseHTTPRequestHandler):
    server: LocalPage
    timeout = _PATIENCE_SECONDS

    def do_GET(self) -> None:
        refused = self._refusal()
        if refused:
            self.send_error(*refused)
            return
        try:
            page = self.server.page()
        except Exception as error:
            # The console goes on after any error; the error's text may quote secrets.
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, f"the page cannot be made: {type(error).__name__}")
            return
        # With an address: without one, a browser at a heading only scrolls to the heading, and reloads nothing.
        again = {"Refresh": f"{self.server.seconds}; url={self.path}"} if self.path == _PATHS[0] else {}
        self._reply(HTTPStatus.OK, "text/html", page, again)

    do_HEAD = do_GET  # noqa: N815

    def _refusal(self) -> tuple[HTTPStatus, str] | None:
        """Return why a request is refused. A page elsewhere may have a host name that leads here."""
        hosts = {f"{name}:{self.server.port}" for name in (HOST, "localhost")}
        if not hosts.issuperset(self.headers.get_all("Host", [""])):
            return HTTPStatus.MISDIRECTED_REQUEST, f"open http://{HOST}:{self.server.port}/"
        if self.server.user_of(self.client_address[1]) not in self.server.users:
            return HTTPStatus.FORBIDDEN, "this console is another user's: have it started with --user"
        if self.path not in _PATHS:
            return HTTPStatus.NOT_FOUND, "there is no such page"
        return None

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Refuse in one line that quotes nothing of the request."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code, message = HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are answered"
        said = message if code in _OWN else HTTPStatus(code).phrase
        headers = {"Allow": "GET, HEAD"} if code == HTTPStatus.METHOD_NOT_ALLOWED else {}
        self._reply(HTTPStatus(code), "text/plain", f"{said}\n".encode(), headers)

    def _reply(self, status: HTTPStatus, kind: str, body: bytes, headers: dict[str, str]) -> None:
        self.close_connection = True
        self.send_response(status)
        fixed = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Content-Security-Policy": self.server.policy,
            "Cache-Control": "no-store",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }
        for name, value in (fixed | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "fairwall"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


_OWN = {
    HTTPStatus.MISDIRECTED_REQUEST,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""Statuses with a line of ours; others' lines quote the request."""
