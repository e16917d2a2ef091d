"""Plays every shipped scenario at its size for replays with two checkouts, and tells how their ``trials.jsonl`` differ.

python scripts/compare_revisions.py OLD NEW [--data lsac=FILE --data acs-coverage=FILE] [--only NAME]

OLD and NEW are checkouts that `make .venv/.installed-all` was run in. The scenarios and their ``replay`` tables are
OLD's. Times aside, a value is the same, the same but for the base model's scores, or different; for what is different
the script knows the reason or says that it knows none, and then ends with status 1.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

BASE_MODEL = 4e-4
"""How far figures may be apart for each 1 that they have: the base model is trained to its optimum now, and scores were
up to so far from it (measured on Adult, COMPAS and German Credit)."""

EXACT = ("exact", "round", "pass-fail")


def play(checkout: Path, name: str, settings: Mapping[str, Any], out: Path) -> list[dict[str, Any]] | str:
    """Play a scenario with a checkout's own interpreter; its trials, or the line that says why it is not played."""
    options = [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
    command = [str(checkout / ".venv/bin/fairwall"), "run", name, *options, "--json", "--out", str(out)]
    finished = subprocess.run(command, capture_output=True, text=True, cwd=checkout, check=False)  # noqa: S603
    if finished.returncode:
        return finished.stderr.strip().split("\n")[-1]
    trials: list[dict[str, Any]] = json.loads(finished.stdout)["trials"]
    return trials


def settings_of(scenario: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """Give what plays a scenario small, on a file of the user's where it needs one."""
    settings = dict(scenario["replay"])
    source = scenario.get("data", {}).get("source")  # some games make up their own
    return settings | ({"data.source": f"{source}:{files[source]}"} if source in files else {})


def differences(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Where two values differ, and by how much of the larger one; infinitely where they are no two numbers."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            yield from differences(one, other, path)
    elif isinstance(old, int | float) and isinstance(new, int | float) and not isinstance(old, bool):
        if old != new:
            yield path, abs(old - new) / max(1, abs(old), abs(new))
    elif old != new:
        yield path, math.inf


def reason(old: Mapping[str, Any], new: Mapping[str, Any], key: str) -> str:
    """Why a value of a trial is another one; empty where nothing explains it."""
    if old.get("mechanism") not in (*EXACT, None) and old.get("epsilon") != "inf":
        return "seeded noise is keyed by the request's id, which names its kind now"
    if old["game"] == "inference" and "fft" in str(new.get("defence")):
        return "fft-paper's split, units and rule are the scenario's"
    if key in ("answers_bound", "size_queries", "queries") and old.get("metric", "").startswith("eodds"):
        return "size queries are told by their ids"
    return ""


def compare(name: str, old: list[dict[str, Any]], new: list[dict[str, Any]]) -> bool:
    """Print what differs in a scenario; whether all of it is explained."""
    if len(old) != len(new):
        print(f"{name}: {len(old)} lines, now {len(new)}: NO REASON KNOWN")  # noqa: T201
        return False
    found: dict[tuple[str, str], float] = {}
    for one, other in zip(old, new, strict=True):
        for key, by in differences(one, other):
            if key != "seconds":
                why = "the base model is trained to its optimum" if by <= BASE_MODEL else reason(one, other, key)
                found[key, why] = max(found.get((key, why), 0.0), by)
    by_reason: dict[str, list[str]] = {}
    for (key, why), by in sorted(found.items()):
        by_reason.setdefault(why, []).append(key if math.isinf(by) else f"{key} ({by:.1g})")
    print(f"{name}: {len(new)} lines" + ("" if found else ", the same"))  # noqa: T201
    for why, keys in by_reason.items():
        print(f"    {why or 'NO REASON KNOWN'}: {', '.join(keys)}")  # noqa: T201
    return "" not in by_reason


def main() -> None:
    """Compare two checkouts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--data", action="append", default=[], metavar="SOURCE=FILE")
    parser.add_argument("--only", action="append", metavar="NAME")
    asked = parser.parse_args()
    files = dict(item.split("=", 1) for item in asked.data)
    explained = True
    with tempfile.TemporaryDirectory() as place:
        for path in sorted((asked.old / "sim/scenarios").glob("*.toml")):
            scenario = tomllib.loads(path.read_text(encoding="utf-8"))
            if asked.only and path.stem not in asked.only:
                continue
            settings = settings_of(scenario, files)
            # NEW plays OLD's file: what was added to a shipped scenario since is no difference.
            old = play(asked.old.resolve(), path.stem, settings, Path(place) / "old")
            new = play(asked.new.resolve(), str(path.resolve()), settings, Path(place) / "new")
            if isinstance(old, str) or isinstance(new, str):
                said = old if isinstance(old, str) else new
                print(f"{path.stem}: not played: {said}")  # noqa: T201
                explained &= isinstance(old, str) and isinstance(new, str)
                continue
            explained &= compare(path.stem, old, new)
    sys.exit(0 if explained else 1)


if __name__ == "__main__":
    main()
