"""Draws mutants of the code by rule, tells which no test notices, and scores each module by them.

python scripts/drawn_mutants.py [--module NAME] [--shard K/N] [--jobs N] [--number N]

``scripts/mutants.toml`` lists defects that somebody thought of; these nobody chose. Each changes one operator, number,
truth value, check or call. Which of all are tried is a matter of a digest of the place and of the change, so that the
choice stays the same when other lines change. ``scripts/drawn_mutants.toml`` says which files a module has, and which
tests, those of `make test`; and why a mutant that survives may. Any other survivor is printed; the status is 1 where a
module's score is below its `least`, by more than one mutant where a shard has part of them. One that raises before any
test fails is not counted.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from mutants import RAISED, ROOT, TESTS_FAILED, TIMED_OUT, copy_of_tree, part, run

SIGNS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
}  # fmt: skip
"""Each operator's sign, and the one that is put in its place."""
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}
TIMES_AS_LONG = 2
"""How many times as long as without any mutant, and a minute more, the tests may take on one."""
INTERRUPTED, NO_TESTS = 2, 5
"""How pytest ends where tests cannot be collected, and where it is left with none."""
OPTIONS = ("-m", "not slow and not check", "-p", "scripts.called")
SAYS_ONLY = ("LOG.", "logging.", "warnings.")
"""Calls whose loss changes no more than what people read."""


@dataclass(frozen=True)
class Change:
    """One change of one file.

    Parameters
    ----------
    file : str
    start, end : int
        The bytes that are replaced.
    new : str
        What stands in their place.
    line, changed : str
        The line that they stand in, before and after, stripped.
    function : str
        In which function it stands, to find it again.
    """

    file: str
    start: int
    end: int
    new: str
    line: str
    changed: str
    function: str

    def __str__(self) -> str:
        return f"{self.file} {self.function}: {self.line!r} -> {self.changed!r}"

    @property
    def rank(self) -> bytes:
        """Order changes at random, and always alike."""
        return hashlib.sha256(str(self).encode()).digest()


@dataclass(frozen=True)
class Called:
    """A test, how many seconds it takes, which functions it calls, and whether it starts a process."""

    test: str
    seconds: float
    calls: frozenset[str]
    starts: bool

    @property
    def file(self) -> str:
        """Where it stands."""
        return self.test.partition("::")[0]


class _Finder(ast.NodeVisitor):
    """Finds every place of a module that a rule changes."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file = file
        self.source = source
        self.lines = source.splitlines(keepends=True)
        self.offsets = [0]
        for line in self.lines:
            self.offsets.append(self.offsets[-1] + len(line))
        self.function: list[str] = []
        self.found: list[Change] = []

    def _start(self, node: ast.AST) -> int:
        return self.offsets[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]

    def _end(self, node: ast.AST) -> int:
        return self.offsets[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def _change(self, start: int, end: int, new: str) -> None:
        first = self.source.rfind(b"\n", 0, start) + 1
        last = self.source.find(b"\n", end)
        line = self.source[first:last].decode()
        changed = (self.source[first:start] + new.encode() + self.source[end:last]).decode()
        self.found.append(
            Change(self.file, start, end, new, line.strip(), changed.strip(), ".".join(self.function) or "module")
        )

    def _between(self, left: ast.AST, operator: ast.AST, right: ast.AST) -> None:
        old, new = SIGNS[type(operator)]
        start, end = self._end(left), self._start(right)
        place = self.source.find(old.encode(), start, end)
        if place >= 0:
            self._change(place, place + len(old), new)

    def _named(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.function.append(node.name)
        defaults = [] if isinstance(node, ast.ClassDef) else [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        for each in [*defaults, *node.body]:
            self.visit(each)
        self.function.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _named  # noqa: N815 - decorators, types: not visited

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Leave types alone."""
        if node.value is not None and "TypeAlias" not in ast.unparse(node.annotation):
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        """Leave what only a type checker runs alone."""
        if ast.unparse(node.test) not in ("TYPE_CHECKING", "__name__ == '__main__'"):
            self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave out a call that is made for what it does."""
        if isinstance(node.value, ast.Call):
            if ast.unparse(node.value).startswith(SAYS_ONLY):
                return
            self._change(self._start(node), self._end(node), "pass")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Leave out a refusal; what it says is looked at by people."""
        self._change(self._start(node), self._end(node), "pass")

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave alone what states what was checked before."""

    def visit_Call(self, node: ast.Call) -> None:
        """Put the opposite function, and look at what it is given, but whether `zip` is strict: lengths agree."""
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in ("cast", "TypeVar", "NewType"):
            return
        node.keywords = [keyword for keyword in node.keywords if keyword.arg != "strict"]
        if name in NAMES:
            end = self._end(node.func)
            self._change(end - len(name), end, NAMES[name])
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Move a bound by one, or turn a question round."""
        operands = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
            self._between(left, operator, right)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Compute something else."""
        if type(node.op) in SIGNS and not _is_text(node.left) and not _is_text(node.right):
            self._between(node.left, node.op, node.right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Ask for one of two where both are needed, or the other way about."""
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(left, node.op, right)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Leave out a sign or a not."""
        if isinstance(node.op, ast.Not | ast.USub):
            self._change(self._start(node), self._start(node.operand), "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Take another number, or the other truth value."""
        match node.value:
            case bool():
                new = str(not node.value)
            case int():
                new = str(node.value + 1)
            case float():
                new = repr(node.value * 1.1 if node.value else 1.0)
            case _:
                return
        self._change(self._start(node), self._end(node), new)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave what people read alone."""


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def changes(path: Path) -> Iterator[Change]:
    """Find every change of a file that still compiles."""
    source = path.read_bytes()
    finder = _Finder(str(path.relative_to(ROOT)), source)
    finder.visit(ast.parse(source))
    for change in finder.found:
        try:
            compile(source[: change.start] + change.new.encode() + source[change.end :], change.file, "exec")
        except SyntaxError:
            continue
        yield change


def drawn(paths: set[Path]) -> dict[str, Change]:
    """Draw changes of a module's files, all of its places alike: all of them, in the order in which they are tried."""
    unlike = {str(change): change for path in sorted(paths) for change in changes(path)}
    return dict(sorted(unlike.items(), key=lambda item: item[1].rank))


def tests_in(tree: Path, patterns: list[str]) -> dict[str, Path]:
    """List a module's tests by what pytest is given, in the order of the list, each with its file."""
    tests: dict[str, Path] = {}
    for pattern in patterns:
        path, *name = pattern.split("::")
        for found in sorted(tree.glob(path)):
            for file in sorted(found.rglob("test_*.py")) if found.is_dir() else [found]:
                tests["::".join([str(file.relative_to(tree)), *name])] = file
    return tests


def calls_of(tree: Path, tests: dict[str, Path]) -> list[Called]:
    """Run a module's tests without a mutant; what each calls. Raises RuntimeError where one fails."""
    told = tree / "called"
    told.unlink(missing_ok=True)
    status, last = run(tree, tests, None, OPTIONS, CALLED=str(told))
    if status:
        raise RuntimeError(f"the tests fail without any mutant: {last}")
    lines = map(json.loads, told.read_text().splitlines())
    return [Called(each["test"], each["seconds"], frozenset(each["calls"]), each["starts"]) for each in lines]


def parts_of(change: Change, called: list[Called], tests: dict[str, Path]) -> Iterator[list[Called]]:
    """Part tests by how soon they tell: those that call what is changed, and those of which nobody sees what they call.

    What a module or a class does when it is loaded any test may notice: those first whose file names the module.
    """
    changed = Path(change.file.removeprefix("proto/")).with_suffix("")
    named = ".".join(changed.parts).removesuffix(".__init__")
    near = {
        test.partition("::")[0]
        for test, file in tests.items()
        if named in file.read_text() or changed.name in file.stem
    }
    last = change.function.rpartition(".")[2].lstrip("_")
    loaded, place = last == "module" or last[:1].isupper(), f"{change.file} {change.function}"
    first = [each for each in called if (each.file in near if loaded else place in each.calls) and not each.starts]
    yield first
    yield [each for each in called if each.starts or (loaded and each.file not in near)]


def try_out(change: Change, tree: Path, called: list[Called], tests: dict[str, Path]) -> str:
    """Say how a mutant fared: killed, survived, or raises."""
    file, chosen = tree / change.file, tree / "chosen"
    whole = file.read_bytes()
    file.write_bytes(whole[: change.start] + change.new.encode() + whole[change.end :])
    try:
        for those in filter(None, parts_of(change, called, tests)):
            seconds = dict[str, float]()
            for each in those:
                seconds[each.file] = seconds.get(each.file, 0.0) + each.seconds
            chosen.write_text("\n".join(each.test for each in sorted(those, key=lambda each: seconds[each.file])))
            limit = 60 + TIMES_AS_LONG * sum(seconds.values())
            status, last = run(tree, seconds, limit, ("-x", *OPTIONS), CHOSEN=str(chosen))
            if status in (TESTS_FAILED, TIMED_OUT):
                return "killed"
            if status in (RAISED, INTERRUPTED):
                return "raises"
            if status not in (0, NO_TESTS):
                raise RuntimeError(f"{change}: not tried: {last}")
    finally:
        file.write_bytes(whole)
    return "survived"


def main() -> int:
    """Draw mutants of each module, try them, and print the scores."""
    parser = argparse.ArgumentParser(description="Draw mutants of the code and try them.")
    parser.add_argument("--module", default="", help="this module alone")
    parser.add_argument("--shard", default="1/1", metavar="K/N", help="the K-th of N parts of all")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--number", type=int, help="how many of each module, instead of what the list says")
    chosen = parser.parse_args()
    listed = tomllib.loads((ROOT / "scripts/drawn_mutants.toml").read_text())
    trees: SimpleQueue[Path] = SimpleQueue()
    failed = False
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(chosen.jobs) as threads:
        for job in range(chosen.jobs):
            trees.put(copy_of_tree(Path(folder, str(job))))
        modules = {name: module for name, module in listed["module"].items() if chosen.module in ("", name)}
        numbers = {name: chosen.number or module["number"] for name, module in modules.items()}
        here = part([(name, number) for name in modules for number in range(numbers[name])], chosen.shard)
        counted_before: set[Path] = set()
        for name, module in listed["module"].items():
            paths = {path for pattern in module["files"] for path in ROOT.glob(pattern)} - counted_before
            counted_before |= paths
            asked = [number for its, number in here if its == name]
            if not asked:
                continue
            whole = drawn(paths)
            of_module = [change for number, change in enumerate(whole.values()) if number in asked]
            excused = {one["mutant"]: one["why"] for one in module.get("survives", ())}
            for gone in excused.keys() - whole.keys():
                print(f"stale: no such change any more: {gone}", flush=True)  # noqa: T201
                failed = True
            tests = tests_in(Path(folder, "0"), module["tests"])
            shares = [dict(share) for job in range(chosen.jobs) if (share := list(tests.items())[job :: chosen.jobs])]
            copies = [Path(folder, str(job)) for job in range(len(shares))]
            try:
                called = [each for found in threads.map(calls_of, copies, shares) for each in found]
            except RuntimeError as error:
                print(f"{name}: {error}", file=sys.stderr)  # noqa: T201
                return 2

            def fate(change: Change, tests: dict[str, Path] = tests, called: list[Called] = called) -> str:
                tree = trees.get()
                try:
                    return try_out(change, tree, called, tests)
                finally:
                    trees.put(tree)

            killed = counted = 0
            fates = enumerate(zip(of_module, threads.map(fate, of_module), strict=True), start=1)
            for number, (change, fared) in fates:
                print(f"{name}: {number} of {len(of_module)}: {fared}", file=sys.stderr, flush=True)  # noqa: T201
                why = excused.get(str(change), "")
                killed += fared == "killed"
                counted += fared == "killed" or (fared == "survived" and not why)
                if fared == "survived":
                    print(f"survived: {change}" + f" ({why})" * bool(why), flush=True)  # noqa: T201
            print(f"{name}: {killed} of {counted} killed, {killed / (counted or 1):.0%}", flush=True)  # noqa: T201
            is_part = len(asked) < numbers[name]
            failed |= counted - killed > (1 - module["least"]) * counted + is_part
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
