"""Programs of ours, each a process of its own that is forked from one which has imported them already.

Importing is nearly all that a start costs, and the tests start services and parties by the hundred. All the rest is as
`subprocess.Popen` has it: the process is its caller's child, with streams, arguments, working folder, environment,
session, signals and exit status of its own, and it confines itself. Only its command line, seen from outside, is
another; and a service, which gRPC is imported for before, has no lines of failed handshakes in its log. Tests of the
start itself, or of options of the interpreter, start programs with `subprocess`.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import inspect
import json
import os
import runpy
import signal
import socket
import struct
import subprocess
import sys
import threading
import types
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

_PRELOADED = (
    *("compliance.games.play", "compliance.deployment.serve", "developer.service", "fairwall.client"),
    # What the command imports, some of it only where it is needed.
    *("sim.cli.main", "sim.play.runner", "sim.replay.other_decoder", "sim.verify.check", "sim.runs.page"),
    *("sim.games.reveal.page", "pyarrow.csv", "pandas", "scipy.special", "scipy.optimize"),
    *("rich.progress", "rich.table", "matplotlib.backends.backend_agg", "typer._click.decorators", "email.parser"),
    *("sim.report.terminal", "sim.replay.captions", "typer._adapters"),
    # What libraries import where they are first used.
    *("cryptography.hazmat.backends.openssl.backend", "grpc._server", "grpc._interceptor"),
)
_OURS = ("compliance", "developer", "adversary", "sim")
_CLONE_PARENT = 0x8000
_PYTHON = sys.executable
"""What is forked; a process may call itself by another interpreter's name, which it starts others with."""
_CLONE = {"x86_64": 56, "aarch64": 220}.get(os.uname().machine) if sys.platform == "linux" else None


class Popen(subprocess.Popen[Any]):
    """`subprocess.Popen`, but ``python [-I] -m`` one of our programs, or ``-c TEXT``, is forked where that can be.

    Parameters
    ----------
    python
        The interpreter that the program starts others with; those are not forked if it is another one.
    forks
        Whether what it starts may be forked from it.
    """

    def __init__(self, words: Any, *, python: str = sys.executable, forks: bool = True, **options: Any) -> None:
        self._python, self._forks = python, forks
        super().__init__(words, **options)

    def _execute_child(self, *arguments: Any) -> None:
        really = super()._execute_child  # type: ignore[misc]
        asked = inspect.signature(really).bind(*arguments).arguments
        words = [] if isinstance(asked["args"], str) else [os.fspath(word) for word in asked["args"]]
        env = dict(os.environ if asked["env"] is None else asked["env"])
        special = "LD_PRELOAD" in env or any(asked[name] for name in ("pass_fds", "preexec_fn", "shell"))
        if _program(words) is None or special:
            return really(*arguments)
        streams = [asked["p2cread"], asked["c2pwrite"], asked["errwrite"]]
        given = {
            "words": words,
            "python": self._python,
            "forks": self._forks,
            "cwd": os.fspath(asked["cwd"] or os.getcwd()),
            "env": env,
            "session": bool(asked["start_new_session"]),
            "group": asked["process_group"],
        }
        self.pid = _fork(given, [own if each == -1 else each for own, each in enumerate(streams)])
        self._child_created = True
        ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(asked[name] for name in ends))  # type: ignore[attr-defined]
        return None


def run(
    words: Sequence[str | Path],
    *,
    timeout: float | None = None,
    check: bool = False,
    capture_output: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run a program to its end, as `subprocess.run` does."""
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Popen(words, **options) as process:
        try:
            said = process.communicate(timeout=timeout)
        finally:
            process.kill()
    if check and process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words, *said)
    return subprocess.CompletedProcess(words, process.returncode, *said)


def _program(words: Sequence[str]) -> str | None:
    """Tell whether a command runs a module of ours ("-m") or a text ("-c") in this interpreter."""
    if _CLONE is None or isinstance(words, str) or len(words) < 3 or words[0] != _PYTHON:
        return None
    how, what = words[2:4] if words[1] == "-I" and len(words) > 3 else words[1:3]
    return how if how == "-c" or (how == "-m" and what in _OURS) else None


def _fork(given: dict[str, Any], streams: Sequence[int]) -> int:
    """Have a process forked that is this one's child; its number."""
    return _asked(_started(), given, streams)


def _asked(server: socket.socket, given: dict[str, Any], streams: Sequence[int]) -> int:
    text = json.dumps(given).encode()
    socket.send_fds(server, [struct.pack("!I", len(text))], list(streams))
    server.sendall(text)
    (number,) = struct.unpack("!i", _read(server, 4))
    return int(number)


_RUNNING: list[tuple[int, socket.socket, subprocess.Popen[bytes]]] = []


def _started() -> socket.socket:
    """Start what forks, once for each process that asks."""
    if not _RUNNING or _RUNNING[0][0] != os.getpid():
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-I", __file__, str(theirs.fileno())]
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        theirs.close()
        atexit.register(_end, ours, server)
        _RUNNING[:] = [(os.getpid(), ours, server)]
    return _RUNNING[0][1]


def _end(connection: socket.socket, server: subprocess.Popen[bytes]) -> None:
    connection.close()
    server.wait()


def _read(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise EOFError("what forks processes has ended")
        found += part
    return found


def _serve(number: int) -> None:
    """Import what programs need; then fork one for each that is asked for, until nobody asks any more."""
    from fairwall.rpc import kernels

    kernels.fix()
    root = Path(__file__).parents[2]
    parties = (path for party in ("developer", "adversary") for path in sorted((root / party).rglob("[!_]*.py")))
    plays = (path for path in parties if "def play" in path.read_text())
    for name in (*_PRELOADED, *(".".join(path.relative_to(root).with_suffix("").parts) for path in plays)):
        import_module(name)
    _warm_up()
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=number) as connection:
        _answer(connection)


def _answer(connection: socket.socket) -> None:
    """Fork a process for each that is asked for, a child of this one's parent."""
    while True:
        head, streams, _, _ = socket.recv_fds(connection, 4, 3)
        if not head:
            return
        given = json.loads(_read(connection, *struct.unpack("!I", head)))
        child = _sibling() or _become(given, streams)
        for stream in streams:
            os.close(stream)
        connection.sendall(struct.pack("!i", child))


def _warm_up() -> None:
    """Do once what each of many commands would do first: build the parser, read what is shipped, draw a report."""
    import typer.main

    from sim.cli.main import app
    from sim.games import read
    from sim.runs.page import rendered
    from sim.scenarios.sweep import _original, shipped

    build = typer.main.get_command
    parser = build(app)
    typer.main.get_command = lambda asked: parser if asked is app else build(asked)
    for name, path in shipped().items():
        _original(path)
        read(name)
    rendered(Path(__file__).parents[1] / "golden" / "reveal")


def _sibling() -> int:
    """Fork a process whose parent is this one's; 0 in itself."""
    python, library = ctypes.pythonapi, ctypes.PyDLL(None)
    python.PyOS_BeforeFork()
    child = int(library.syscall(_CLONE, _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0))
    if child:
        python.PyOS_AfterFork_Parent()
    else:
        python.PyOS_AfterFork_Child()
    return child


def _become(given: dict[str, Any], streams: Sequence[int]) -> NoReturn:
    """Be the program asked for, to its end."""
    status = 1
    try:
        if given["session"]:
            os.setsid()
        if (group := given["group"]) is not None and group >= 0:
            os.setpgid(0, group)
        high = [os.dup2(stream, 100 + place) for place, stream in enumerate(streams)]
        for place, stream in enumerate(high):
            os.dup2(stream, place)
        os.closerange(3, 65_536)
        os.chdir(given["cwd"])
        os.environ.clear()
        os.environ.update(given["env"])
        atexit._clear()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, buffering=line, closefd=False)  # noqa: SIM115
            for number, mode, line in ((0, "r", -1), (1, "w", -1), (2, "w", 1))
        )
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
        sys.executable = given["python"]
        if given["forks"]:
            _from_here(is_late="replay" in given["words"])
        status = _interpreted(given["words"])
    finally:
        with contextlib.suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        if status == -signal.SIGINT:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        os._exit(status)


def _from_here(*, is_late: bool) -> None:
    """Fork what this process starts of our modules from itself.

    Not once it has other threads; a process that starts nothing before is kept as it was without them, to fork from.
    """
    global _fork
    lock, before = threading.Lock(), None
    if is_late:
        before, theirs = socket.socketpair()
        if not os.fork():
            before.close()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            with contextlib.suppress(OSError):
                _answer(theirs)
            os._exit(0)
        theirs.close()

    def is_alone() -> bool:
        return len(os.listdir("/proc/self/task")) == 1

    def fork(given: dict[str, Any], streams: Sequence[int]) -> int:
        if before is None or is_alone():
            return os.fork() or _become(given, streams)
        with lock:
            return _asked(before, given, streams)

    _fork = fork
    really = subprocess.Popen

    def popen(words: Any, *rest: Any, **options: Any) -> subprocess.Popen[Any]:
        can = before is not None or is_alone()
        return (Popen if can and not rest and _program(words) == "-m" else really)(words, *rest, **options)

    subprocess.Popen = popen  # type: ignore[assignment,misc]


def _interpreted(words: Sequence[str]) -> int:
    """Run a program as the interpreter's first; the exit status, of a process that Ctrl-C ended -2."""
    isolated = words[1] == "-I"
    how, what, *rest = words[2 if isolated else 1 :]
    sys.argv = [how, *rest]
    sys.path[:0] = [] if isolated else [os.getcwd() if how == "-m" else ""]
    try:
        if how == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            main = sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(what, "<string>", "exec"), main.__dict__)  # noqa: S102 - the program of a test
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)  # noqa: T201
        return 1
    except KeyboardInterrupt:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        return -signal.SIGINT
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        return 1
    return 0


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
