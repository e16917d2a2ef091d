"""A PostgreSQL server for tests, on a socket in a temporary folder: started when it is first asked for."""

from __future__ import annotations

import atexit
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from glob import glob
from itertools import count
from pathlib import Path

import pytest

_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "autovacuum": "off",
    "max_wal_senders": "4",
    "log_min_messages": "fatal",
}

_names = count()


@dataclass
class Server:
    """A server in a folder of its own.

    Parameters
    ----------
    programs : Path
        Where PostgreSQL's programs are.
    folder : Path
        Holds its data and its socket; belongs to the user that it runs as, since it refuses to run as root.
    settings : dict of str to str
        What it is started with, beside the tests' own.
    """

    programs: Path
    folder: Path
    settings: dict[str, str]
    process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def run(self, *command: str) -> None:
        program = str(self.programs / command[0])
        subprocess.run(_as(self.folder, program, *command[1:]), check=True, stdout=subprocess.DEVNULL, cwd="/")

    def start(self) -> None:
        options = [f"-c{name}={value}" for name, value in (_SETTINGS | self.settings).items()]
        log = (self.folder / "log").open("ab")
        command = (str(self.programs / "postgres"), "-D", str(self.data), "-k", str(self.folder), *options)
        self.process = subprocess.Popen(_as(self.folder, *command), stdout=log, stderr=log, cwd="/")
        log.close()
        until = time.monotonic() + 60
        while True:
            ready = subprocess.run(
                [self.programs / "pg_isready", "-q", "-h", self.folder, "-d", "postgres"], check=False
            )
            if ready.returncode == 0:
                return
            if time.monotonic() > until or self.process.poll() is not None:
                raise RuntimeError((self.folder / "log").read_text()[-2000:])
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it: at once by default (``immediate``), as in a crash."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(60)
            self.process = None

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://fairwall@/{database}?host={self.folder}"

    def standby(self) -> Server:
        """Copy this server to one that follows it; not started."""
        own = Server(self.programs, own_folder(), self.settings)
        self.run("pg_basebackup", "-h", str(self.folder), "-U", "fairwall", "-D", str(own.data), "-R", "-c", "fast")
        return own

    def wait_for(self, primary: Server) -> None:
        """Wait until this standby has all that its primary has committed."""
        import psycopg

        with psycopg.connect(primary.url()) as db:
            (end,) = db.execute("SELECT pg_current_wal_flush_lsn()").fetchone() or (None,)
        with psycopg.connect(self.url(), autocommit=True) as db:
            while not (db.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", (end,)).fetchone() or (True,))[0]:
                time.sleep(0.02)

    def promote(self) -> None:
        """Have this standby, which may be stopped, take the place of its primary."""
        (self.data / "standby.signal").unlink(missing_ok=True)
        if self.process is not None:
            self.stop(signal.SIGINT)
        self.start()

    def new_database(self) -> str:
        """Make an empty database; its address."""
        import psycopg

        name = f"d{next(_names)}"
        with psycopg.connect(self.url(), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}")
        return self.url(name)


def programs() -> Path | None:
    """Where PostgreSQL 15 or later is, as Debian installs it, or on the path."""
    found = sorted(glob("/usr/lib/postgresql/*/bin/postgres"), key=lambda name: int(name.split("/")[4]))
    own = shutil.which("postgres")
    return Path(found[-1]).parent if found else Path(own).resolve().parent if own else None


def begin(**settings: str) -> Server:
    """Lay a server out and start it; the caller stops it."""
    where = programs()
    if where is None:
        pytest.skip("PostgreSQL is not installed")
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    server = laid_out(where, own_folder(), **settings)
    server.start()
    return server


def laid_out(where: Path, folder: Path, **settings: str) -> Server:
    """Lay a server out in a folder, if there is none."""
    server = Server(where, folder, settings)
    if server.data.exists():
        return server
    folder.mkdir(parents=True, exist_ok=True)
    _give(folder)
    server.run(
        "initdb", "-D", str(server.data), "--no-sync", "-U", "fairwall", "-A", "trust", "-E", "UTF8", "--locale=C"
    )
    return server


def own_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fairwall-pg-"))
    _give(folder)
    return folder


def _give(folder: Path) -> None:
    """Give a folder to a user that the server may run as."""
    if os.getuid() == 0:
        user = pwd.getpwnam("nobody")
        os.chown(folder, user.pw_uid, user.pw_gid)


def remove(server: Server) -> None:
    server.stop()
    shutil.rmtree(server.folder, ignore_errors=True)


@cache
def shared() -> Server:
    """The server that a process's tests share; each has databases of its own."""
    server = begin()
    atexit.register(remove, server)
    return server


_BECOME = "import os, sys; os.setgroups([]); os.setgid({}); os.setuid({}); os.execv(sys.argv[1], sys.argv[1:])"


def _as(folder: Path, *command: str) -> tuple[str, ...]:
    """Run a command as the owner of a folder.

    It becomes that user by itself: where Python has to do so between fork and exec, a test with open connections of
    grpc now and then dies there.
    """
    owner = folder.stat()
    as_owner = (sys.executable, "-ISc", _BECOME.format(owner.st_gid, owner.st_uid))
    return (*as_owner, *command) if os.getuid() == 0 else command


def end_connections(url: str) -> None:
    """Cut every connection to a database, as its administrator can, and wait until they are over."""
    import psycopg

    with contextlib.suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as db:
        db.execute(
            "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity "  # and waits for its end
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
