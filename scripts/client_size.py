"""Print how much a fresh environment takes in which a developer only asks: fairwall without extras, and what it needs.

    python scripts/client_size.py FOLDER

makes the environment in FOLDER, which must not be there, from this tree and whatever packages pip gets. Sizes are of
the files as they lie there, without pip. Status 1 where they are above the limit.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT = 150_000_000


def installed(folder: Path) -> dict[str, int]:
    """Make the environment, and give the bytes of each package's folder in it."""
    venv.create(folder)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder), "install", "--quiet"]
    subprocess.run([*pip, str(ROOT)], check=True)  # noqa: S603 - pip, for this tree
    packages = next((folder / "lib").glob("python*/site-packages"))
    return {
        place.name: sum(file.stat().st_size for file in (place, *place.rglob("*")) if file.is_file())
        for place in packages.iterdir()
    }


def main() -> int:
    """Print the sizes, the largest first."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)  # noqa: T201
        return 2
    sizes = installed(Path(sys.argv[1]))
    for name, size in sorted(sizes.items(), key=lambda one: -one[1])[:12]:
        print(f"{size / 1e6:7.1f} MB  {name}")  # noqa: T201
    whole = sum(sizes.values())
    print(f"{whole / 1e6:7.1f} MB  in all; the limit is {LIMIT / 1e6:.0f}")  # noqa: T201
    return int(whole > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
