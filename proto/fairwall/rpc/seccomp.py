"""A filter of system calls: a list of calls that a party may make; all others are refused.

The filter is a program for seccomp(2), written here and installed with ctypes: libseccomp's Python binding is no wheel,
and would make the system's package manager part of the installation.

A refused call fails with EPERM, and libraries that only tried go on. Two kinds of calls fail with ENOSYS, as on an
older kernel, for which every library is prepared: those newer than this list, and clone3, whose arguments lie in
memory, where a filter cannot look. A call under another architecture's numbers is no accident: it ends the process.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

_X86_64, _AARCH64 = 0, 1
_ARCHITECTURES = {"x86_64": (_X86_64, 0xC000003E), "aarch64": (_AARCH64, 0xC00000B7)}
"""The column below, and the architecture's name in linux/audit.h, by machine."""

_NEWEST = 470
"""The last call that existed when the list was made; from 424 on all architectures number them alike."""

_ALLOWED = """
its own memory:
    brk 12 214, mmap 9 222, munmap 11 215, mprotect 10 226, mremap 25 216, madvise 28 233, msync 26 227, mlock 149 228,
    mlock2 325 284, munlock 150 229, membarrier 324 283, mbind 237 235, get_mempolicy 239 236, set_mempolicy 238 237,
    mseal 462 462
its threads, and its end:
    set_tid_address 218 96, set_robust_list 273 99, rseq 334 293, futex 202 98, futex_waitv 449 449,
    futex_wake 454 454, futex_wait 455 455, futex_requeue 456 456, sched_yield 24 124, sched_getaffinity 204 123,
    sched_getparam 143 121, sched_getscheduler 145 120, sched_get_priority_max 146 125, sched_get_priority_min 147 126,
    getcpu 309 168, arch_prctl 158 -, restart_syscall 219 128, wait4 61 260, waitid 247 95, exit 60 93,
    exit_group 231 94
signals that it gets:
    rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139, rt_sigpending 127 136, rt_sigtimedwait 128 137,
    rt_sigsuspend 130 133, sigaltstack 131 132, pause 34 -
time:
    time 201 -, gettimeofday 96 169, clock_gettime 228 113, clock_getres 229 114, nanosleep 35 101,
    clock_nanosleep 230 115, alarm 37 -, getitimer 36 102, setitimer 38 103, timer_create 222 107,
    timer_settime 223 110, timer_gettime 224 108, timer_getoverrun 225 109, timer_delete 226 111,
    timerfd_create 283 85, timerfd_settime 286 86, timerfd_gettime 287 87
who and where it is:
    getpid 39 172, gettid 186 178, getppid 110 173, getpgrp 111 -, getpgid 121 155, getsid 124 156, getuid 102 174,
    geteuid 107 175, getgid 104 176, getegid 108 177, getresuid 118 148, getresgid 120 150, getgroups 115 158,
    uname 63 160, sysinfo 99 179, getrlimit 97 163, setrlimit 160 164, getrusage 98 165, times 100 153,
    getrandom 318 278
files by name, but for their owner, mode, times and attributes:
    open 2 -, openat 257 56, openat2 437 437, creat 85 -, access 21 -, faccessat 269 48, faccessat2 439 439, stat 4 -,
    lstat 6 -, newfstatat 262 79, statx 332 291, statfs 137 43, readlink 89 -, readlinkat 267 78, getcwd 79 17,
    chdir 80 49, mkdir 83 -, mkdirat 258 34, rmdir 84 -, unlink 87 -, unlinkat 263 35, rename 82 -, renameat 264 38,
    renameat2 316 276, truncate 76 45, umask 95 166
open files:
    close 3 57, close_range 436 436, dup 32 23, dup2 33 -, dup3 292 24, fstat 5 80, fstatfs 138 44, lseek 8 62,
    read 0 63, write 1 64, pread64 17 67, pwrite64 18 68, readv 19 65, writev 20 66, preadv 295 69, pwritev 296 70,
    getdents 78 -, getdents64 217 61, fchdir 81 50, ftruncate 77 46, fallocate 285 47, fsync 74 82, fdatasync 75 83,
    fadvise64 221 223, flock 73 32, readahead 187 213, sync_file_range 277 84, sendfile 40 71,
    copy_file_range 326 285, pipe 22 -, pipe2 293 59, eventfd 284 -, eventfd2 290 19
waiting for them:
    poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72, epoll_create 213 -, epoll_create1 291 20, epoll_ctl 233 21,
    epoll_wait 232 -, epoll_pwait 281 22, epoll_pwait2 441 441
connections:
    connect 42 203, accept 43 202, accept4 288 242, getsockname 51 204, getpeername 52 205, getsockopt 55 209,
    recvfrom 45 207, recvmsg 47 212, recvmmsg 299 243, shutdown 48 210
"""
"""Calls allowed with any arguments, by subject, each with its number on x86-64 and on ARM64."""

_LOOKED_AT = """
    socket 41 198, socketpair 53 199, sendto 44 206, sendmsg 46 211, sendmmsg 307 269, setsockopt 54 208, bind 49 200,
    listen 50 201, fcntl 72 25, ioctl 16 29, clone 56 220, clone3 435 435, kill 62 129, tgkill 234 131,
    prlimit64 302 261, sched_setaffinity 203 122, prctl 157 167, seccomp 317 277
"""
"""Calls whose arguments, or whose time, decide."""

# Arguments, from the headers of the kernel's interface.
_ANY = 0xFFFFFFFF
_UNIX, _INET, _INET6 = 1, 2, 10
_STREAM, _DATAGRAM, _OF_TYPE = 1, 2, 0xF
_TCP, _UDP = 6, 17
_MSG_FASTOPEN = 0x20000000
_SOL_SOCKET, _IPPROTO_IPV6, _IPV6_V6ONLY = 1, 41, 26
# No delay, keeping alive (4), patience, acknowledgements, the unsent or unread amounts. Not included: fast open,
# which connects by sending; and TCP_ULP, which makes another protocol's socket of one that is TCP's.
_TCP_OPTIONS = (1, 3, 4, 5, 6, 12, 18, 25, 36)
# Copies of descriptors, flags, locks, sizes of pipes. Not included: signal owners, leases, and watching a folder.
_FCNTLS = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1031, 1032)
# Whether it is a terminal, its size, whether calls wait, the amount to read, closing on exec. Not included: typing
# into the terminal.
_IOCTLS = (0x5401, 0x802C542A, 0x5413, 0x5421, 0x541B, 0x5450, 0x5451)
# Dumpable or not, the filter's state, the highest capabilities, a thread's name, no new privileges, ARM's keys for
# pointers, a mapping's name. Not included: being dumpable again.
_PRCTLS = (3, 15, 16, 21, 23, 38, 39, 54, 0x53564D41)
_CLONE_THREAD, _CLONE_NEW = 0x10000, 0x7E020000  # the latter: every kind of namespace

# A program's steps and its verdicts, by linux/filter.h and linux/seccomp.h.
_LOAD, _AND, _IS, _AT_LEAST, _ABOVE, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x25, 0x06
_AT_NUMBER, _AT_ARCHITECTURE, _AT_ARGUMENTS = 0, 4, 16
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_UNKNOWN = 0x00050000 | errno.ENOSYS
_SET_MODE_FILTER, _OF_ALL_THREADS = 1, 1
_PR_SET_NO_NEW_PRIVS = 38

_Step = tuple[int, int, int, int]
"""A step: its operation, the numbers of steps to skip if it holds and if not, and a constant."""


@dataclass(frozen=True)
class _Test:
    """A test that an argument's lower word, under a mask, is one of some values; the kernel reads no more of it."""

    argument: int
    values: Sequence[int]
    mask: int = _ANY


def confine(*, serves: bool, resolves: bool, local: bool = False) -> None:
    """Allow all threads of this process only the calls that a party needs, for good; OSError if no filter is possible.

    Parameters
    ----------
    serves : whether it may bind a socket and listen, until `seal`.
    resolves : whether it may have datagram sockets of the internet, which name resolution takes.
    local : whether it may connect to sockets with a file's name, such as a database's on the same machine.
    """
    column, architecture = _architecture()
    steps: list[_Step] = [
        (_LOAD, 0, 0, _AT_ARCHITECTURE),
        (_IS, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _AT_NUMBER),
    ]
    numbers = _numbers(_LOOKED_AT, column)
    for name, ways in _ways(serves=serves, resolves=resolves, local=local).items():
        block = [*(step for tests in ways for step in _if_all(tests)), (_RETURN, 0, 0, _REFUSE)]
        steps += [(_IS, 0, len(block), numbers[name]), *block]
    for first, last in _ranges(_numbers(_ALLOWED, column).values()):
        steps += [(_AT_LEAST, 0, 2, first), (_ABOVE, 1, 0, last), (_RETURN, 0, 0, _ALLOW)]
    steps += [(_IS, 0, 1, numbers["clone3"]), (_RETURN, 0, 0, _UNKNOWN)]
    steps += [(_AT_LEAST, 0, 1, _NEWEST + 1), (_RETURN, 0, 0, _UNKNOWN), (_RETURN, 0, 0, _REFUSE)]
    _install(steps, numbers["seccomp"])


def seal() -> None:
    """Forbid binding sockets, further listening, and adding filters, from now on; OSError if it cannot be done.

    Until then a server may listen on any port: a filter does not see whether a socket was bound before.
    """
    numbers = _numbers(_LOOKED_AT, _architecture()[0])
    steps: list[_Step] = [(_LOAD, 0, 0, _AT_NUMBER)]
    for name in ("bind", "listen", "seccomp"):
        steps += [(_IS, 0, 1, numbers[name]), (_RETURN, 0, 0, _REFUSE)]
    _install([*steps, (_RETURN, 0, 0, _ALLOW)], numbers["seccomp"])


def _ways(*, serves: bool, resolves: bool, local: bool) -> dict[str, list[list[_Test]]]:
    """Return the ways in which a call is allowed, by name: each is a list of tests that must all hold."""
    own = os.getpid()
    internet = _Test(0, (_INET, _INET6))
    sockets = [[internet, _Test(1, (_STREAM,), _OF_TYPE), _Test(2, (0, _TCP))]]
    if resolves:
        sockets.append([internet, _Test(1, (_DATAGRAM,), _OF_TYPE), _Test(2, (0, _UDP))])
    if local:
        sockets.append([_Test(0, (_UNIX,)), _Test(1, (_STREAM,), _OF_TYPE)])
    return {
        "sendmsg": [[_Test(2, (0,), _MSG_FASTOPEN)]],
        "sendto": [[_Test(3, (0,), _MSG_FASTOPEN)]],
        "sendmmsg": [[_Test(3, (0,), _MSG_FASTOPEN)]],
        "ioctl": [[_Test(1, _IOCTLS)]],
        "fcntl": [[_Test(1, _FCNTLS)]],
        "socket": sockets,
        # Not for datagrams: such a pair still reaches any socket that has a name.
        "socketpair": [[_Test(0, (_UNIX,)), _Test(1, (_STREAM,), _OF_TYPE)]],
        "setsockopt": [
            [_Test(1, (_SOL_SOCKET,))],
            [_Test(1, (_TCP,)), _Test(2, _TCP_OPTIONS)],
            [_Test(1, (_IPPROTO_IPV6,)), _Test(2, (_IPV6_V6ONLY,))],
        ],
        "bind": [[]] if serves else [],
        "listen": [[]] if serves else [],
        "clone": [[_Test(0, (_CLONE_THREAD,), _CLONE_THREAD | _CLONE_NEW)]],
        "kill": [[_Test(0, (own,))]],
        "tgkill": [[_Test(0, (own,))]],
        "prlimit64": [[_Test(0, (0, own))]],
        "sched_setaffinity": [[_Test(0, (0, own))]],
        "prctl": [[_Test(0, _PRCTLS)]],
        "seccomp": [[_Test(0, (_SET_MODE_FILTER,))]],
    }


def _if_all(tests: Iterable[_Test]) -> list[_Step]:
    """Return the steps that allow a call if all tests hold, and otherwise run out at their end."""
    steps: list[_Step] = [(_RETURN, 0, 0, _ALLOW)]
    for test in reversed(list(tests)):
        *others, last = test.values
        found: list[_Step] = [(_IS, len(others) - at, 0, value) for at, value in enumerate(others)]
        masked: list[_Step] = [] if test.mask == _ANY else [(_AND, 0, 0, test.mask)]
        load = (_LOAD, 0, 0, _AT_ARGUMENTS + 8 * test.argument)  # both architectures put the lower word first
        steps = [load, *masked, *found, (_IS, 0, len(steps), last), *steps]
    return steps


def _ranges(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each range of consecutive numbers."""
    for _, pairs in groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in pairs]
        yield run[0], run[-1]


def _numbers(calls: str, column: int) -> dict[str, int]:
    """Return the numbers of a list of calls; calls that an architecture lacks are left out."""
    rows = re.findall(r"(\w+) (\d+) (\d+|-)(?:,|$)", calls, re.MULTILINE)
    return {name: int(numbers[column]) for name, *numbers in rows if numbers[column] != "-"}


def _architecture() -> tuple[int, int]:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "only Linux has it")
    machine = os.uname().machine
    if machine not in _ARCHITECTURES or sys.byteorder != "little" or sys.maxsize < 2**32:
        raise OSError(errno.ENOSYS, f"no list of system calls for this interpreter on {machine}")
    return _ARCHITECTURES[machine]


def _install(steps: Sequence[_Step], seccomp: int) -> None:
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(program)))
    libc = library()
    failed = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    failed = failed or libc.syscall(seccomp, _SET_MODE_FILTER, _OF_ALL_THREADS, header)
    if failed > 0:
        raise OSError(errno.ESRCH, f"thread {failed} stays free")
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, f"no filter of system calls here: {os.strerror(number).lower()}")


@cache
def library() -> ctypes.CDLL:
    """Return the C library, loaded so that its calls set an error."""
    return ctypes.CDLL(None, use_errno=True)
