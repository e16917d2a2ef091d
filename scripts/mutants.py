"""Changes the code in one place at a time, and tells which changes no test notices: a score for each module.

python scripts/mutants.py [--only TEXT] [--shard K/N] [--jobs N]

The mutants stand in ``scripts/mutants.toml``: a file, the text that is replaced, what stands there instead, and the
tests of which at least one must fail. Each is tried in a copy of the tree, with the interpreter that runs this. A
mutant may say why it survives; any other survivor, and one whose text is not in its file just once, ends this with
status 1. So does one that raises where it should do wrong: its tests are not collected, their fixtures break, or a name
is missing in it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

ROOT = Path(__file__).parent.parent
TESTS_FAILED = 1
"""How pytest ends where a test failed; any other status but 0 is a mistake in the list, such as a test's name."""
TIMED_OUT = 124
SECONDS_MAX = 300
"""How long a mutant's tests may take: one that takes longer is noticed too."""
RAISED = -1
MISSING = re.compile(r" - (NameError|UnboundLocalError|ImportError|ModuleNotFoundError|SyntaxError)\b")

T = TypeVar("T")


@dataclass(frozen=True)
class Mutant:
    """One change of the code.

    Parameters
    ----------
    module : str
        Under which name its score is counted.
    file, old, new : str
        Where, what is replaced, and by what.
    tests : tuple of str
        What pytest is given.
    survives : str
        Why no test can notice it; empty where one must.
    """

    module: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    survives: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.old.strip()!r} -> {self.new.strip()!r}"


def mutants(path: Path) -> list[Mutant]:
    """Read the list: a table of tests and of mutants for each module."""
    listed: list[Mutant] = []
    for module, table in tomllib.loads(path.read_text())["module"].items():
        for one in table["mutant"]:
            rest = {key: one[key] for key in ("old", "new", "survives") if key in one}
            tests = tuple(one.get("tests", table.get("tests", ())))
            listed.append(Mutant(module, one.get("file", table.get("file")), **rest, tests=tests))
    return listed


def copy_of_tree(place: Path) -> Path:
    """Copy what git knows, and what is new and not ignored, into an environment of its own over ours.

    Tests start parties and services isolated, without PYTHONPATH: they would import what is installed, not the copy.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    venv.create(place / ".venv", symlinks=True)
    (packages,) = (place / ".venv").glob("lib/python*/site-packages")
    # Of our own environment the folder alone, without its .pth files: one of them leads to ROOT. Bytecode is told apart
    # by its source's size and second, and a mutant may have both of the next one's.
    lines = ("import sys; sys.dont_write_bytecode = True", place, place / "proto", sysconfig.get_path("purelib"))
    (packages / "copy.pth").write_text("".join(f"{line}\n" for line in lines))
    return place


def run(
    tree: Path, tests: Iterable[str], seconds: float | None = None, options: Sequence[str] = ("-x",), **names: str
) -> tuple[int, str]:
    """Run tests on a copy of the tree, with options and names in its environment; how pytest ended, its last line.

    A failure is told from an error: the status is `RAISED` where no test fails, or a name is missing in what it calls.
    """
    options = ("-q", "-p", "no:cacheprovider", "-m", "not slow", *options)
    command = [str(tree / ".venv/bin/python"), "-m", "pytest", *options, *tests]
    try:
        ended = subprocess.run(  # noqa: S603
            command, cwd=tree, env=os.environ | names, capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return TIMED_OUT, "took too long"
    lines = (ended.stdout + ended.stderr).strip().split("\n")
    if ended.returncode != TESTS_FAILED:
        return ended.returncode, lines[-1]
    failed = [line for line in lines if line.startswith("FAILED ")]
    if failed and not all(MISSING.search(line) for line in failed):
        return TESTS_FAILED, lines[-1]
    if "-x" in options:  # a later test may fail
        return run(tree, tests, seconds, [option for option in options if option != "-x"], **names)
    return RAISED, next((line for line in lines if line.startswith(("FAILED ", "ERROR "))), lines[-1])


def part(listed: Sequence[T], shard: str) -> Sequence[T]:
    """Take the K-th of N parts of a list, of places that are next to one another: what is alike stays together."""
    place, number = map(int, shard.split("/"))
    if not 1 <= place <= number:
        raise ValueError(f"{shard}: which shard of how many, such as 3/12")
    return listed[len(listed) * (place - 1) // number : len(listed) * place // number]


def try_out(mutant: Mutant, tree: Path) -> str:
    """Say how a mutant fared: killed, survived, or why it could not be tried."""
    file = tree / mutant.file
    whole = file.read_text()
    if (times := whole.count(mutant.old)) != 1:
        return f"stale: its text is there {times} times"
    file.write_text(whole.replace(mutant.old, mutant.new))
    try:
        status, last = run(tree, mutant.tests, SECONDS_MAX)
    finally:
        file.write_text(whole)
    if status == RAISED:
        return f"raises: {last}"
    if status not in (0, TESTS_FAILED, TIMED_OUT):
        return f"not tried: {last}"
    return "killed" if status else "survived"


def main() -> int:
    """Try every mutant, print the scores, and end with 1 if one was neither killed nor excused."""
    parser = argparse.ArgumentParser(description="Try the mutants of scripts/mutants.toml.")
    parser.add_argument("--only", default="", help="those whose module, file or text holds this")
    parser.add_argument("--shard", default="1/1", metavar="K/N", help="the K-th of N parts of them")
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args()
    listed = [mutant for mutant in mutants(ROOT / "scripts/mutants.toml") if chosen.only in f"{mutant.module} {mutant}"]
    listed = part(listed, chosen.shard)
    trees: SimpleQueue[Path] = SimpleQueue()

    def fate(mutant: Mutant) -> str:
        tree = trees.get()
        try:
            return try_out(mutant, tree)
        finally:
            trees.put(tree)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(chosen.jobs) as threads:
        for job in range(chosen.jobs):
            trees.put(copy_of_tree(Path(folder, str(job))))
        sound, last = run(Path(folder, "0"), sorted({test for mutant in listed for test in mutant.tests}))
        if sound:
            print(f"the tests fail without any mutant: {last}", file=sys.stderr)  # noqa: T201
            return 2
        scores: defaultdict[str, list[bool]] = defaultdict(list)
        failed = False
        for mutant, fared in zip(listed, threads.map(fate, listed), strict=True):
            if not mutant.survives:
                scores[mutant.module].append(fared == "killed")
            expected = "survived" if mutant.survives else "killed"
            failed |= fared != expected
            if fared != "killed":
                print(f"{fared}: {mutant}" + f" ({mutant.survives})" * bool(mutant.survives), flush=True)  # noqa: T201
    for module, killed in scores.items():
        print(f"{module}: {sum(killed)} of {len(killed)} killed, {sum(killed) / len(killed):.0%}")  # noqa: T201
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
