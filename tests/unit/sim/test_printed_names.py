"""Names that others chose are printed as they are: a terminal's library reads nothing into colons or brackets."""

import io
import re
from pathlib import Path

import pytest
import typer.testing

from sim.cli import common
from sim.cli.main import app

OWN = """
import numpy as np
def sound(predictions, labels, attributes, epsilon, noise):
    return noise.laplace(np.zeros(len(predictions)), 1.0, 2.0**-20)
"""


@pytest.mark.parametrize("name", ["coin.py:sound", "[bold]mine[/bold].py:sound"])
def test_a11_a_mechanism_s_name_is_no_emoji_nor_a_style(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name.partition("/")[0]).mkdir(exist_ok=True) if "/" in name else None
    Path(name.rpartition(":")[0]).write_text(OWN)
    result = typer.testing.CliRunner().invoke(app, ["test", "privacy", name, "--grey-only", "--people", "6"])
    assert f"{name}: not accused" in result.stdout


@pytest.mark.parametrize("text", [":coin:sound", "[red]alice[/red]", "[/x]"])
def test_one_console_prints_all(text: str) -> None:
    console = common.console(60)
    console.file = io.StringIO()
    console.print(text)
    assert console.file.getvalue() == f"{text}\n"


def test_no_command_has_a_console_of_its_own() -> None:
    folder = Path(common.__file__).parent
    own = [path.name for path in folder.rglob("*.py") if re.search(r"\bConsole\(", path.read_text())]
    assert own == ["common.py"]
