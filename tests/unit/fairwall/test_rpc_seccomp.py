"""The filter of system calls, in processes of its own."""

from __future__ import annotations

import fcntl
import json
import platform
import re
import signal
import socket
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from fairwall.rpc import seccomp
from tests.support.system_call_filter import without

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in seccomp._ARCHITECTURES, reason="no filter of system calls here"
)
ARM = platform.machine() == "aarch64"

HEADERS = [Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm-generic/unistd.h")]


def run(script: str, *before: str) -> Any:
    """Run a script that confines itself; what it printed."""
    ended = subprocess.run([sys.executable, *before, "-I", "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


TRY = """
import json, socket, threading
from fairwall.rpc import seccomp
def tried(attempt, *arguments):
    try:
        attempt(*arguments)
    except OSError as error:
        return error.strerror
    return "done"
"""
REFUSED = "Operation not permitted"


@pytest.mark.parametrize("column", [0, 1], ids=["x86-64", "ARM64"])
def test_the_numbers_are_the_headers(column: int) -> None:
    if not HEADERS[column].exists():
        pytest.skip("no headers of the kernel here")
    known = {
        name: int(number)
        for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[column].read_text())
    }
    known["newfstatat"] = known.get("newfstatat") or known["fstatat"]
    numbers = seccomp._numbers(seccomp._ALLOWED, column) | seccomp._numbers(seccomp._LOOKED_AT, column)
    common = numbers.keys() & known.keys()
    assert {name: numbers[name] for name in common} == {name: known[name] for name in common}
    # What older headers lack is numbered alike everywhere.
    assert {name: number for name, number in numbers.items() if name not in known and number < 424} == {}
    assert len(common) > 150
    assert len(set(numbers.values())) == len(numbers)


@pytest.mark.parametrize("resolves", [False, True])
def test_datagrams_are_for_those_who_have_to_ask_for_an_address(resolves: bool) -> None:
    tried = run(f"""{TRY}
seccomp.confine(serves=True, resolves={resolves})
INET = socket.AF_INET
kinds = [(INET, socket.SOCK_STREAM), (INET, socket.SOCK_DGRAM), (INET, socket.SOCK_STREAM, 262),
         (INET, socket.SOCK_RAW, 17), (socket.AF_UNIX, socket.SOCK_DGRAM)]
print(json.dumps([tried(socket.socket, *kind) for kind in kinds]))
""")
    assert tried == ["done", "done" if resolves else REFUSED, REFUSED, REFUSED, REFUSED]


def test_who_serves_listens_until_sealed_and_who_does_not_never() -> None:
    script = (
        TRY
        + """
seccomp.confine(serves={serves}, resolves=False)
def ways():
    return tried(socket.socket().bind, ("127.0.0.1", 0)), tried(socket.socket().listen)
before = ways()
seccomp.seal()
print(json.dumps([*before, *ways(), tried(seccomp.seal)]))
"""
    )
    again = f"no filter of system calls here: {REFUSED.lower()}"
    assert run(script.format(serves=True)) == ["done", "done", REFUSED, REFUSED, again]
    assert run(script.format(serves=False)) == [REFUSED] * 4 + [again]


def test_threads_that_run_already_are_held_too_and_new_ones_start() -> None:
    tried = run(f"""{TRY}
told, found = threading.Event(), []
def look():
    told.wait()
    found.append(tried(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW))
running = threading.Thread(target=look)
running.start()
seccomp.confine(serves=False, resolves=False)
told.set()
new = threading.Thread(target=look)
new.start()
running.join()
new.join()
print(json.dumps(found))
""")
    assert tried == [REFUSED] * 2


def test_calls_newer_than_the_list_are_unknown_as_on_an_older_kernel() -> None:
    errors = run("""if True:
        import ctypes, errno, json
        from fairwall.rpc import seccomp
        seccomp.confine(serves=False, resolves=False)
        library = ctypes.CDLL(None, use_errno=True)
        def failed(number):
            return library.syscall(number, 0, 0, 0, 0, 0) and errno.errorcode[ctypes.get_errno()]
        # clone3, io_uring_setup, the newest, the first that is newer, one of another table of the same processor
        print(json.dumps([failed(number) for number in (435, 425, seccomp._NEWEST, seccomp._NEWEST + 1, 1 << 30)]))
    """)
    assert errors == ["ENOSYS", "EPERM", "EPERM", "ENOSYS", "ENOSYS"]


def test_where_an_argument_decides_those_that_are_needed_pass_and_no_other() -> None:
    """Nothing is open under -1, so what passes fails for that; the interpreter's modules say what each number means."""
    passed = run("""if True:
        import ctypes, errno, json, os, socket
        from fairwall.rpc import seccomp
        library = ctypes.CDLL(None, use_errno=True)
        seccomp.confine(serves=False, resolves=False)
        def passes(call, *arguments):
            return call(*arguments) == 0 or ctypes.get_errno() != errno.EPERM
        print(json.dumps([
            [request for request in range(0x5400, 0x5480) if passes(library.ioctl, -1, request, None)],
            [command for command in range(2048) if passes(library.fcntl, -1, command, 0)],
            [level for level in range(64) if passes(library.setsockopt, -1, level, socket.IPV6_V6ONLY, None, 0)],
            [one for one in range(64) if passes(library.setsockopt, -1, socket.IPPROTO_TCP, one, None, 0)],
            [one for one in range(64) if passes(library.setsockopt, -1, socket.IPPROTO_IPV6, one, None, 0)],
            *([bit for bit in range(31) if passes(send, -1, *before, 1 << bit, None, 0)] for send, before in (
                (library.sendmsg, [None]), (library.sendto, [None, 0]), (library.sendmmsg, [None, 0]))),
            [passes(library.kill, process, 0) for process in (os.getpid(), os.getppid(), 0, -1)],
            [passes(library.sched_setaffinity, process, 0, None) for process in (os.getpid(), os.getppid(), 0, 1)],
            [passes(library.prlimit, process, -1, None, None) for process in (os.getpid(), os.getppid(), 0, 1)],
        ]))
    """)
    tcp = "NODELAY CORK KEEPIDLE KEEPINTVL KEEPCNT QUICKACK USER_TIMEOUT NOTSENT_LOWAT"
    descriptors = "DUPFD GETFD SETFD GETFL SETFL GETLK SETLK SETLKW OFD_GETLK OFD_SETLK OFD_SETLKW DUPFD_CLOEXEC"
    inquire = 36  # TCP_INQ, which Python has no name for
    assert passed == [
        sorted(
            getattr(termios, name) for name in ("TCGETS", "TIOCGWINSZ", "FIONREAD", "FIONBIO", "FIONCLEX", "FIOCLEX")
        ),
        sorted(getattr(fcntl, f"F_{name}") for name in (*descriptors.split(), "SETPIPE_SZ", "GETPIPE_SZ")),
        [socket.SOL_SOCKET, socket.IPPROTO_IPV6],
        sorted([*(getattr(socket, f"TCP_{name}") for name in tcp.split()), inquire]),
        [socket.IPV6_V6ONLY],
        *[[bit for bit in range(31) if bit != socket.MSG_FASTOPEN.bit_length() - 1]] * 3,
        [True, False, False, False],
        [True, False, True, False],
        [True, False, True, False],
    ]


@pytest.mark.skipif(ARM, reason="calls by the numbers of 32-bit x86")
@pytest.mark.parametrize("confined", [True, False])
def test_a_call_by_another_architecture_s_numbers_ends_the_process(confined: bool) -> None:
    # mov eax, 20 (getpid); int 0x80; ret
    script = f"""if True:
        import ctypes, mmap, os
        from fairwall.rpc import seccomp
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(bytes.fromhex("b814000000cd80c3"))
        call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
        if {confined}:
            seccomp.confine(serves=False, resolves=False)
        assert call() == os.getpid()
    """
    ended = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, check=False)
    if not confined and ended.returncode == -signal.SIGSEGV:
        pytest.skip("the kernel has no such calls")
    assert ended.returncode == (-signal.SIGSYS if confined else 0), ended.stderr


def test_where_there_is_no_list_there_is_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.uname", lambda: platform.uname()._replace(machine="riscv64"))
    with pytest.raises(OSError, match="no list of system calls for this interpreter on riscv64"):
        seccomp.confine(serves=False, resolves=False)


def test_where_the_kernel_has_no_filters_it_is_an_error_that_says_so() -> None:
    said = run(
        f"{TRY}\nprint(json.dumps(tried(lambda: seccomp.confine(serves=False, resolves=False))))",
        "-c",
        without(277 if ARM else 317),
    )
    assert said == "no filter of system calls here: function not implemented"
