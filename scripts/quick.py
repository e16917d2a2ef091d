"""Runs the tests that concern files, as far as `make test` runs them.

python scripts/quick.py FILE [FILE ...]

A module's tests are those that import it and those that `scripts/mutants.toml` names for it; where there are none,
those of the modules that import it, and so on upwards. Any other file's are those that name it, or else its folder.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("compliance", "developer", "adversary", "sim", "proto/fairwall", "tests", "scripts", "benchmarks")


def module(path: Path) -> str:
    """Name a file's module as it is imported: ``proto/fairwall/rpc/chunks.py`` is fairwall.rpc.chunks."""
    parts = path.relative_to(ROOT / "proto" if path.is_relative_to(ROOT / "proto") else ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> set[str]:
    """Name all that a file imports, at any depth: modules, and names in modules."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def concerning(path: Path, importing: dict[Path, set[str]]) -> set[Path]:
    """Find the files of tests that concern a file.

    Parameters
    ----------
    path : Path
    importing : dict of Path to set of str
        What each Python file imports.
    """
    if path.name.startswith("test_"):
        return {path}
    if path.suffix != ".py":
        texts = {one: one.read_text() for one in importing if one.name.startswith("test_")}
        naming = {test for test, text in texts.items() if path.name in text or f'"{path.stem}"' in text}
        return naming or {test for test, text in texts.items() if f'"{path.parent.name}"' in text}
    tables = tomllib.loads((ROOT / "scripts/mutants.toml").read_text())["module"].values()
    named = str(path.relative_to(ROOT))
    own = [
        (table, mutant)
        for table in tables
        for mutant in table["mutant"]
        if mutant.get("file", table.get("file")) == named
    ]
    found = {
        ROOT / test.partition("::")[0] for table, mutant in own for test in mutant.get("tests", table.get("tests", ()))
    }
    seen, level = {path}, {path}
    while level:
        names = {module(one) for one in level}
        level = {one for one, imported in importing.items() if imported & names} - seen
        seen |= level
        tests = {one for one in level if one.is_relative_to(ROOT / "tests")}
        found |= {one for one in tests if one.name.startswith("test_")}
        # What tests share counts as a test itself: those that import it are still looked for.
        level = {one for one in tests if not one.name.startswith("test_")} if found else level
    return found | ({ROOT / "tests/unit/test_mutants.py"} if own else set())  # which change the file's text


def main() -> None:
    """Find the tests of the files that are given, and run them."""
    files = [Path(word).resolve() for word in sys.argv[1:]]
    missing = [word for word, path in zip(sys.argv[1:], files, strict=True) if not path.is_file()]
    if missing or not files:
        sys.exit(f"no such file: {missing[0]}" if missing else "which FILE? make quick compliance/deployment/serve.py")
    sources = [
        path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if "node_modules" not in path.parts
    ]
    importing = {path: imports(path) for path in sources}
    tests = sorted({str(test.relative_to(ROOT)) for path in files for test in concerning(path, importing)})
    if not tests:
        sys.exit(f"no test concerns {' '.join(sys.argv[1:])}")
    print(*tests, sep="\n")  # noqa: T201
    status = subprocess.run([sys.executable, "-m", "pytest", "-n", "2", *tests], cwd=ROOT).returncode  # noqa: S603
    print(f"quick: {'nothing failed' if status == 0 else 'FAILED'}, {len(tests)} files of tests")  # noqa: T201
    sys.exit(status)


if __name__ == "__main__":
    main()
