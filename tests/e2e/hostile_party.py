"""What a hostile developer or adversary would try, from inside its own process; run by tests/e2e/test_confine.py.

``python -I hostile_party.py TARGETS < CONFIGURATION``: confines itself as a party does, by reading its configuration,
or not at all if there is none; announces itself, as a party does, and prints what became of each attempt, by who holds
it: "done", or the error's name.
"""

import base64
import ctypes
import errno
import fcntl
import json
import os
import platform
import resource
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairwall.rpc import process

LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE, PIDFD_SEND_SIGNAL, PIDFD_GETFD, IO_URING_SETUP = 0x4206, 424, 438, 425
MPTCP, TCP_FASTOPEN_CONNECT, TCP_ULP, PR_SET_DUMPABLE, F_NOTIFY, FIOSETOWN = 262, 30, 31, 4, 1026, 0x8901
AT_FDCWD, USER_KEYRING, IPC_PRIVATE, IPC_CREAT, FAN_REPORT_FID, BPF_MAP = -100, -4, 0, 0o1600, 0x200, (2, 4, 4, 1)
NUMBERS = {
    "x86_64": {"add_key": 248, "bpf": 321, "ioprio_set": 251, "kcmp": 312, "keyctl": 250, "perf": 298, "fault": 323},
    "aarch64": {"add_key": 217, "bpf": 280, "ioprio_set": 30, "kcmp": 272, "keyctl": 219, "perf": 241, "fault": 282},
}[platform.machine()]
"""Calls that the C library has no function for."""

Attempts = list[tuple[str, Callable[[], Any]]]


def main() -> None:
    targets = json.loads(sys.argv[1])
    layers = process.start(targets["party"], "-")[1] if targets["confined"] else ()
    port = targets["bind"]["its own port"]
    own = {
        "listen on its own port": outcome(lambda: listen(port)),
        "listen anywhere before it is ready": outcome(lambda: socket.socket().listen()),
    }
    process.announce(f"127.0.0.1:{port}", layers)
    held = {
        "own": own_attempts(targets),
        "landlock": attempts(targets),
        "syscalls": sockets(targets) + calls(targets),
        "privileged": privileged(targets),
    }
    outcomes = {holder: {name: outcome(attempt) for name, attempt in some} for holder, some in held.items()}
    outcomes["own"] |= own
    print(json.dumps(outcomes), flush=True)  # noqa: T201


def outcome(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "done"


def own_attempts(targets: dict[str, Any]) -> Attempts:
    """What it must be able to do."""
    return [
        ("read its own package", lambda: Path(targets["package"]).read_bytes()),
        ("connect to its counterpart", lambda: connect(socket.AF_INET, ("127.0.0.1", targets["counterpart"]))),
        ("write its own folder", lambda: create(f"{targets['folder']}/own-{os.getpid()}")),
        ("make folders in it", lambda: make_folder(f"{targets['folder']}/folder-{os.getpid()}")),
    ]


def attempts(targets: dict[str, Any]) -> Attempts:
    """What Landlock holds, alone."""
    found: Attempts = []
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
    found.append(("listen on another port", lambda: listen(targets["bind"]["another port"])))
    found.append(("abstract socket", lambda: connect(socket.AF_UNIX, "\0" + targets["abstract"])))
    found.append(("start a program", lambda: start(targets["program"])))
    found.append(("start a program with a library of its own", lambda: start(targets["program"], LD_PRELOAD="own.so")))
    found.append(("start an interpreter", lambda: start(sys.executable)))
    return found


def sockets(targets: dict[str, Any]) -> Attempts:
    """What the filter of system calls alone holds: sockets that Landlock's rules leave out."""
    stranger = ("127.0.0.1", targets["connect"]["a stranger"])
    return [
        ("Multipath TCP to a stranger", lambda: connect(socket.AF_INET, stranger, MPTCP)),
        ("Multipath TCP over IPv6", lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM, MPTCP).close()),
        ("fast open to a stranger", lambda: socket.socket().sendto(b"x", socket.MSG_FASTOPEN, stranger)),
        ("fast open of a message", lambda: socket.socket().sendmsg([b"x"], [], socket.MSG_FASTOPEN, stranger)),
        ("fast open by connecting", lambda: socket.socket().setsockopt(socket.SOL_TCP, TCP_FASTOPEN_CONNECT, 1)),
        ("another protocol in TCP's place", lambda: socket.socket().setsockopt(socket.SOL_TCP, TCP_ULP, b"smc")),
        ("listen without an address", lambda: socket.socket().listen()),
        ("listen by Multipath TCP", lambda: listen(0, socket.socket(proto=MPTCP))),
        ("listen again once it is ready", lambda: listen(targets["bind"]["its own port"])),
        ("a datagram", lambda: datagram(socket.AF_INET, ("127.0.0.1", targets["datagrams"]["port"]))),
        ("a Unix socket", lambda: connect(socket.AF_UNIX, targets["datagrams"]["stream"])),
        ("a Unix datagram", lambda: datagram(socket.AF_UNIX, targets["datagrams"]["path"])),
        ("a Unix datagram of a pair", lambda: datagram_of_a_pair(targets["datagrams"]["path"])),
        ("a netlink socket", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()),
        ("a socket of the host's", lambda: socket.socket(socket.AF_VSOCK).close()),
    ]


def calls(targets: dict[str, Any]) -> Attempts:
    """What the filter of system calls alone holds, besides sockets; to a process, only what leaves it as it is."""
    found: Attempts = []
    for name, pid in targets["processes"].items():
        found += [
            (f"limit {name}", lambda pid=pid: limit(pid)),
            (f"slow down {name}", lambda pid=pid: os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(0, pid))),
            (f"move {name}", lambda pid=pid: os.sched_setaffinity(pid, os.sched_getaffinity(pid))),
            (f"schedule {name}", lambda pid=pid: schedule(pid)),
            (f"delay what {name} writes", lambda pid=pid: number("ioprio_set", 1, pid, 0)),
            (f"signal a thread of {name}", lambda pid=pid: call(LIBC.tgkill, pid, pid, 0)),
            (f"hold {name}", lambda pid=pid: os.close(os.pidfd_open(pid))),
        ]
    folder = targets["folder"]
    found += [
        ("watch compliance's transcript", lambda: watch(targets["read"]["compliance's transcript"])),
        ("watch a folder by a signal", lambda: notify(folder)),
        ("watch a file system", lambda: os.close(call(LIBC.fanotify_init, FAN_REPORT_FID, 0))),
        ("signal by a socket", lambda: owned(targets["processes"]["the referee"])),
        ("shared memory", lambda: shared(LIBC.shmget, LIBC.shmctl, 4096)),
        ("shared semaphores", lambda: shared(LIBC.semget, LIBC.semctl, 1)),
        ("shared messages", lambda: call(LIBC.msgctl, call(LIBC.msgget, IPC_PRIVATE, IPC_CREAT), 0, None)),
        ("a named queue", lambda: queue(targets["queue"].encode())),
        ("the user's keys", lambda: number("keyctl", 0, USER_KEYRING, 1)),
        ("a key for others", add_key),
        ("a file in memory", lambda: os.close(os.memfd_create("own"))),
        ("a program in memory", lambda: start_from_memory(base64.b64decode(targets["true"]))),
        ("another process", fork),
        ("calls through a ring", lambda: os.close(number(IO_URING_SETUP, 1, ctypes.create_string_buffer(256)))),
        ("faults of its own", lambda: os.close(number("fault", 1))),
        ("counters of the machine", counters),
        ("compare descriptors", lambda: number("kcmp", os.getpid(), os.getpid(), 0, 0, 0)),
        ("another personality", lambda: call(LIBC.personality, 0)),
        ("namespaces", lambda: call(LIBC.unshare, 0)),
        ("a file's mode", lambda: os.chmod(folder, 0o700)),
        ("a file's owner", lambda: os.chown(folder, -1, -1)),
        ("a file's times", lambda: os.utime(folder)),
        ("a file's attributes", lambda: os.listxattr(folder)),
        ("memory that others may read", lambda: call(LIBC.prctl, PR_SET_DUMPABLE, 1, 0, 0, 0)),
    ]
    return found


def privileged(targets: dict[str, Any]) -> Attempts:
    """What else the filter holds of what takes a superuser."""
    packets = (socket.SOCK_RAW, socket.htons(3))
    return [
        ("every packet", lambda: socket.socket(socket.AF_PACKET, *packets).close()),
        ("packets of its own", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 6).close()),
        ("a part of the kernel", lambda: os.close(number("bpf", 0, (ctypes.c_uint32 * 18)(*BPF_MAP), 72))),
        ("a namespace of mounts", lambda: call(LIBC.unshare, 0x20000)),
        ("mount", lambda: call(LIBC.mount, b"none", targets["folder"].encode(), b"tmpfs", 0, None)),
        ("unmount", lambda: call(LIBC.umount2, targets["folder"].encode(), 2)),
        ("another root", lambda: os.chroot("/")),
    ]


def call(function: Any, *arguments: Any) -> int:
    result = int(function(*arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def number(which: str | int, *arguments: Any) -> int:
    """Make a call by its number; an address or a size is a word long."""
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return call(LIBC.syscall, NUMBERS[which] if isinstance(which, str) else which, *words)


def limit(pid: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_CPU, resource.prlimit(pid, resource.RLIMIT_CPU))


def schedule(pid: int) -> None:
    os.sched_setscheduler(pid, os.sched_getscheduler(pid), os.sched_getparam(pid))


def watch(path: str) -> None:
    watcher = call(LIBC.inotify_init)
    try:
        call(LIBC.inotify_add_watch, watcher, path.encode(), 2)
    finally:
        os.close(watcher)


def notify(folder: str) -> None:
    place = os.open(folder, os.O_RDONLY)
    try:
        fcntl.fcntl(place, F_NOTIFY, 0)
    finally:
        os.close(place)


def owned(pid: int) -> None:
    """Let another process be told by a signal what arrives; nothing does."""
    with socket.socket() as mine:
        fcntl.ioctl(mine, FIOSETOWN, struct.pack("i", pid))


def shared(get: Any, control: Any, size: int) -> None:
    place = call(get, IPC_PRIVATE, size, IPC_CREAT)
    call(control, place, 0, 0, None)


def queue(name: bytes) -> None:
    """Make a queue, which may then be closed to it: whoever named it takes it away."""
    os.close(call(LIBC.mq_open, name, os.O_CREAT | os.O_RDWR, 0o600, None))


def add_key() -> None:
    key = number("add_key", b"user", b"fairwall", b"x", 1, USER_KEYRING)
    number("keyctl", 9, key, USER_KEYRING)


def counters() -> None:
    """Count this process's own time, which any machine can."""
    asked = ctypes.create_string_buffer(struct.pack("IIQ", 1, 112, 1), 112)
    asked[40] = 0x60  # not the kernel's, nor the hypervisor's
    os.close(number("perf", asked, 0, -1, -1, 0))


def datagram(family: int, address: Any) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as mine:
        mine.sendto(b"x", address)


def datagram_of_a_pair(path: str) -> None:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, other:
        one.sendto(b"x", path)


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


def make_folder(path: str) -> None:
    os.mkdir(path)
    os.rmdir(path)


def connect(family: int, address: Any, protocol: int = 0) -> None:
    with socket.socket(family, proto=protocol) as mine:
        mine.settimeout(5)
        mine.connect(address)


def listen(port: int, mine: socket.socket | None = None) -> None:
    with mine or socket.socket() as mine:
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        mine.bind(("127.0.0.1", port))
        mine.listen()


def fork() -> None:
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)


def start_from_memory(program: bytes) -> None:
    place = os.memfd_create("program", 0)
    try:
        os.write(place, program)
        start(f"/proc/self/fd/{place}")
    finally:
        os.close(place)


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
