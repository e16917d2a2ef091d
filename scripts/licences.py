"""What licences the packages of an SBOM declare, and whether all of them are allowed.

    python scripts/licences.py SBOM ALLOWED

prints a line for each package of a CycloneDX file. Status 1, and a line on stderr for each, where a package declares no
licence, or one that the TOML file `ALLOWED` does not name.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def declared(component: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the licences that a component of an SBOM declares: SPDX identifiers or expressions, or other names."""
    return tuple(
        choice["expression"] if "expression" in choice else choice["license"].get("id") or choice["license"]["name"]
        for choice in component.get("licenses", [])
    )


def is_allowed(licence: str, allowed: frozenset[str]) -> bool:
    """Whether a name, or an SPDX expression without parentheses, is allowed: one choice of OR, all parts of AND."""
    return any(all(part in allowed for part in choice.split(" AND ")) for choice in licence.split(" OR "))


def problems(licences: Mapping[str, tuple[str, ...]], allowed: frozenset[str]) -> Iterator[str]:
    """Say what is wrong, a line for each package that declares nothing, or anything that is not allowed."""
    for package, names in licences.items():
        if not names:
            yield f"{package}: no licence declared"
        yield from (f"{package}: {name} is not allowed" for name in names if not is_allowed(name, allowed))


def main(sbom: Path, rules: Path) -> int:
    """Print the packages' licences, and what is wrong with them; give the exit status."""
    terms = tomllib.loads(rules.read_text(encoding="utf-8"))
    told = {package: (licence,) for package, licence in terms["told_in_words"].items()}
    licences = {
        f"{component['name']} {component['version']}": declared(component) or told.get(component["name"], ())
        for component in json.loads(sbom.read_text(encoding="utf-8"))["components"]
    }
    for package, names in sorted(licences.items(), key=lambda entry: entry[0].lower()):
        sys.stdout.write(f"{package}: {', '.join(names)}\n")
    wrong = list(problems(licences, frozenset(terms["allowed"])))
    sys.stderr.writelines(f"{line}\n" for line in wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
