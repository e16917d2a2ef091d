"""Plug-ins: strategies, mechanisms and more by other authors, found by name and run where they belong.

A package declares plug-ins as entry points, in a group for each of `KINDS` with the prefix "fairwall.". A file given by
``--plugin`` has a table for each kind, in capitals: ``STRATEGIES = {"mine": ...}``. Both are listed without running
their code; the code runs when a scenario names the plug-in, no earlier:

* A party runs its plug-ins in its own confined process. The party's configuration lists the plug-ins, with the text of
  files, which the party may not read.
* Other processes use a stand-in for what only a party runs: code of the developer's side never runs in the referee's
  process, which knows every card. Mechanisms, metrics, data sets and games, which the referee needs, run there.

A plug-in's error is reported in one line: the plug-in, the line of its code, and the error. The text of a mechanism's
error is withheld, because a mechanism sees protected attributes.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from fairwall.errors import UserError

if TYPE_CHECKING:
    import ast
    import importlib.metadata

KINDS = ("strategies", "decoders", "attacks", "defences", "mechanisms", "laws", "metrics", "datasets", "games")
"""The kinds of plug-ins."""

OF_PARTIES = ("strategies", "decoders", "attacks", "defences")
"""The kinds that run only in parties' processes."""

SECONDS = 300.0
"""Default limit on one call of a plug-in, in seconds."""

_PARTIES = frozenset({"compliance", "developer", "adversary", "sim"})
"""Packages that some processes may not read."""

STATUS = 4
"""Exit status of a party that a plug-in ended."""

_RECORD = ("kind", "name", "source", "digest")
_SHOWN = 200

T = TypeVar("T")


class PluginError(UserError):
    """A plug-in that is missing, ambiguous or misbehaving. Its text is one line."""


@dataclass(frozen=True)
class Plugin:
    """A plug-in by another author, not run yet.

    Parameters
    ----------
    kind, name : one of `KINDS`, and the name in scenarios and policies.
    source : the package with its version, or the file's name.
    digest : str
        SHA-256, in hexadecimal, of the file, or of all Python files of the package. Empty for a package without a
        record of its files, such as one installed with ``-e``: then the plug-in is refused.
    place : ``module:object``; empty for a file.
    text : the file's text.
    """

    kind: str
    name: str
    source: str
    digest: str
    place: str = ""
    text: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"plug-in {self.name} ({self.kind}, {self.source})"

    @property
    def record(self) -> dict[str, str]:
        """The plug-in's identity in results."""
        return {key: getattr(self, key) for key in _RECORD}

    def load(self) -> Any:
        """Import the plug-in's module, and return the object that it adds."""
        with self.watched("when it was imported"):
            if self.place:
                module, _, attribute = self.place.partition(":")
                return functools.reduce(getattr, attribute.split("."), importlib.import_module(module))
            table = self.kind.upper()
            return getattr(_of_text(self.source, self.digest, self.text, table), table)[self.name]

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function of the plug-in, with its errors reported as by `watched`."""
        with self.watched(f"in {getattr(function, '__name__', self.name)}"):
            return function(*arguments)

    def require(self, fits: object, what: str) -> None:
        """Fail with a message, as `fail` does, unless a condition holds."""
        if not fits:
            self.fail(what)

    def fail(self, what: str) -> NoReturn:
        """Raise `PluginError` with this message, or in a party's process print it and exit."""
        error = PluginError(f"{self}: {what}")
        if _here.party:
            _end(error)
        raise error from None

    @contextmanager
    def watched(self, when: str) -> Iterator[None]:
        """Run the body for the plug-in: report errors under its name, and end a party's process that overruns."""
        thread = threading.get_ident()
        timer = threading.Timer(_here.seconds, lambda: self._overran(when, thread))
        timer.daemon = True
        if _here.party:
            timer.start()
        try:
            yield
        except (PluginError, KeyboardInterrupt):
            raise
        except BaseException as error:  # SystemExit too
            if _is_others(error):
                raise
            import traceback

            at = self._line([frame for frame, _ in traceback.walk_tb(error.__traceback__)])
            if reason := _refused(error):
                self.fail(f"was refused {when}{at}: {reason}")
            said = "" if self.kind == "mechanisms" else " ".join(str(error).split())[:_SHOWN]
            self.fail(f"{type(error).__name__} {when}{at}{': ' if said else ''}{said}")
        finally:
            timer.cancel()

    def _overran(self, when: str, thread: int) -> None:
        frames: list[FrameType] = []
        frame = sys._current_frames().get(thread)  # the only way to see what another thread runs
        while frame is not None:
            frames.insert(0, frame)
            frame = frame.f_back
        _end(PluginError(f"{self}: took longer than {_here.seconds:g} s {when}{self._line(frames)}"))

    def _line(self, frames: Sequence[FrameType]) -> str:
        """Return the file and line of the innermost frame in the plug-in's code; frames end with the innermost."""
        package = self.place.partition(":")[0].partition(".")[0]
        for frame in reversed(frames):
            name = str(frame.f_globals.get("__name__", ""))
            if name == _module_name(self.digest) or (package and name.partition(".")[0] == package):
                return f", {Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        return ""


@dataclass
class _Here:
    """The plug-ins available to this process; a party's process may use no installed ones."""

    given: tuple[Plugin, ...] = ()
    party: bool = False
    seconds: float = SECONDS
    used: dict[tuple[str, str], Plugin] = field(default_factory=dict)


_here = _Here()
_tables: list[Registry[Any]] = []


class Registry(dict[str, T]):
    """A table of our objects by name, and of plug-ins of one kind, looked up only for names that are not ours.

    Iteration yields our names, and those of plug-ins that were looked up.

    Parameters
    ----------
    adapt : makes an entry like ours of a plug-in and the object that it adds, with checks of its results.
    stand_in : makes an entry by name for processes that do not run the plug-in.
    also : another kind, whose plug-ins get a stand-in here.
    """

    def __init__(
        self,
        kind: str,
        ours: dict[str, T],
        adapt: Callable[[Plugin, Any], T] = lambda _, thing: thing,
        stand_in: Callable[[str], T] | None = None,
        also: str = "",
    ) -> None:
        super().__init__(ours)
        self.kind, self._adapt, self._stand_in, self._also = kind, adapt, stand_in, also
        self._ours, self._theirs = frozenset(ours), set[str]()
        _tables.append(self)
        self.renew()

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and self._find(name) is not None)

    def __missing__(self, name: str) -> T:
        plugin = self._find(name)
        if plugin is None:
            raise KeyError(name)
        if self._stand_in is not None and (plugin.kind != self.kind or (self.is_elsewhere and not _here.party)):
            self[name] = self._stand_in(name)
        else:
            self[name] = self._adapt(plugin, plugin.load())
        self._theirs.add(name)
        return self[name]

    @property
    def is_elsewhere(self) -> bool:
        """Whether plug-ins of this kind run only in parties' processes, see `OF_PARTIES`."""
        return self._stand_in is not None and not self._also

    def known(self) -> list[str]:
        """Return all names, plug-ins' last."""
        return [*dict.fromkeys([*self, *names(self.kind)])]

    def has_of_others(self, name: str) -> bool:
        """Return whether a name is a plug-in's."""
        return name in self._theirs or (not super().__contains__(name) and name in self)

    def _find(self, name: str) -> Plugin | None:
        return find(self.kind, name) or (find(self._also, name) if self._also else None)

    def renew(self) -> None:
        """Forget the plug-ins that were looked up; `PluginError` if a given plug-in has a name of ours."""
        for name in self._theirs:
            del self[name]
        self._theirs.clear()
        for plugin in _here.given:
            if plugin.kind == self.kind and plugin.name in self._ours:
                raise PluginError(f"{plugin}: its name is one of ours; give it another")


def find(kind: str, name: str) -> Plugin | None:
    """Return the plug-in with this name, and mark it as used; `PluginError` if there are two, or it has no digest."""
    there = [*_here.given, *(() if _here.party else installed())]
    found = [plugin for plugin in there if (plugin.kind, plugin.name) == (kind, name)]
    if len(found) > 1:
        raise PluginError(f"{found[0]}: {found[1].source} has one of that name too; only one of them may be there")
    for plugin in found:
        if not plugin.digest:
            raise PluginError(f"{plugin}: nothing records what its code is: install it, and not with -e")
        _here.used[kind, name] = plugin
    return found[0] if found else None


def names(kind: str) -> list[str]:
    """Return the names of the available plug-ins of one kind."""
    there = [*_here.given, *(() if _here.party else installed())]
    return [plugin.name for plugin in there if plugin.kind == kind]


def in_use(names: Sequence[str] | set[str]) -> list[Plugin]:
    """Return the plug-ins with these names that were used."""
    return [plugin for plugin in _here.used.values() if plugin.name in names]


def offer(files: Sequence[Path] = (), others: Sequence[Plugin] = ()) -> None:
    """Offer files' plug-ins, and further ones, to this process besides installed ones, in place of earlier offers."""
    _here.given, _here.used = (*(plugin for file in files for plugin in _of_file(file)), *others), {}
    for table in _tables:
        table.renew()


def named_in(result: str | bytes) -> list[dict[str, str]]:
    """Return the records of the plug-ins in a ``result.json``; empty if it cannot be read."""
    try:
        told = json.loads(result).get("plugins", [])
    except (ValueError, AttributeError):
        return []
    return [each for each in told if isinstance(each, dict) and each.keys() == {*_RECORD}] if told else []


def recall(records: Sequence[Mapping[str, str]]) -> None:
    """Let this process read a run whose plug-ins of parties are not here; `PluginError` if another kind is missing."""
    if lacking := missing(records):
        raise PluginError(lacking)
    for record in records:
        if find(record["kind"], record["name"]) is None:
            _here.given += (Plugin(**record),)


def missing(records: Sequence[Mapping[str, str]]) -> str:
    """Return one line that names the plug-ins needed to read a run and missing here; empty if there are none."""
    needed = [each for each in records if each["kind"] not in OF_PARTIES and find(each["kind"], each["name"]) is None]
    return "; ".join(str(_missing(each)) for each in needed)


def require(records: Sequence[Mapping[str, str]]) -> None:
    """Raise `PluginError` if a recorded plug-in is missing here, or has changed."""
    for record in records:
        found = find(record["kind"], record["name"])
        if found is None or not (found.place or found.text):
            raise _missing(record)
        if found.digest != record["digest"]:
            raise PluginError(
                f"{found}: is not what was played: SHA-256 was {record['digest'][:12]}, now {found.digest[:12]}"
            )


def _missing(record: Mapping[str, str]) -> PluginError:
    was = Plugin(**record)
    return PluginError(f"{was}: was played, and is not here: install it, or give its file with --plugin")


def seat(plugins: str, seconds: str) -> None:
    """Restrict a party's process to the plug-ins in its configuration."""
    _here.given, _here.party = read(plugins), True
    _here.seconds = float(seconds or SECONDS)


def told(plugins: Sequence[Plugin]) -> str:
    """Return plug-ins as text for another process."""
    return json.dumps([asdict(plugin) for plugin in plugins]) if plugins else ""


def read(text: str) -> tuple[Plugin, ...]:
    """Parse the text of `told`."""
    return tuple(Plugin(**values) for values in json.loads(text or "[]"))


@functools.cache
def installed() -> tuple[Plugin, ...]:
    """Return the plug-ins of installed packages, without running any."""
    import importlib.metadata  # imported here and below, because most processes have no plug-ins

    return tuple(
        Plugin(
            kind, entry.name, f"{entry.dist.name} {entry.dist.version}", _digest(entry.dist, entry.module), entry.value
        )
        for kind in KINDS
        for entry in importlib.metadata.entry_points(group=f"fairwall.{kind}")
        if entry.dist is not None
    )


@functools.cache
def _digest(package: importlib.metadata.Distribution, module: str) -> str:
    digest, top = hashlib.sha256(), module.partition(".")[0]
    places = {path: Path(str(path.locate())) for path in sorted(package.files or ()) if path.suffix == ".py"}
    own = {path: place for path, place in places.items() if place.is_file()}
    if not any(path.parts[0].removesuffix(".py") == top for path in own):
        return ""
    for path, place in own.items():
        digest.update(f"{path}\0".encode())
        digest.update(place.read_bytes())
    return digest.hexdigest()


def _of_file(path: Path) -> Iterator[Plugin]:
    """Yield the plug-ins in a file's tables, without running the file."""
    import ast

    try:
        text = path.read_text(encoding="utf-8")
        body = ast.parse(text).body
    except OSError as error:
        raise PluginError(f"--plugin: {path}: cannot be read: {error.strerror}") from None
    except (SyntaxError, ValueError) as error:
        raise PluginError(f"--plugin: {path}: not Python: {error}") from None
    found = [
        (target.id.lower(), key.value)
        for statement in body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict)
        for target in statement.targets
        if isinstance(target, ast.Name) and target.id.isupper() and target.id.lower() in KINDS
        for key in statement.value.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    ]
    if not found:
        tables = ", ".join(kind.upper() for kind in KINDS)
        raise PluginError(f'--plugin: {path}: adds nothing: it has no {{"name": ...}} in a table {tables}')
    digest = hashlib.sha256(text.encode()).hexdigest()
    for kind, name in found:
        yield Plugin(kind, name, path.name, digest, text=text)


def _module_name(digest: str) -> str:
    return f"_fairwall_plugin_{digest[:16]}"


def _of_text(source: str, digest: str, text: str, table: str) -> ModuleType:
    """Return a file's module, after running each statement that the table needs, once."""
    import ast
    import linecache

    name, body = _module_name(digest), ast.parse(text).body
    module = sys.modules.setdefault(name, ModuleType(name))  # dataclasses look their module up there
    module.__file__ = source
    linecache.cache[source] = (len(text), None, text.splitlines(keepends=True), source)
    done = module.__dict__.setdefault("__done__", set[int]())
    try:
        for place in sorted(_to_run(body, table) - done):
            done.add(place)
            code = compile(ast.Module([body[place]], []), source, "exec")
            exec(code, module.__dict__)  # noqa: S102 - the purpose of a plug-in
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _to_run(body: Sequence[ast.stmt], table: str) -> set[int]:
    """Return the statements to run for a table: all but other tables' that need a party's code, which may be closed."""
    import ast

    bound, used, parties = list[set[str]](), list[set[str]](), set[str]()
    for statement in body:
        nodes = list(ast.walk(statement))
        named = [each for each in nodes if isinstance(each, ast.Name)]
        own = {each.id for each in named if isinstance(each.ctx, ast.Store)}
        own |= {each.arg for each in nodes if isinstance(each, ast.arg)}
        read = {each.id for each in named if isinstance(each.ctx, ast.Load)}
        if isinstance(statement, ast.Import | ast.ImportFrom):
            own = {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
            root = (getattr(statement, "module", "") or statement.names[0].name).partition(".")[0]
            parties |= own if root in _PARTIES else set()
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own, read = {statement.name}, read - own
        bound.append(own)
        used.append(read)
    needed, left_out, places = {table}, set[int](), range(len(body))
    while not (more := set[str]().union(*(used[at] for at in places if bound[at] & needed))) <= needed:
        needed |= more
    closed = parties - needed
    while more_out := {at for at in places if at not in left_out and (bound[at] | used[at]) & closed}:
        more_out -= {at for at in more_out if bound[at] & needed}
        if not more_out:
            break
        left_out |= more_out
        closed |= set[str]().union(*(bound[at] for at in more_out)) - needed
    return set(places) - left_out


def _refused(error: BaseException) -> str:
    """Return another party's reason for refusing a call; "" for any other error."""
    import grpc

    from fairwall.rpc.errors import reason_of
    from fairwall.wire.v1.error_pb2 import Reason

    reason = reason_of(error) if isinstance(error, grpc.RpcError) else 0
    return Reason.Name(reason) if reason else ""


def _is_others(error: BaseException) -> bool:
    """Return whether another party failed, not the plug-in: a call ended without a reason."""
    import grpc

    return isinstance(error, grpc.RpcError) and not _refused(error)


def _end(error: PluginError) -> NoReturn:
    logging.shutdown()
    print(error, file=sys.stderr, flush=True)  # noqa: T201
    os._exit(STATUS)
