"""Confinement of a party's process at its start: it gives up whatever its part does not need.

Each layer reports whether it is active, or the reason why not (docs/confinement.md). No layer depends on another,
except the ports: Landlock's rules do not hold them without the filter of system calls (`fairwall.rpc.seccomp`).

Holders of protected attributes (compliance, the referee) close their own memory. The developer and the adversary, who
must learn no protected attribute, lock themselves in with Landlock, which takes rights away from the calling thread,
and from all that the thread starts, for good. So it is called before there is a second thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import signal
import socket
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairwall.rpc import addresses, seccomp

OUTSIDERS = ("developer", "adversary")
"""Parties that must not learn the secrets of compliance and the referee."""

LAYERS = ("limits", "users", "no-capabilities", "landlock", "tcp-ports", "scope", "non-dumpable", "syscalls")
"""All layers."""

LANDLOCK = ("landlock", "tcp-ports", "scope")
"""The layers of Landlock."""

WALLS = (*LANDLOCK, "syscalls")
"""Layers whose absence is a warning: they hold back a hostile party."""

USERS = {"compliance": 65521, "developer": 65522, "adversary": 65523}
"""The user and group that a party becomes: numbers that systemd's table of users leaves unused."""

_OPEN_FILES = 4096

# prctl(2), capset(2), and the system calls of Landlock, whose numbers are the same on every architecture.
_PR_SET_PDEATHSIG, _PR_GET_DUMPABLE, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 3, 4, 38
_CAPABILITY_VERSION_3 = 0x20080522
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH, _NET_PORT = 1, 1, 2

# Landlock's rights to files, as bits of linux/landlock.h.
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_OF_FILES = 1 | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""Number of rights, by version of the interface; later versions have as many as the last."""

_TCP_SINCE, _SCOPES_SINCE = 4, 6

_READ = _READ_FILE | _READ_DIR
_OWN = _READ | _WRITE_FILE | _TRUNCATE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG
_BIND_TCP, _CONNECT_TCP = 1, 2
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2

# Files that an interpreter and its libraries read: shared objects, time zone, names, the machine, randomness.
_SYSTEM = (
    *("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"),
    *("/etc/localtime", "/usr/share/zoneinfo", "/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf"),
    *("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system/cpu"),
    *("/sys/devices/system/node", "/dev/urandom", "/dev/random", "/dev/zero"),
)


_LIBRARIES = ("site-packages", "dist-packages")
"""Names of folders of installed libraries, in any place."""


@dataclass(frozen=True)
class Layer:
    """One layer of a process's confinement: its name, whether it is active, and the reason if not."""

    name: str
    active: bool
    why_not: str = ""

    def __str__(self) -> str:
        return self.name if self.active else f"{self.name} ({self.why_not})"


class _Unavailable(Exception):
    """A layer that cannot be active here; the text is the reason."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"  # what packed means, said aloud
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _NetPort(ctypes.Structure):
    _fields_ = (("allowed", ctypes.c_uint64), ("port", ctypes.c_uint64))


def confine(
    party: str, *, listen: str = "", connects: Sequence[str] = (), folders: Sequence[Path] = ()
) -> tuple[Layer, ...]:
    """Give up the rights that a party of a game does not need; return its layers, each active or with a reason.

    The developer and the adversary are locked in; compliance locks others out. ValueError if an address has no port.

    Parameters
    ----------
    listen : the party's own address, "host:port"; "" if it serves nothing.
    connects : addresses of the servers that the party calls; "" for one not known yet, which leaves TCP open.
    folders : the party's own folders, to write in.
    """
    needed = (*map(Path, libraries()), *_packages(party))
    layers = [
        _layer("limits", _limit, _OPEN_FILES),
        _layer("users", _become, party, needed, folders),
        _layer("no-capabilities", _drop_capabilities, needed, folders),
    ]
    if party in OUTSIDERS:
        layers += _lock_in(party, listen, connects, folders)
    # After the users: a change of user opens the memory again.
    layers.append(_layer("non-dumpable", _close_memory))
    # Last, because it refuses the calls of the other layers.
    called = (listen, *connects) if listen else connects
    resolves = not all(_is_number(address) for address in called)
    layers.append(_layer("syscalls", seccomp.confine, serves=bool(listen), resolves=resolves))
    return _without_leaning(layers)


def deployed(
    *, listen: str, connects: Sequence[str], reads: Sequence[Path], folders: Sequence[Path], made: Sequence[Path] = ()
) -> tuple[Layer, ...]:
    """Give up the files and ports that compliance does not need in a deployment; return the layers.

    To be called while there is no other thread, so before data are read; `filtered` follows. The operator chooses the
    user, and the user's capabilities. ValueError for an address without a port.

    Parameters
    ----------
    listen, connects : the address to listen on, and those of telemetry, "host:port".
    reads : files to read, now or later; other files in their folders may be read too.
    made : folders that were just made, and may be removed while they are empty.
    """
    # Both as named and as resolved: a file that replaces a link is found by its name.
    beside = {parent for path in reads for parent in (path.parent, path.resolve().parent)}
    return *guard(), *_lock_in("compliance", listen, connects, folders, sorted(beside), made)


def filtered(
    layers: Sequence[Layer], *, listen: str, connects: Sequence[str], local: bool = False
) -> tuple[Layer, ...]:
    """Give up the system calls that compliance does not need in a deployment with an open ledger; return all layers.

    All existing threads are held too. ``local`` allows connections to sockets with a file's name.
    """
    resolves = not all(_is_number(address) for address in (listen, *connects))
    return _without_leaning([*layers, _layer("syscalls", seccomp.confine, serves=True, resolves=resolves, local=local)])


def seal(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Stop a ready party from listening on further sockets; return its layers."""
    if Layer("syscalls", True) not in layers:
        return tuple(layers)
    sealed = _layer("syscalls", seccomp.seal)
    return _without_leaning([sealed if layer.name == sealed.name else layer for layer in layers])


def guard() -> tuple[Layer, ...]:
    """Close the memory of a process that holds protected attributes and is run by their owner; return the layers."""
    return _layer("limits", _limit, None), _layer("non-dumpable", _close_memory)


def locked_in(party: str) -> tuple[Layer, ...]:
    """Give up every file but libraries and a party's code, and every connection: for pure computation."""
    return *guard(), *_lock_in(party, "", (), ())


def end_with_parent() -> None:
    """End this process, by SIGKILL, when the parent process has ended, if the system can."""
    if sys.platform == "linux":
        _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL)


def without_calls() -> Layer:
    """Give up the system calls of a process that serves nothing and calls nobody."""
    return _layer("syscalls", seccomp.confine, serves=False, resolves=False)


def describe(layers: Iterable[Layer]) -> str:
    """Return one line with the active layers, and the reasons for the others."""
    layers = tuple(layers)
    active = ", ".join(str(layer) for layer in layers if layer.active) or "nothing"
    missing = ", ".join(str(layer) for layer in layers if not layer.active)
    return f"confined by {active}" + (f"; not by {missing}" if missing else "")


def as_values(layers: Iterable[Layer]) -> list[dict[str, Any]]:
    """Return layers as plain values for JSON."""
    return [asdict(layer) for layer in layers]


def _without_leaning(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Report the ports as open if no filter refuses the sockets that Landlock's rules leave out."""
    if Layer("syscalls", True) in layers:
        return tuple(layers)
    open_ = Layer("tcp-ports", False, "Landlock's rules leave out Multipath TCP and fast open: no layer syscalls")
    return tuple(open_ if layer == Layer("tcp-ports", True) else layer for layer in layers)


def _layer(name: str, apply: Callable[..., None], *arguments: Any, **options: Any) -> Layer:
    try:
        apply(*arguments, **options)
    except _Unavailable as why:
        return Layer(name, False, str(why))
    except OSError as error:
        return Layer(name, False, (error.strerror or str(error)).lower())
    return Layer(name, True)


def _call(function: str, *arguments: Any) -> int:
    """Call a function of the C library; OSError for the error that it sets."""
    if sys.platform != "linux":  # where the same numbers may mean other calls
        raise _Unavailable("only Linux has it")
    result = int(getattr(seccomp.library(), function)(*arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def _limit(open_files: int | None) -> None:
    """Forbid core files, which hold a process's memory, and more open files than a party needs.

    Address space is not limited: numerical libraries reserve far more than they use. Nor are processes, which the
    system counts for a whole user.
    """
    try:
        import resource
    except ModuleNotFoundError:
        raise _Unavailable("this system has none") from None
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if open_files is not None:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most = open_files if most == resource.RLIM_INFINITY else min(most, open_files)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _close_memory() -> None:
    """Keep processes of the same user from this one's memory, environment and descriptors."""
    _call("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)
    if _call("prctl", _PR_GET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise _Unavailable("set, and not kept")


def _become(party: str, needed: Iterable[Path], folders: Sequence[Path]) -> None:
    """Become a user that owns nothing, if the superuser started this and that user can still read the program."""
    if sys.platform != "linux":
        raise _Unavailable("only done on Linux")
    if os.geteuid() != 0:
        raise _Unavailable("not started by the superuser")
    user = USERS[party]
    with contextlib.ExitStack() as undo:  # failures are undone: only the effective user changes
        groups = os.getgroups()
        os.setgroups([])
        undo.callback(os.setgroups, groups)
        os.setegid(user)
        undo.callback(os.setegid, 0)
        os.seteuid(user)
        undo.callback(os.seteuid, 0)
        # Folders are handed over only after the try: another session's party may be writing in them.
        closed = _closed([*((path, os.R_OK) for path in needed), *((folder.parent, 0) for folder in folders)])
        if closed is not None:
            raise _Unavailable(f"{closed} is closed to other users")
        os.seteuid(0)
        for folder in folders:
            before = folder.stat()
            os.chown(folder, user, user)
            undo.callback(os.chown, folder, before.st_uid, before.st_gid)
        undo.pop_all()
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _drop_capabilities(needed: Iterable[Path], folders: Sequence[Path]) -> None:
    """Give up every capability, for good, unless reading the program takes one.

    The superuser without capabilities still owns its files, but inspects no closed process and loads no kernel code.
    """
    _require_one_thread()
    held = (ctypes.c_uint32 * 6)()
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _call("capget", header, held)
    # Twice three words: effective, permitted, inheritable. The try drops only the effective ones, which can come back.
    _call("capset", header, (ctypes.c_uint32 * 6)(0, held[1], 0, 0, held[4], 0))
    both = os.R_OK | os.W_OK
    closed = _closed([*((path, os.R_OK) for path in needed), *((folder, both) for folder in folders)])
    if closed is not None:
        _call("capset", header, held)
        raise _Unavailable(f"{closed} belongs to another user")
    _call("capset", header, (ctypes.c_uint32 * 6)())
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _closed(needed: Iterable[tuple[Path, int]]) -> Path | None:
    """Return the first path that the process cannot use now in the path's mode (`os.R_OK`); None if all are usable."""
    for path, mode in needed:
        try:
            inside = os.X_OK if path.is_dir() else 0
            if path.exists() and not os.access(path, mode | inside, effective_ids=True):
                return path
        except PermissionError:  # something on the way is closed
            return path
    return None


def _require_one_thread() -> None:
    if sys.platform == "linux" and len(os.listdir("/proc/self/task")) > 1:
        raise _Unavailable("other threads run already, and would stay free")


def _lock_in(
    party: str,
    listen: str,
    connects: Sequence[str],
    folders: Sequence[Path],
    reads: Sequence[Path] = (),
    made: Sequence[Path] = (),
) -> Iterator[Layer]:
    """Restrict this process with Landlock, as far as the kernel's version goes, and yield the layers."""
    try:
        _require_one_thread()
        version = _call("syscall", _CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
        ports = _ports(listen, connects) if version >= _TCP_SINCE and all(connects) else None
        scoped = _ABSTRACT_SOCKETS | _SIGNALS if version >= _SCOPES_SINCE else 0
        _restrict(version, _grants(party, folders, reads, made), ports, scoped)
        # For scikit-learn's joblib, which would try shared memory, and warn.
        os.environ.setdefault("JOBLIB_MULTIPROCESSING", "0")
    except (_Unavailable, OSError) as error:
        why = str(error) if isinstance(error, _Unavailable) else f"no Landlock here: {str(error.strerror).lower()}"
        yield from (Layer(name, False, why) for name in LANDLOCK)
        return
    older = f"the kernel's Landlock, version {version}, has none"
    yield Layer("landlock", True)
    if ports is None:
        yield Layer("tcp-ports", False, older if version < _TCP_SINCE else "not told where a counterpart listens")
    else:
        yield Layer("tcp-ports", True)
    yield Layer("scope", True) if scoped else Layer("scope", False, older)


def _restrict(
    version: int, grants: Iterable[tuple[str, int]], ports: Iterable[tuple[int, int]] | None, scoped: int
) -> None:
    """Make a ruleset, and be held by it; a kernel accepts a structure longer than its own if the rest is zero."""
    handled = (1 << _RIGHTS[min(version, max(_RIGHTS))]) - 1
    attributes = _Ruleset(handled, 0 if ports is None else _BIND_TCP | _CONNECT_TCP, scoped)
    ruleset = _call("syscall", _CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(ctypes.sizeof(attributes)), 0)
    try:
        for path, rights in grants:
            _grant(ruleset, path, rights & handled)
        for port, right in ports or ():
            _call("syscall", _ADD_RULE, ruleset, _NET_PORT, ctypes.byref(_NetPort(right, port)), 0)
        _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _call("syscall", _RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _grant(ruleset: int, path: str, rights: int) -> None:
    """Allow rights on a path and below; a missing path needs none."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            rights &= _OF_FILES
        _call("syscall", _ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(_PathBeneath(rights, place)), 0)
    finally:
        os.close(place)


def _ports(listen: str, connects: Iterable[str]) -> list[tuple[int, int]]:
    """Return the port to listen on (0: any that the system chooses), and those to connect to, each with its right."""
    bound = [(_port(listen), _BIND_TCP)] if listen else []
    if listen and ("[" in listen or not _is_number(listen)):
        bound.append((0, _BIND_TCP))  # gRPC tests for IPv6 so; once the process is ready, it binds nothing
    return bound + [(_port(address), _CONNECT_TCP) for address in connects]


def _port(address: str) -> int:
    addresses.require(address)
    return int(address.rpartition(":")[2])


def _is_number(address: str) -> bool:
    """Return whether a "host:port" has a numeric host, which needs no name server."""
    host = address.rpartition(":")[0]
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host.strip("[]"))
    except OSError:
        return False
    return True


def _grants(
    party: str, folders: Sequence[Path], reads: Sequence[Path], made: Sequence[Path]
) -> Iterator[tuple[str, int]]:
    """Yield the paths that a party may use, with rights: no program to start, nor a checkout's root, even to list."""
    package, shared = _packages(party)
    withheld = _withheld(party)
    roots = {os.path.realpath(path) for path in (*_SYSTEM, *libraries())}
    if package.parent != shared.parent:  # a checkout, which may contain libraries' environment, or lie in one
        roots -= {str(package.parent), str(shared.parent)}
    for root in roots:
        if not any(_is_below(root, other) for other in roots if other != root):
            yield from _without(root, withheld)
    yield str(package), _READ
    yield str(shared), _READ
    yield "/dev/null", _READ | _WRITE_FILE | _TRUNCATE
    for folder in reads:
        yield str(folder), _READ
    for folder in folders:
        yield str(folder), _OWN
    for folder in made:
        yield str(folder.parent), _REMOVE_DIR


def _withheld(party: str) -> frozenset[str]:
    """Return the paths among the libraries that the party may not read."""
    package, shared = _packages(party)
    # Installed packages lie side by side; a checkout holds more than packages.
    found = set() if package.parent == shared.parent else {str(package.parent)}
    folders = {os.path.realpath(entry) for entry in sys.path if entry}
    for folder in folders:
        found |= {f"{folder}/{name}" for name in ("compliance", "developer", "adversary", "sim") if name != party}
        # The interpreter's libraries that a virtual environment leaves out.
        found |= {f"{folder}/site-packages"} - folders
    return frozenset(path for path in found if os.path.exists(path))


def _without(place: str, withheld: Collection[str]) -> Iterator[tuple[str, int]]:
    """Grant reading a folder except the withheld paths below: Landlock has no rules that forbid."""
    if place in withheld:
        return
    inside = [each for each in withheld if _is_below(each, place)]
    if not inside:
        yield place, _READ
        return
    yield place, _READ_DIR
    with os.scandir(place) as entries:
        # A link grants nothing by itself: its target must be granted.
        below = [entry.path for entry in entries if not entry.is_symlink()]
    for path in below:
        yield from _without(path, inside)


def _is_below(place: str, folder: str) -> bool:
    """Return whether a real path is a folder, or below it."""
    return place == folder or place.startswith(folder.rstrip("/") + "/")


def libraries() -> tuple[str, ...]:
    """Return the folders of the interpreter's and the installed libraries.

    Those that another environment's ``.pth`` file adds are recognised by name: other folders may hold anything.
    """
    prefixes = (sys.prefix, sys.base_prefix)
    entries = [
        entry
        for entry in sys.path
        if os.path.basename(entry) in _LIBRARIES or any(_is_below(entry, prefix) for prefix in prefixes)
    ]
    return *entries, os.path.join(sys.base_prefix, "lib")


def _packages(party: str) -> tuple[Path, Path]:
    """Return the folders of the party's package, and of the package that all parties share."""
    found = importlib.util.find_spec(party)
    assert found is not None
    assert found.origin is not None, "a party's package has an __init__"
    return Path(found.origin).resolve().parent, Path(__file__).resolve().parents[1]
