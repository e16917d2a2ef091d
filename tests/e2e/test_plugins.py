"""Plug-ins: the page's package is built, installed and played; what goes wrong is one line, and the rest is played."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from adversary.attacks import ATTACKS
from compliance.mechanisms import MECHANISMS
from developer.reveal.decode import DECODERS
from developer.reveal.strategies import STRATEGIES
from fairwall import plugins, runs
from fairwall.client import AuditRefused
from fairwall.laws.mechanisms.table import MECHANISM_LAWS
from fairwall.laws.metrics.metric import METRICS
from fairwall.learning.defences import DEFENCES
from sim.datasets import FORMATS
from sim.games import MODULES
from tests.support import command
from tests.support.command import fairwall
from tests.support.loans_deployment import Deployment, ask

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/plugins.md").read_text()
RUNS = [line for line in PAGE.splitlines() if line.startswith("fairwall run") and "--plugin" not in line]
SMALL = command.SMALL.replace('"conceal"', '"laplace"').replace("trials = 3", "trials = 2")
BAD = """
import socket
import numpy as np
from developer.reveal.strategies import Reveal, Strategy
from developer.reveal.strategies.strategy import everyone
from fairwall.laws.metrics.metric import METRICS

def raises(hand):
    return hand.queries / 0

def shape(hand):
    return everyone(np.ones(3, bool))

def nan(hand):
    return Reveal(np.ones(hand.people, np.uint8), np.ones(hand.people, bool), np.full(hand.people, np.nan))

def endless(hand):
    while True:
        pass

def spy(hand):
    return open(TABLE).read()

def leaves(hand):
    raise SystemExit(0)

def asks(hand):
    hand.auditor.gaps(np.full((4, hand.people), 2.0))

def good(hand):
    hand.auditor.gaps(np.ones((hand.queries, hand.people)))
    return everyone(hand.prior() == 1)

def nothing(evidence):
    return np.full(evidence.rows.shape[1], np.inf)

TABLE = {table!r}
STRATEGIES = {{
    "raises": Strategy("raises", raises), "shape": Strategy("shape", shape), "nan": Strategy("nan", nan),
    "endless": Strategy("endless", endless), "spy": Strategy("spy", spy), "leaves": Strategy("leaves", leaves),
    "asks": Strategy("asks", asks), "three": 3, "good": Strategy("good", good),
}}
DECODERS = {{"nothing": nothing}}
""".format(table=str(ROOT / "sim/datasets/adult.csv.gz"))
WHY = {
    "raises": r"ZeroDivisionError in raises, bad.py:9: division by zero",
    "shape": r"its guess is not 0 or 1 for each of 30",
    "nan": r"its reconstruction is not a finite number for each of 30",
    "endless": r"took longer than 1.5 s in endless, bad.py:1\d",
    "spy": r"PermissionError in spy, bad.py:22: .*",
    "leaves": r"SystemExit in leaves, bad.py:25: 0",
    "asks": r"was refused in asks, bad.py:28: REASON_PREDICTIONS_OUT_OF_RANGE",
    "three": r"is no Strategy",
    "broken": r"ModuleNotFoundError when it was imported, broken.py:1: No module named 'nothere'",
}
MECHANISM = '\nMECHANISMS = {"two-sided": TWO_SIDED}\n'
BAD_MECHANISMS = """
import numpy as np
from compliance.mechanisms.mechanism import MechanismAnswer
from compliance.mechanisms.row_defaults import Noisy

class Tells(Noisy):
    name, title, guarantee = "tells", "tells", "pure"
    def noisy(self, question, facts, epsilon, delta, noise):
        raise ValueError(f"there are {question.sums()} {question.counts()}")

class Few(Tells):
    name = "few"
    def noisy(self, question, facts, epsilon, delta, noise):
        return MechanismAnswer(np.zeros(1))

class Lost(Tells):
    name = "lost"
    def noisy(self, question, facts, epsilon, delta, noise):
        return MechanismAnswer(question.gaps() * np.nan)

MECHANISMS = {"tells": Tells(), "few": Few(), "lost": Lost()}
"""


CHECKS = ("C101", "C201", "C301", "C401", "C409", "C501", "C601", "C701")
"""Of every kind one; the whole takes minutes, and is for whoever wrote the mechanism."""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An environment in which the page's package is installed, beside all that this one has."""
    folder = tmp_path_factory.mktemp("plugins")
    (folder / "fairwall_example").mkdir()
    (folder / "fairwall_example/__init__.py").touch()
    for name, text in re.findall(r"(?s)`([\w/]+\.\w+)`[^`]*?:\n\n```\w+\n(.*?)```", PAGE):
        (folder / name).write_text(text)
    venv.create(folder / "env", symlinks=True)
    (site,) = (folder / "env/lib").glob("python*/site-packages")
    ours = sysconfig.get_paths()["purelib"]
    (site / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(site), str(folder)], check=True, capture_output=True)
    (site / "bad_noise.py").write_text(BAD_MECHANISMS + "TELLS = Tells()\n")
    for package, entry, record in (("bad-noise", "tells", "bad_noise.py,,\n"), ("linked", "linked", "linked.pth,,\n")):
        told = site / f"{package.replace('-', '_')}-1.dist-info"
        told.mkdir()
        (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        (told / "entry_points.txt").write_text(f"[fairwall.mechanisms]\n{entry} = bad_noise:TELLS\n")
        (told / "RECORD").write_text(record)
    return str(folder / "env/bin/python")


def installed(python: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, "-I", "-m", "sim", *words], cwd=cwd, capture_output=True, text=True, timeout=300)


def played(place: Path) -> Path:
    (folder,) = (place / "runs").iterdir()
    return folder


@pytest.mark.check
@pytest.mark.parametrize("line", RUNS)
def test_the_page_s_package_is_played_verified_and_replayed(line: str, python: str, tmp_path: Path) -> None:
    words = shlex.split(line)[1:]
    ran = installed(python, *words, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    folder = played(tmp_path)
    named = {one["name"]: one for one in json.loads((folder / "result.json").read_text())["plugins"]}
    asked = {word.partition("=")[2].strip('[]"') for word in words}
    assert named.keys() == asked & {"coins", "correlate", "two-sided", "mean-answer", "coarse"} != set()
    assert {(one["source"], len(one["digest"])) for one in named.values()} == {("fairwall-example 0.1", 64)}
    report = (folder / "report.html").read_text()
    for one in named.values():
        assert one["digest"] in report
    assert ("not proved here" in report) == ("two-sided" in named)
    assert installed(python, "verify", str(folder), cwd=tmp_path).returncode == 0
    again = installed(python, "replay", str(folder), cwd=tmp_path)
    assert "the same bit for" in again.stdout
    assert again.returncode == 0
    elsewhere = fairwall("replay", folder, cwd=tmp_path)
    assert elsewhere.returncode == 2
    (said,) = elsewhere.stderr.splitlines()
    assert "fairwall-example 0.1): was played, and is not here: install it" in said
    if "two-sided" not in named:  # what a party alone runs, nobody needs to read of it
        assert fairwall("verify", folder, cwd=tmp_path).returncode == 0
        assert fairwall("report", folder, cwd=tmp_path).returncode == 0


@pytest.mark.check
def test_what_is_installed_is_listed_and_nothing_of_it_run(python: str, tmp_path: Path) -> None:
    listed = json.loads(installed(python, "list", "--plugins", "--json", cwd=tmp_path).stdout)
    assert {("strategies", "coins", "fairwall-example 0.1"), ("mechanisms", "tells", "bad-noise 1")} < {
        (one["kind"], one["name"], one["source"]) for one in listed
    }
    shown = installed(python, "list", "--plugins", cwd=tmp_path).stdout.splitlines()
    assert len(shown) == len(listed) == 8
    assert shown[0].split() == ["strategies", "coins", "fairwall-example", "0.1"]


@pytest.mark.check
def test_a_package_whose_code_nothing_records_is_not_used(python: str, tmp_path: Path) -> None:
    """As one that is installed with -e: its digest would be the same whatever it does."""
    ran = installed(python, "run", "reveal-adult-100", "--set", "compliance.mechanism=linked", cwd=tmp_path)
    assert ran.returncode == 2
    assert "plug-in linked (mechanisms, linked 1): nothing records what its code is" in ran.stderr


@pytest.mark.check
def test_shards_by_other_versions_of_a_plug_in_are_not_merged(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL.replace("seed = 7", 'seed = 7\nsecret = "seed"'))
    (tmp_path / "key").write_bytes(bytes(32))
    (tmp_path / "key").chmod(0o600)
    for shard in (1, 2):
        (tmp_path / "bad.py").write_text(BAD + "\n" * shard)
        options = ["--set", "developer.strategy=good", "--plugin", "bad.py", "--shard", f"{shard}/2"]
        assert fairwall("run", "small.toml", *options, "--out", "shards", cwd=tmp_path).returncode == 0
    merged = fairwall("results", "merge", *(tmp_path / "shards").iterdir(), "--out", "runs", cwd=tmp_path)
    assert merged.returncode == 2
    assert "other plug-ins played in it than in" in merged.stderr


def test_what_a_party_alone_runs_has_a_stand_in_elsewhere() -> None:
    """Or else its code would be run in the referee's process."""
    tables = (STRATEGIES, DECODERS, ATTACKS, DEFENCES, MECHANISMS, MECHANISM_LAWS, METRICS, FORMATS, MODULES)
    assert {table.kind for table in tables} == set(plugins.KINDS)
    assert {table.kind for table in tables if table.is_elsewhere} == set(plugins.OF_PARTIES)


@pytest.mark.check
@pytest.mark.parametrize("bad", [("raises",), tuple(WHY)])
def test_each_bad_strategy_is_told_in_one_line_and_the_other_cells_are_played(
    bad: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / "broken.py").write_text('import nothere\nSTRATEGIES = {"broken": 1}\n')
    (tmp_path / "small.toml").write_text(SMALL)
    names = ["good", *bad, "best"]
    files = ["--plugin", "bad.py", "--plugin", "broken.py"]
    settings = ["--set", f"developer.strategy={json.dumps(names)}", "--set", "scenario.plugin_seconds=1.5"]
    ran = fairwall("run", "small.toml", *settings, *files, cwd=tmp_path)
    assert ran.returncode == 1
    said = [line for line in ran.stderr.splitlines() if line.startswith("not finished")]
    for line, name in zip(said, bad, strict=True):
        file = "broken.py" if name == "broken" else "bad.py"
        named = rf"not finished \(developer.strategy = {name}\): plug-in {name} \(strategies, {file}\): {WHY[name]}"
        assert re.fullmatch(named, line), line
    result = json.loads((played(tmp_path) / "result.json").read_text())
    assert [failure["cell"]["developer.strategy"] for failure in result["failures"]] == names[1:-1]
    finished = [cell["developer.strategy"] for cell in result["summary"] if cell["trials"] == 2]
    assert finished == ["good", "best"]
    assert "Traceback" not in ran.stderr


@pytest.mark.check
@pytest.mark.parametrize("key", ["strategy=good", "decoder=still"])
def test_the_code_of_a_party_is_never_run_in_the_referee_s_process(key: str, tmp_path: Path) -> None:
    """It would find every card there, or change how it is scored."""
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "mine.py").write_text(
        "import sys\nif 'sim.games' in sys.modules or 'compliance.records' in sys.modules:\n    raise SystemExit(3)\n"
        + BAD.split("DECODERS")[0].replace("TABLE = ", "DECODERS = {'still': lambda e: e.rows.sum(axis=0)}\nTABLE = ")
    )
    changes = ("--set", f"developer.{key}", "--plugin", "mine.py")
    ran = fairwall("run", "small.toml", *changes, cwd=tmp_path, forks=False)
    assert ran.returncode == 0, ran.stderr
    folder = played(tmp_path)
    for words in (["report", folder], ["verify", folder], ["replay", folder, "--plugin", "mine.py"]):
        assert fairwall(*words, cwd=tmp_path, forks=False).returncode == 0


@pytest.mark.check
def test_sessions_at_once_leave_out_a_cell_that_fails(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / "small.toml").write_text(SMALL)
    settings = ["--set", 'developer.strategy=["raises", "good", "shape"]']
    ran = fairwall("run", "small.toml", *settings, "--plugin", "bad.py", "--jobs", 2, cwd=tmp_path)
    assert ran.returncode == 1, ran.stderr
    result = json.loads((played(tmp_path) / "result.json").read_text())
    assert {failure["cell"]["developer.strategy"] for failure in result["failures"]} == {"raises", "shape"}
    assert [cell["developer.strategy"] for cell in result["summary"] if cell["trials"] == 2] == ["good"]


@pytest.mark.few(1)
@pytest.mark.parametrize("names", [("tells", "lost"), ("few", "laplace")])
def test_a_bad_mechanism_s_words_are_not_passed_on(names: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "noise.py").write_text(BAD_MECHANISMS)
    (tmp_path / "small.toml").write_text(SMALL)
    settings = ["--set", f"compliance.mechanism={json.dumps(names)}"]
    ran = fairwall("run", "small.toml", *settings, "--plugin", "noise.py", cwd=tmp_path)
    assert ran.returncode == 1
    said = [line.partition("): ")[2] for line in ran.stderr.splitlines() if line.startswith("not finished")]
    told = {
        "tells": "plug-in tells (mechanisms, noise.py): ValueError in release, noise.py:9",
        "few": "plug-in few (mechanisms, noise.py): its answers are not one float64 for each of 4 models",
        "lost": "plug-in lost (mechanisms, noise.py): its answers are not finite",
    }
    assert said == [told[name] for name in names if name in told]
    for log in played(tmp_path).glob("logs/*"):
        assert "there are" not in log.read_text()


def test_a_service_answers_by_a_mechanism_of_others_and_charges_nothing_where_it_fails(
    python: str, tmp_path: Path
) -> None:
    loans = Deployment(tmp_path)
    start = f"import os, sys; os.execv({python!r}, [{python!r}, '-I', '-m', 'compliance', *sys.argv[1:]])"
    loans.service = ("-c", start)
    policy = (tmp_path / "policy.toml").read_text()
    for mechanism in ("two-sided", "tells"):
        (tmp_path / "policy.toml").write_text(policy.replace('"laplace"', f'"{mechanism}"'))
        with loans.served(), loans.client("alice") as audits:
            if mechanism == "two-sided":
                assert ask(audits, "1") == ask(audits, "1")
                assert audits.terms().mechanism == "two-sided"
            else:
                with pytest.raises(AuditRefused, match="the service failed"):
                    ask(audits, "2")
    assert loans.entries().keys() == {("alice", "1")}
    assert "plug-in tells (mechanisms, bad-noise 1): ValueError in release, bad_noise.py:9" in loans.log
    assert "there are" not in loans.log


@pytest.mark.check
def test_privacy_tests_accuse_a_mechanism_of_others_by_its_line(python: str, tmp_path: Path) -> None:
    for name, status in (("two-sided", 0), ("too-little", 1)):
        ran = installed(python, "test", "privacy", name, "--grey-only", "--json", cwd=tmp_path)
        assert ran.returncode == status, ran.stderr
        told = json.loads(ran.stdout)
        assert told["accused"] is bool(status)
        for fault in told["faults"]:
            assert fault["kind"] == "sensitivity"
            lines = Path(fault["file"]).read_text().splitlines()
            assert (Path(fault["file"]).name, lines[fault["line"] - 1].strip()) == ("noise.py", fault["source"])
            assert fault["source"] == "return MechanismAnswer(noise.laplace(question.gaps(), scale, step))"
    ran = installed(python, "test", "privacy", "tells", "--grey-only", cwd=tmp_path)
    assert ran.returncode == 1  # what it raises tells of the secret
    assert "what is released depends on more of the secret than noisy numbers" in ran.stdout


@pytest.mark.check
def test_a_service_with_a_mechanism_of_others_conforms(python: str, tmp_path: Path) -> None:
    words = ["test", "conformance", "compliance", "--reference", "--mechanism", "two-sided"]
    shown = [line for line in PAGE.splitlines() if line.startswith("fairwall test conformance")]
    assert shown == [" ".join(["fairwall", *words])]
    only = [word for number in CHECKS for word in ("--only", number)]
    ran = installed(python, *words, *only, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout[-2000:]


@pytest.mark.check
def test_a_decoder_that_fails_is_told_and_one_can_be_tried_on_old_answers(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / "small.toml").write_text(SMALL)
    ran = fairwall("run", "small.toml", "--set", "developer.decoder=nothing", "--plugin", "bad.py", cwd=tmp_path)
    assert "plug-in nothing (decoders, bad.py): its estimate is not finite" in ran.stderr
    (tmp_path / "mine.py").write_text(
        "def decode(evidence):\n    return evidence.gaps @ (evidence.rows - evidence.rows.mean())\n"
        'DECODERS = {"mine": decode}\n'
    )
    other = tmp_path / "other"
    other.mkdir()
    assert fairwall("run", tmp_path / "small.toml", cwd=other).returncode == 0
    tried = fairwall("replay", played(other), "--decoder", "mine", "--plugin", tmp_path / "mine.py", cwd=other)
    assert tried.returncode == 0, tried.stderr
    assert "mine" in tried.stdout


@pytest.mark.parametrize(
    ("files", "settings", "why"),
    [
        ({}, "developer.strategy=mime", "small.toml: developer.strategy: must be one of"),
        ({"a.py": 'STRATEGIES = {"mine": 1}'}, "developer.strategy=mime", "not 'mime'; did you mean mine?"),
        (
            {"a.py": 'STRATEGIES = {"mine": 1}', "b.py": 'STRATEGIES = {"mine": 2}'},
            "developer.strategy=mine",
            "plug-in mine (strategies, a.py): b.py has one of that name too; only one of them may be there",
        ),
        (
            {"a.py": 'STRATEGIES = {"best": 1}'},
            "developer.strategy=best",
            "plug-in best (strategies, a.py): its name is one of ours; give it another",
        ),
        ({"a.py": "x = 1"}, "developer.strategy=best", "--plugin: a.py: adds nothing: it has no"),
        ({"a.py": "def ("}, "developer.strategy=best", "--plugin: a.py: not Python: "),
        ({"a.py": None}, "developer.strategy=best", "--plugin: a.py: cannot be read: No such file or directory"),
        ({"a.py": 'METRICS = {"mine": 1}'}, "compliance.metric=mine", "(metrics, a.py): is no Metric of its name"),
        ({"a.py": 'MECHANISMS = {"mine": 1}'}, "compliance.mechanism=mine", "(mechanisms, a.py): is no mechanism"),
        ({"a.py": '1/0\nGAMES = {"mine": 1}'}, "scenario.game=mine", "ZeroDivisionError when it was imported, a.py:1"),
        ({"a.py": 'DATASETS = {"mine": 1}'}, "data.source=mine:x", "(datasets, a.py): is no Format"),
    ],
)
def test_what_cannot_be_played_is_refused_before(
    files: dict[str, str | None], settings: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    for name, text in files.items():
        if text is not None:
            (tmp_path / name).write_text(text)
    options = [word for name in files for word in ("--plugin", name)]
    if "data.source" in settings:
        options += ["--set", "data.protected=a", "--set", "data.label=y", "--set", "data.advantaged=yes"]
        (tmp_path / "small.toml").write_text(
            SMALL.replace('scores = "uniform"', "").replace("n = 30", "test_size = 30").replace("n0 = 12", "")
        )
    ran = fairwall("run", "small.toml", "--set", settings, *options, cwd=tmp_path)
    assert ran.returncode == 2
    (said,) = ran.stderr.splitlines()[-1:]
    assert why in said
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").iterdir())


OTHERS = """
from dataclasses import replace
import pyarrow as pa
import numpy as np
from fairwall.laws.metrics.metric import Metric, MetricPart

METRICS = {"right-of-good": Metric("right-of-good", "accuracy gap among label 1", (MetricPart("correct", 1),))}
"""
GAME = """
from dataclasses import replace
import numpy as np
import pyarrow as pa
from sim.datasets.formats import Format
from sim.datasets.shipped import Shipped
from sim.games.reveal import GAME

def read(path, source):
    rng = np.random.default_rng(int(path.read_text()))
    a = rng.integers(0, 2, 2000)
    x = rng.normal(size=2000) + a
    return pa.table({"g": np.where(a, "yes", "no"), "x": x, "y": (x + rng.normal(size=2000) > 0).astype(int)})

GAMES = {"mine": replace(GAME, name="mine")}
DATASETS = {"drawn": Format(Shipped("drawn", "y", "1", {"g": ("yes", "no")}), read)}
"""
TABLE = """
[scenario]
name = "drawn"
game = "mine"
[data]
source = "drawn:seed.txt"
test_size = 60
[compliance]
mechanism = "exact"
metric = "right-of-good"
"""


def test_a_metric_a_data_set_and_a_game_of_others_are_played_and_replayed(tmp_path: Path) -> None:
    for name, text in (("metric.py", OTHERS), ("game.py", GAME), ("drawn.toml", TABLE), ("seed.txt", "7")):
        (tmp_path / name).write_text(text)
    files = ["--plugin", "metric.py", "--plugin", "game.py"]
    ran = fairwall("run", "drawn.toml", *files, "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    (line,) = json.loads(ran.stdout)["trials"]
    assert line["targeted"] < 60
    assert line["targeted_recovered"] == line["targeted"]
    folder = played(tmp_path)
    kinds = {one["kind"] for one in json.loads((folder / "result.json").read_text())["plugins"]}
    assert kinds == {"metrics", "datasets", "games"}
    assert fairwall("verify", folder, *files, cwd=tmp_path).returncode == 0
    assert "the same bit for" in fairwall("replay", folder, *files, cwd=tmp_path).stdout
    (tmp_path / "metric.py").write_text(OTHERS + "\n")
    changed = fairwall("replay", folder, *files, cwd=tmp_path)
    assert changed.returncode == 2
    assert "is not what was played: SHA-256 was" in changed.stderr


@pytest.mark.check
def test_the_file_of_the_page_is_played(tmp_path: Path) -> None:
    (line,) = [line for line in PAGE.splitlines() if line.startswith("fairwall run") and "--plugin" in line]
    (ending,) = re.findall(r"ends with `(STRATEGIES = .*?)`", PAGE)
    (noise,) = [block for block in re.findall(r"(?s)```python\n(.*?)```", PAGE) if "class TwoSided" in block]
    (tmp_path / "mine.py").write_text(
        "from developer.reveal.strategies import Strategy\n"
        "from developer.reveal.strategies.strategy import everyone\n\n\n"
        f"def play(hand):\n    return everyone(hand.prior() == 1)\n\n\n{ending}\n"
    )
    (tmp_path / "both.py").write_text((tmp_path / "mine.py").read_text() + noise + MECHANISM)
    ran = fairwall(*line.split()[1:], "--trials", "1", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    again = runs.run(
        "reveal-adult-100",
        trials=1,
        settings={
            "developer.strategy": "mine",
            "developer.queries": 4,
            "compliance.mechanism": "two-sided",
            "compliance.epsilon": 5.0,
        },
        plugins=[tmp_path / "both.py"],  # a party runs the one kind, and another party the other
        out=tmp_path / "again",
    )
    assert again.figures
    checked = fairwall("verify", again.folder, cwd=tmp_path)
    assert checked.returncode == 0
    assert (
        " ".join(checked.stdout.split()).count("plug-in two-sided (mechanisms, both.py): was played, and is not") == 1
    )
    assert "KeyError" not in checked.stdout


def test_the_page_has_every_kind() -> None:
    from fairwall.plugins import KINDS

    rows = re.findall(r"(?m)^\| [a-z ]+ \| (\w+) \|", PAGE)
    assert sorted(rows) == sorted(KINDS)
