"""What a party's process gives up at its start: whatever its part does not need.

Every layer is the operating system's, and each says whether it is active and if not, why. None leans on another, but
for the ports, which Landlock's rules alone do not hold: they take the filter of system calls.
docs/confinement.md tells what each stops and what it does not.

Whoever holds protected attributes (compliance, the referee) closes its own memory. Every party of a game asks the
kernel only for what stands on a list (`fairwall.rpc.seccomp`). The developer and the adversary, who must learn no
protected attribute, lock themselves in besides, with Landlock: a kernel interface for any process, that takes rights
away from the calling thread and whatever that starts, for good. So it is called before there is a second thread.
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
"""The parties that must not learn what compliance and the referee hold."""

LAYERS = ("limits", "users", "no-capabilities", "landlock", "tcp-ports", "scope", "non-dumpable", "syscalls")
"""Every layer there is."""

LANDLOCK = ("landlock", "tcp-ports", "scope")
"""The layers of Landlock."""

WALLS = (*LANDLOCK, "syscalls")
"""The layers whose absence is a warning: they hold back a party that is hostile."""

USERS = {"compliance": 65521, "developer": 65522, "adversary": 65523}
"""The user and group that a party becomes: numbers that systemd's table of users leaves unused."""

_OPEN_FILES = 4096

# prctl(2), capset(2), and the system calls of Landlock, whose numbers are the same on every architecture.
_PR_SET_PDEATHSIG, _PR_GET_DUMPABLE, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 3, 4, 38
_CAPABILITY_VERSION_3 = 0x20080522
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH, _NET_PORT = 1, 1, 2

# Landlock's rights to files, each the bit that linux/landlock.h gives it.
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_OF_FILES = 1 | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many of the rights there are, by version of the interface; later versions have as many as the last."""

_TCP_SINCE, _SCOPES_SINCE = 4, 6

_READ = _READ_FILE | _READ_DIR
_OWN = _READ | _WRITE_FILE | _TRUNCATE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG
_BIND_TCP, _CONNECT_TCP = 1, 2
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2

# What an interpreter and its libraries read: shared objects, the clock's zone, names, what the machine is, randomness.
_SYSTEM = (
    *("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"),
    *("/etc/localtime", "/usr/share/zoneinfo", "/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf"),
    *("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system/cpu"),
    *("/sys/devices/system/node", "/dev/urandom", "/dev/random", "/dev/zero"),
)


_LIBRARIES = ("site-packages", "dist-packages")
"""What a folder of installed libraries is called, wherever it is."""


@dataclass(frozen=True)
class Layer:
    """One layer of a process's confinement: its name, whether it is active, and if not, why."""

    name: str
    active: bool
    why_not: str = ""

    def __str__(self) -> str:
        return self.name if self.active else f"{self.name} ({self.why_not})"


class _Unavailable(Exception):
    """A layer that cannot be active here; the text says why."""


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
    """Give up what a party of a game does not need; what cannot be given up here is left, and said.

    The developer and the adversary are locked in, compliance locks others out. Returned are the layers that such a
    party has, active or not. ValueError if an address has no port.

    Parameters
    ----------
    listen : where the party listens, "host:port"; "" if it does not.
    connects : sequence of str
        Where the servers listen that the party calls; "" among them if one is not known yet, which leaves TCP open.
    folders : the party's own, to write in.
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
    # The last: it refuses what the others do.
    called = (listen, *connects) if listen else connects
    resolves = not all(_is_number(address) for address in called)
    layers.append(_layer("syscalls", seccomp.confine, serves=bool(listen), resolves=resolves))
    return _without_leaning(layers)


def deployed(
    *, listen: str, connects: Sequence[str], reads: Sequence[Path], folders: Sequence[Path], made: Sequence[Path] = ()
) -> tuple[Layer, ...]:
    """Give up the files and ports that compliance does not need in a deployment; what cannot be is left, and said.

    To be called while there is no other thread, so before data are read; `filtered` follows. Which user it is, its
    operator decides, and what capabilities that has.

    Parameters
    ----------
    listen, connects : str, sequence of str
        Where it is to listen, and where it sends telemetry, "host:port": ValueError for an address without a port.
    reads : files that it reads, also later on; those beside them may be read too.
    folders : where it writes.
    made : folders that it was just given, and may take away again while they are empty.
    """
    # As they are named, and where links lead: a file that replaces one is found by its name.
    beside = {parent for path in reads for parent in (path.parent, path.resolve().parent)}
    return *guard(), *_lock_in("compliance", listen, connects, folders, sorted(beside), made)


def filtered(
    layers: Sequence[Layer], *, listen: str, connects: Sequence[str], local: bool = False
) -> tuple[Layer, ...]:
    """Give up the system calls that compliance does not need in a deployment once its ledger is open; all its layers.

    Whatever threads it has by then are held too. It is `local` if it connects to a socket that has a file's name.
    """
    resolves = not all(_is_number(address) for address in (listen, *connects))
    return _without_leaning([*layers, _layer("syscalls", seccomp.confine, serves=True, resolves=resolves, local=local)])


def seal(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Let a party that is ready listen nowhere but where it does; its layers, as they are from now on."""
    if Layer("syscalls", True) not in layers:
        return tuple(layers)
    sealed = _layer("syscalls", seccomp.seal)
    return _without_leaning([sealed if layer.name == sealed.name else layer for layer in layers])


def guard() -> tuple[Layer, ...]:
    """Close the memory of a process that holds protected attributes and is run by whoever owns them.

    So are the referee's, and compliance's in a deployment, which gives up more once it knows what it needs.
    """
    return _layer("limits", _limit, None), _layer("non-dumpable", _close_memory)


def locked_in(party: str) -> tuple[Layer, ...]:
    """Give up every file but libraries and a party's code, and every connection: for what only computes."""
    return *guard(), *_lock_in(party, "", (), ())


def end_with_parent() -> None:
    """End this process, by SIGKILL, as soon as the one that started it has ended, where the system can do that."""
    if sys.platform == "linux":
        _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL)


def without_calls() -> Layer:
    """Give up the system calls of who serves nothing and asks nobody."""
    return _layer("syscalls", seccomp.confine, serves=False, resolves=False)


def describe(layers: Iterable[Layer]) -> str:
    """Say in one line which layers are active, and why others are not."""
    layers = tuple(layers)
    active = ", ".join(str(layer) for layer in layers if layer.active) or "nothing"
    missing = ", ".join(str(layer) for layer in layers if not layer.active)
    return f"confined by {active}" + (f"; not by {missing}" if missing else "")


def as_values(layers: Iterable[Layer]) -> list[dict[str, Any]]:
    """Give layers as plain values, as JSON holds them."""
    return [asdict(layer) for layer in layers]


def _without_leaning(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Do not claim the ports where nothing refuses the sockets that Landlock's rules leave out."""
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
    """Call a function of the C library; raise OSError for the error that it sets."""
    if sys.platform != "linux":  # where the same numbers may mean other calls
        raise _Unavailable("only Linux has it")
    result = int(getattr(seccomp.library(), function)(*arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def _limit(open_files: int | None) -> None:
    """Forbid core files, which hold a process's memory, and more open files than a party needs.

    Address space is not limited: numerical libraries reserve far more of it than they use. Nor are processes: the
    system counts those of a user, whatever started them.
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
    with contextlib.ExitStack() as undo:  # what fails is undone: only the effective user changes
        groups = os.getgroups()
        os.setgroups([])
        undo.callback(os.setgroups, groups)
        os.setegid(user)
        undo.callback(os.setegid, 0)
        os.seteuid(user)
        undo.callback(os.seteuid, 0)
        # Folders change hands after the try alone: another session's party may be writing in them.
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
    """Give up every capability, for good, unless it takes one to read the program.

    The superuser without them still owns its files, but looks into no closed process and loads nothing into the kernel.
    """
    _require_one_thread()
    held = (ctypes.c_uint32 * 6)()
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _call("capget", header, held)
    # Twice three words: effective, permitted, inheritable. For a try the effective ones alone go: those come back.
    _call("capset", header, (ctypes.c_uint32 * 6)(0, held[1], 0, 0, held[4], 0))
    both = os.R_OK | os.W_OK
    closed = _closed([*((path, os.R_OK) for path in needed), *((folder, both) for folder in folders)])
    if closed is not None:
        _call("capset", header, held)
        raise _Unavailable(f"{closed} belongs to another user")
    _call("capset", header, (ctypes.c_uint32 * 6)())
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _closed(needed: Iterable[tuple[Path, int]]) -> Path | None:
    """Find something needed, and for what (`os.R_OK`), that this process, as it now is, cannot use."""
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
    """Restrict this process with Landlock, as far as the kernel knows it."""
    try:
        _require_one_thread()
        version = _call("syscall", _CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
        ports = _ports(listen, connects) if version >= _TCP_SINCE and all(connects) else None
        scoped = _ABSTRACT_SOCKETS | _SIGNALS if version >= _SCOPES_SINCE else 0
        _restrict(version, _grants(party, folders, reads, made), ports, scoped)
        # Which scikit-learn loads, and which would try for shared memory, and warn.
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
    """Make a ruleset, and be held by it from now on.

    A kernel takes a longer structure than its own as long as what it does not know is zero.
    """
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
    """Allow rights on a path and what is below it; what is not there needs no right."""
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
    """List the port to listen on (0: any that the system chooses), and those to connect to, each with its right."""
    bound = [(_port(listen), _BIND_TCP)] if listen else []
    if listen and ("[" in listen or not _is_number(listen)):
        bound.append((0, _BIND_TCP))  # gRPC tries so whether there is IPv6; once the process is ready, it binds nothing
    return bound + [(_port(address), _CONNECT_TCP) for address in connects]


def _port(address: str) -> int:
    addresses.require(address)
    return int(address.rpartition(":")[2])


def _is_number(address: str) -> bool:
    """Whether a "host:port" names its host by a number, so that nobody need be asked where it is."""
    host = address.rpartition(":")[0]
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host.strip("[]"))
    except OSError:
        return False
    return True


def _grants(
    party: str, folders: Sequence[Path], reads: Sequence[Path], made: Sequence[Path]
) -> Iterator[tuple[str, int]]:
    """List what a party may touch: nothing of it lets it start a program.

    A checkout's root is not among it, not even to be listed: the party's own package is found before.
    """
    package, shared = _packages(party)
    withheld = _withheld(party)
    roots = {os.path.realpath(path) for path in (*_SYSTEM, *libraries())}
    if package.parent != shared.parent:  # a checkout, which may hold an environment with libraries, or lie in one
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
    """Find what lies among the libraries, or might, and is not the party's to read."""
    package, shared = _packages(party)
    # Installed, all packages lie beside one another; a checkout holds more than packages.
    found = set() if package.parent == shared.parent else {str(package.parent)}
    folders = {os.path.realpath(entry) for entry in sys.path if entry}
    for folder in folders:
        found |= {f"{folder}/{name}" for name in ("compliance", "developer", "adversary", "sim") if name != party}
        # Libraries of the interpreter that a virtual environment leaves out.
        found |= {f"{folder}/site-packages"} - folders
    return frozenset(path for path in found if os.path.exists(path))


def _without(place: str, withheld: Collection[str]) -> Iterator[tuple[str, int]]:
    """Grant reading a folder, but for what is withheld below it: there are no rules that forbid."""
    if place in withheld:
        return
    inside = [each for each in withheld if _is_below(each, place)]
    if not inside:
        yield place, _READ
        return
    yield place, _READ_DIR
    with os.scandir(place) as entries:
        # A link grants nothing by itself: where it leads must be granted there.
        below = [entry.path for entry in entries if not entry.is_symlink()]
    for path in below:
        yield from _without(path, inside)


def _is_below(place: str, folder: str) -> bool:
    """Whether a real path is a folder's, or the folder itself."""
    return place == folder or place.startswith(folder.rstrip("/") + "/")


def libraries() -> tuple[str, ...]:
    """Name the folders of the interpreter's own libraries and of the installed ones.

    An environment may have those of another one too, by a line of a ``.pth`` file. They are told by their name: another
    folder of the path may hold anything.
    """
    prefixes = (sys.prefix, sys.base_prefix)
    entries = [
        entry
        for entry in sys.path
        if os.path.basename(entry) in _LIBRARIES or any(_is_below(entry, prefix) for prefix in prefixes)
    ]
    return *entries, os.path.join(sys.base_prefix, "lib")


def _packages(party: str) -> tuple[Path, Path]:
    """Find the party's package, and the one that all share."""
    found = importlib.util.find_spec(party)
    assert found is not None
    assert found.origin is not None, "a party's package has an __init__"
    return Path(found.origin).resolve().parent, Path(__file__).resolve().parents[1]
