"""What a hostile developer or adversary would try, from inside its own process; run by tests/e2e/test_confine.py.

``python -I hostile_party.py TARGETS < CONFIGURATION``: confines itself as a party does, by reading its configuration,
or not at all if there is none. Prints what became of each attempt: "done", or the error's name.
"""

import ctypes
import errno
import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairwall.rpc import process

LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE, PIDFD_GETFD = 0x4206, 438


def main() -> None:
    targets = json.loads(sys.argv[1])
    if targets["confined"]:
        process.start(targets["party"], "-")
    print(json.dumps({name: outcome(attempt) for name, attempt in attempts(targets)}), flush=True)  # noqa: T201


def outcome(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "done"


def attempts(targets: dict[str, Any]) -> list[tuple[str, Callable[[], Any]]]:
    found: list[tuple[str, Callable[[], Any]]] = []
    for name, path in targets["read"].items():
        found.append((f"read {name}", lambda path=path: Path(path).read_bytes()))
    for name, path in targets["write"].items():
        found += [
            (f"append to {name}", lambda path=path: Path(path).open("ab").close()),
            (f"link to {name}", lambda path=path: link(path, f"{targets['folder']}/link")),
            (f"follow a link to {name}", lambda path=path: follow(path, f"{targets['folder']}/symlink")),
        ]
    for name, path in targets["list"].items():
        found += [
            (f"list {name}", lambda path=path: os.listdir(path)),
            (f"create in {name}", lambda path=path: create(f"{path}/new-{os.getpid()}")),
        ]
    for name, pid in targets["processes"].items():
        found += [
            (f"{kind} of {name}", lambda kind=kind, pid=pid: look(pid, kind)) for kind in ("environ", "maps", "mem")
        ]
        found += [
            (f"descriptors of {name}", lambda pid=pid: os.listdir(f"/proc/{pid}/fd")),
            (f"attach to {name}", lambda pid=pid: call(LIBC.ptrace, PTRACE_SEIZE, pid, None, None)),
            (f"copy memory of {name}", lambda pid=pid: copy(pid)),
            (f"copy a descriptor of {name}", lambda pid=pid: call(LIBC.syscall, PIDFD_GETFD, os.pidfd_open(pid), 0, 0)),
            (f"find {name} by a signal", lambda pid=pid: os.kill(pid, 0)),
            (f"signal {name}", lambda pid=pid: os.kill(pid, 18)),
        ]
    for name, port in targets["connect"].items():
        found.append((f"connect to {name}", lambda port=port: connect(socket.AF_INET, ("127.0.0.1", port))))
    for name, port in targets["bind"].items():
        found.append((f"listen on {name}", lambda port=port: listen(port)))
    found.append(("abstract socket", lambda: connect(socket.AF_UNIX, "\0" + targets["abstract"])))
    found.append(("start a program", lambda: start(targets["program"])))
    found.append(("start a program with a library of its own", lambda: start(targets["program"], LD_PRELOAD="own.so")))
    found.append(("start an interpreter", lambda: start(sys.executable)))
    found.append(("write its own folder", lambda: create(f"{targets['folder']}/own-{os.getpid()}")))
    return found


def call(function: Any, *arguments: Any) -> None:
    if function(*arguments) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def look(pid: int, kind: str) -> None:
    with open(f"/proc/{pid}/{kind}", "rb") as file:
        if kind != "mem":
            file.read()


def copy(pid: int) -> None:
    """Read another's memory where nothing is: who may do so is told that."""
    words = (ctypes.c_size_t * 2)(16, 8)
    try:
        call(LIBC.process_vm_readv, pid, (ctypes.c_size_t * 2)(ctypes.addressof(words), 8), 1, words, 1, 0)
    except OSError as error:
        if error.errno != errno.EFAULT:
            raise


def link(path: str, name: str) -> None:
    os.link(path, name)
    os.unlink(name)


def follow(path: str, name: str) -> None:
    os.symlink(path, name)
    try:
        Path(name).read_bytes()
    finally:
        os.unlink(name)


def create(path: str) -> None:
    Path(path).write_text("x")
    os.unlink(path)


def connect(family: int, address: Any) -> None:
    with socket.socket(family) as mine:
        mine.settimeout(5)
        mine.connect(address)


def listen(port: int) -> None:
    with socket.socket() as mine:
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        mine.bind(("127.0.0.1", port))
        mine.listen()


def start(program: str, **environment: str) -> None:
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status != 0:
            raise OSError(status, os.strerror(status))
        return
    try:
        os.execve(program, [program, "-c", ""], environment)  # noqa: S606
    except OSError as error:
        os._exit(error.errno or 255)


if __name__ == "__main__":
    main()
