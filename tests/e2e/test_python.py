"""fairwall from Python: the page and the notebook as they are, in a folder with modules that shadow ours."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tomllib
from pathlib import Path

import psutil
import pytest

import fairwall
from fairwall.runs import _toml
from tests.support.command import SMALL
from tests.support.loans_deployment import Deployment

ROOT = Path(__file__).parents[2]
PAGE = "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL))
NOTEBOOK = json.loads((ROOT / "docs" / "notebook.ipynb").read_text())

SHADOW = "raise SystemExit('a module of the user was imported')\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder of the user's with packages that are called as ours are."""
    for name in ("developer", "adversary", "sim"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(SHADOW)
    for name in ("compliance", "numpy", "grpc"):
        (tmp_path / f"{name}.py").write_text(SHADOW)
    return tmp_path


def python(place: Path, code: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the user's, as one types it."""
    return subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(code)], cwd=place, capture_output=True, text=True, check=False
    )


@pytest.mark.check
def test_a_run_is_played_where_everything_of_ours_is_shadowed(place: Path) -> None:
    (place / "small.toml").write_text(SMALL)
    done = python(
        place,
        """
        import sys
        import fairwall
        run = fairwall.run("small.toml", settings={"compliance.epsilon": [1.0, float("inf")]}, trials=2)
        print(len(run.trials), [line["epsilon"] for line in run.summary], run.complete, run.folder.parent.name)
        assert not {"sim", "compliance", "developer", "adversary", "numpy", "grpc"} & set(sys.modules)
        """,
    )
    assert (done.returncode, done.stdout) == (0, "4 [1.0, inf] True runs\n"), done.stderr
    assert done.stderr.splitlines() == [f"small.toml: trial {finished} of 4" for finished in range(5)]


@pytest.mark.check
def test_the_page_runs_as_it_is_shown(tmp_path: Path) -> None:
    (tmp_path / "developer").mkdir()
    (tmp_path / "developer" / "__init__.py").write_text(SHADOW)
    (tmp_path / "compliance.py").write_text(SHADOW)
    done = python(tmp_path, PAGE)
    assert done.returncode == 0, done.stderr
    assert "inf" in done.stdout
    assert any(line.startswith("--set: developer.queri: unknown key") for line in done.stdout.splitlines())


@pytest.mark.check
def test_the_notebook_runs(tmp_path: Path) -> None:
    cells = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 4
    # A notebook shows the value of a cell's last line.
    last = "\nshown = (" + cells[-1].splitlines()[-1] + ")._repr_html_()\nassert shown.startswith('<iframe srcdoc=')"
    done = python(tmp_path, "\n".join(cells) + last)
    assert done.returncode == 0, done.stderr
    assert all(not cell.get("outputs") for cell in NOTEBOOK["cells"]), "outputs hold paths and times"


@pytest.mark.check
def test_what_is_wrong_is_the_line_that_the_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(fairwall.UserError, match=r"^no scenario or file 'dmeo', did you mean demo\?|did you mean demo"):
        fairwall.run("dmeo", progress=False)
    with pytest.raises(fairwall.UserError, match=r"^--set: developer\.queri: unknown key"):
        fairwall.plan_of("demo", settings={"developer.queri": 3})
    with pytest.raises(fairwall.UserError, match="more than 10,000 need --force"):
        fairwall.plan_of("demo", settings={"scenario.seed": list(range(2000))})
    with pytest.raises(fairwall.UserError, match=r"scenario\.trials"):
        fairwall.run("demo", trials=0)
    with pytest.raises(fairwall.UserError, match=r"not a run's folder: it has no result\.json and no trials\.jsonl"):
        fairwall.read_run(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.check
def test_a_party_that_breaks_the_run_off_is_named(tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL)

    def kill_the_developer() -> None:
        until = time.monotonic() + 300
        while time.monotonic() < until:
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if "developer" in process.cmdline() and any(tmp_path.glob("runs/*/trials.jsonl")):
                        process.kill()
                        return
            time.sleep(0.05)

    killer = threading.Thread(target=kill_the_developer)
    killer.start()
    with pytest.raises(fairwall.RunFailed, match="developer"):
        fairwall.run(scenario, trials=100_000, out=tmp_path / "runs", progress=False)
    killer.join()


@pytest.mark.check
def test_a_plan_says_what_is_played_and_plays_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = fairwall.scenarios()
    assert names["demo"]
    plan = fairwall.plan_of("targeted", settings={"compliance.epsilon": [1.0, float("inf")], "scenario.trials": 3})
    assert {cell["compliance.epsilon"] for cell in plan.cells} == {1.0, float("inf")}
    assert plan.trials == 3 * len(plan.cells)
    assert (plan.scenario, plan.game) == ("targeted", "reveal")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "value", ['an "odd" \\ name\n\t\x7f \x00 é', True, 3, 0.1, 1e-300, math.inf, [1, 2.5], ["a", "b"]], ids=repr
)
def test_settings_arrive_as_they_are(value: object) -> None:
    assert tomllib.loads(f"value = {_toml(value)}")["value"] == value


@pytest.mark.check
def test_an_interrupted_run_says_how_it_is_resumed(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    # A job in the background of a shell, such as the tests may be, inherits the signal ignored, and passes that on.
    heeded = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heeded}; import fairwall; fairwall.run('small.toml', trials=100000)"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        until = time.monotonic() + 300
        while not any(path.stat().st_size for path in tmp_path.glob("runs/*/trials.jsonl")):
            assert time.monotonic() < until
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        said = process.communicate(timeout=300)[1]
    assert "KeyboardInterrupt" in said
    assert re.search(r"finished trials are kept: fairwall run small\.toml .*--resume \S+/runs/\S+", said)
    assert not [line for line in Path("/proc").glob("*/cmdline") if str(tmp_path).encode() in _read(line)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.check
def test_a_user_is_type_checked(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(
        textwrap.dedent(
            """
            from typing import assert_type

            import fairwall

            run = fairwall.run("demo", trials=2, settings={"compliance.epsilon": [1.0, 2.0]})
            assert_type(run, fairwall.Run)
            leakage: list[float] = [trial["leakage"] for trial in run.trials]
            page: str = run.report_html()
            plan: fairwall.Plan = fairwall.plan_of("demo")
            with fairwall.AuditClient("localhost:1", "credentials") as client:
                answer = client.ask([[0.5]], "sp", 1.0)
            gap: float = answer.gaps[0]
            """
        )
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "user.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_fairwall_imports_nothing_that_is_heavy() -> None:
    code = (
        "import sys, fairwall; print(sorted({'numpy', 'grpc', 'pandas', 'subprocess', 'tempfile'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-Ic", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    with pytest.raises(AttributeError, match="module 'fairwall' has no attribute 'ru'"):
        fairwall.ru  # type: ignore[attr-defined]  # noqa: B018


CORE = ("blake3", "cryptography", "cffi", "_cffi_backend", "grpc", "google", "numpy", "typing_extensions")

CORE_ALONE = f"""
import sys
from importlib.machinery import PathFinder

class Core:
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        if first not in {{"fairwall", *{CORE!r}, *sys.stdlib_module_names}}:
            raise ModuleNotFoundError(f"no module named {{name!r}}", name=first)
        return None

sys.meta_path.insert(0, Core())
"""


@pytest.mark.check
def test_a_client_asks_with_what_is_installed_without_extras(place: Path) -> None:
    deployment = Deployment(place / "deployment")
    credentials = str(deployment.folder / "certificates" / "developer-alice")
    ask = f"""
import numpy as np
import fairwall

with fairwall.AuditClient({deployment.address!r}, {credentials!r}) as client:
    people = client.terms().people
    print(client.ask(np.ones((1, people)), "sp", 1.0).gaps.shape)
    try:
        client.count_by_group(np.ones((1, people)), "group", 1.0)
    except ImportError as error:
        print(error)
"""
    with deployment.served():
        (place / "numpy.py").unlink()
        (place / "grpc.py").unlink()
        done = python(place, CORE_ALONE + ask, "-W", "ignore")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(1,)\nrates by group need SciPy: pip install 'fairwall[groups]'\n"


def test_the_command_says_what_is_missing_where_only_the_client_is_installed(place: Path) -> None:
    done = python(
        place, CORE_ALONE.replace('"fairwall",', '"fairwall", "sim",') + "from sim.cli.start import main; main()", "-I"
    )
    assert done.returncode == 2
    assert done.stderr == "fairwall: needs typer, which is not installed: pip install 'fairwall[games]'\n"
