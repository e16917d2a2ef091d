"""docs/tutorial.md, played from top to bottom in one shell, with the files that it has one save."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import forked_programs

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text()
SERVE = "fairwall deploy serve --policy policy.toml\n"


def _blocks(kind: str, page: str = PAGE) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)


@pytest.mark.check
def test_the_tutorial_is_played(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    shutil.copytree(ROOT / "docs" / "example", tmp_path / "docs" / "example")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    page = PAGE.replace("127.0.0.1:7443", address)
    installed, *shown = _blocks("sh", page)
    scenario, policy = _blocks("toml", page)
    (program,) = _blocks("python", page)
    assert installed == "make demo\n. .venv/bin/activate\n"
    assert "\n\t$(BIN)/fairwall run demo\n" in (ROOT / "Makefile").read_text()
    assert shown[-1].endswith(SERVE)
    own = tmp_path / "loans"
    (tmp_path / "game.toml").write_text(scenario)
    moved = [block.replace("cd loans\n", "cd loans\nmv ../game.toml .\n") for block in shown]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    played = subprocess.run(
        ["sh", "-eu", "-c", "".join(moved).removesuffix(SERVE)], cwd=tmp_path, env=environment,
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert played.returncode == 0, played.stderr
    assert "no findings" in played.stdout
    assert len(list(tmp_path.glob("runs/*/report.html"))) == len(list(own.glob("runs/*/report.html"))) == 1

    (own / "policy.toml").write_text(policy)
    with (
        (own / "log").open("w") as log,
        subprocess.Popen(SERVE.split(), cwd=own, env=environment, stdout=subprocess.PIPE, stderr=log, text=True) as it,
    ):
        try:
            assert it.stdout is not None
            assert address in it.stdout.readline(), (own / "log").read_text()
            asked = forked_programs.run(
                [sys.executable, "-c", program], cwd=own, capture_output=True, text=True, check=False, timeout=300
            )
        finally:
            it.kill()
    assert (asked.returncode, asked.stderr) == (0, "")
    assert re.fullmatch(r"gap (\S+), between \S+ and \S+\nepsilon left: 2.75\n", asked.stdout), asked.stdout
    assert "confined by" in (own / "log").read_text()


def test_the_report_has_what_the_page_says_stands_in_it() -> None:
    """The headings are the report's own words."""
    kit = "".join(path.read_text() for path in (ROOT / "sim").rglob("*.py")) + "".join(
        path.read_text() for path in (ROOT / "sim").rglob("*.html*")
    )
    named = re.findall(r"(?m)^\* \*\*(.+?)\*\*", PAGE)
    assert len(named) == 4
    assert [heading for heading in named if heading not in kit] == []
