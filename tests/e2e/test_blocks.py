"""Every block of code on a page is executed by a test: here is by which, and those that no other test has."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from typer.main import get_command

from compliance.deployment.policy.schema import DeploymentSection
from sim.cli.main import app
from sim.conformance import cases
from sim.games import lay_out
from tests.support import command

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "sim/datasets/README.md", *sorted(DOCS.glob("*.md"))]
HERE = "test_blocks.py"
LINES = f"{HERE}::test_the_command_takes_the_lines_that_are_shown"

CLAIMS: dict[tuple[str, str], str] = {
    ("README.md", "python"): "test_example.py::test_the_readme_s_audit_is_answered",
    ("README.md", "sh"): "test_example.py::test_the_readme_s_audit_is_answered",
    ("README.md", "text"): "test_docs.py::test_the_readme_s_table_is_what_is_printed",
    (
        "sim/datasets/README.md",
        "",
    ): "../unit/sim/test_datasets.py::test_a_shipped_table_is_the_one_the_readme_describes",
    ("docs/citing.md", "bibtex"): "test_figures.py::test_what_is_cited_is_this_version_and_the_papers_that_are_checked",
    ("docs/alternatives.md", "python"): "test_serve_search.py::PROGRAM",
    ("docs/papers.md", "toml"): "test_papers.py::test_a_third_partys_paper_is_played_judged_and_checked",
    ("docs/confinement.md", "toml"): f"{HERE}::test_the_layers_that_are_demanded_are_layers",
    ("docs/conformance.md", "sh"): f"{LINES} test_conformance.py::test_our_own_server_passes_as_the_page_starts_it",
    ("docs/conformance.md", "toml"): f"{HERE}::test_the_check_that_is_shown_is_one",
    ("docs/curator.md", "toml"): "test_curator_game.py::test_the_page_has_all_keys_in_their_order",
    ("docs/disclosure.md", "toml"): f"{HERE}::test_the_keys_of_a_game_are_valid",
    (
        "docs/groups.md",
        "python",
    ): "test_serve_groups.py::test_the_documented_notebooks_run "
    "test_serve_groups.py::test_the_documented_attribute_that_nobody_holds_is_told_by_probabilities",
    (
        "docs/groups.md",
        "toml",
    ): "test_serve_groups.py::grouping test_group_game.py::test_the_page_has_all_keys_in_their_order",
    ("docs/inference.md", "python"): "test_docs.py::test_the_counterexamples_are_ones",
    ("docs/inference.md", "toml"): "test_docs.py::test_the_scenario_of_the_inference_game_is_valid",
    ("docs/law.md", "sh"): f"{LINES} test_law.py::PAGE",
    ("docs/law.md", "toml"): "test_law.py::PAGE",
    ("docs/ledger.md", ""): LINES,
    ("docs/ledger.md", "sh"): "test_ledger_page.py::documented test_ledger_restore.py::RESTORE_LOST",
    ("docs/metrics.md", "sh"): f"{HERE}::test_many_questions_are_answered",
    (
        "docs/overfit.md",
        "toml",
    ): f"{HERE}::test_the_keys_of_a_game_are_valid test_overfit_game.py::test_the_page_has_all_keys",
    ("docs/operating.md", "sh"): (
        f"{HERE}::test_what_is_installed_is_there {LINES} {HERE}::test_what_is_made_is_a_target "
        "test_deploy.py::test_the_container_s_commands_install_a_service_that_runs"
    ),
    ("docs/operating.md", "toml"): f"{HERE}::test_telemetry_is_a_key_of_the_policy",
    ("docs/tools.md", "js"): "test_second_client.py::PAGE",
    (
        "docs/tools.md",
        "json",
    ): "test_protocol_command.py::test_the_calls_of_the_page_are_answered_by_a_real_service",
    ("docs/tools.md", "text"): (
        f"{HERE}::test_protoc_needs_the_descriptors_alone test_second_client.py::CLIENT "
        "test_protocol_command.py::test_the_calls_of_the_page_are_answered_by_a_real_service"
    ),
    ("docs/privacy-audit.md", ""): f"{HERE}::test_a_mechanism_is_audited",
    ("docs/privacy-audit.md", "python"): f"{HERE}::test_a_mechanism_is_audited",
    ("docs/python.md", "python"): "test_python.py::test_the_page_runs_as_it_is_shown",
    ("docs/release.md", "sh"): LINES,
    ("docs/replicas.md", "sh"): f"{LINES} test_replicas_page.py::test_the_page_s_services_answer",
    ("docs/replicas.md", "python"): "test_replicas_page.py::test_the_page_s_services_answer",
    ("docs/replicas.md", "toml"): "test_replicas_page.py::test_the_policy_that_is_shown_can_be_read",
    ("docs/release.md", "toml"): f"{HERE}::test_the_keys_of_a_game_are_valid",
    ("docs/scenarios.md", "toml"): (
        "test_docs.py::test_the_scenario_that_is_shown_is_valid test_faults.py::test_every_key_and_kind_is_documented"
    ),
    ("docs/serving.md", "python"): "test_example.py::PROGRAM test_serve_release.py::PAGE",
    ("docs/serving.md", "sh"): "test_certificates.py::PAGE test_example.py::shown test_datasets.py::DOCS",
    ("docs/serving.md", "text"): "test_example.py::answers test_example.py::check_first_line",  # what those print
    ("docs/serving.md", "toml"): "test_serve_release.py::PAGE",
    ("docs/sweeps.md", "sh"): f"{HERE}::test_shards_are_played_and_merged {LINES}",
    ("docs/sweeps.md", "yaml"): LINES,
    ("docs/tools.md", "python"): "test_tools.py::PAGE",
    ("docs/committed.md", "python"): "test_committed.py::test_the_page_s_commands_are_those_that_are_run",
    ("docs/committed.md", "sh"): "test_committed.py::test_the_page_s_commands_are_those_that_are_run",
    ("docs/committed.md", "toml"): "test_committed.py::test_the_page_s_commands_are_those_that_are_run",
    ("docs/sealed.md", "python"): "test_sealed.py::test_the_page_s_policy_and_model_are_answered",
    ("docs/sealed.md", "toml"): "test_sealed.py::test_the_page_s_policy_and_model_are_answered",
    ("docs/tables.md", "python"): "test_tables.py::test_the_page_s_policy_and_question_are_answered",
    ("docs/tables.md", "toml"): "test_tables.py::test_the_page_s_policy_and_question_are_answered",
    ("docs/tools.md", "toml"): "test_tools.py::OPTIONS",
    ("docs/tools.md", "yaml"): "test_tools.py::WORKFLOW",
    ("docs/training.md", "python"): "test_docs.py::test_the_model_that_is_shown_trains",
    ("docs/training.md", "toml"): "test_docs.py::test_the_keys_of_the_training_game_are_valid",
    ("docs/plugins.md", "python"): "test_plugins.py::python",
    ("docs/plugins.md", "sh"): f"test_plugins.py::RUNS test_plugins.py::test_the_file_of_the_page_is_played {LINES}",
    ("docs/plugins.md", "toml"): "test_plugins.py::python",
    ("docs/runs.md", "sh"): f"{HERE}::test_a_run_is_verified_and_sealed",
    ("docs/wash.md", "toml"): f"{HERE}::test_the_keys_of_a_game_are_valid",
    ("docs/tutorial.md", "python"): "test_tutorial.py::test_the_tutorial_is_played",
    ("docs/tutorial.md", "sh"): "test_tutorial.py::test_the_tutorial_is_played",
    ("docs/tutorial.md", "toml"): "test_tutorial.py::test_the_tutorial_is_played",
}
"""What executes the blocks of each page and language.

`test_docs.py` runs each line of a `console` block; a `mermaid` block is drawn.
"""


COMMANDS = "|".join(get_command(app).commands)


def fenced(page: Path) -> list[tuple[str, str]]:
    """The blocks of a page, each with its language."""
    return re.findall(r"(?m)^```(\w*)\n((?:.*\n)*?)```$", page.read_text())


def blocks(page: str, language: str) -> list[str]:
    """What stands in the blocks of a language on a page."""
    return [block for named, block in fenced(ROOT / page) if named == language]


def commands(page: str, language: str) -> list[list[str]]:
    """The words of each line there that calls ``fairwall``, without the program's own."""
    found = []
    for block in blocks(page, language):
        for line in block.splitlines():
            call = re.search(rf"\bfairwall ((?:{COMMANDS}) [^|]*)", line)
            if call and not line.startswith("#"):
                text = call[1].partition("]")[0].rstrip("\"'") if language == "yaml" or "--wrap" in line else call[1]
                found.append(shlex.split(text, comments=True))
    return found


def test_every_block_is_claimed_by_a_test() -> None:
    """Whoever adds a block in a language that is new to a page says here what executes it."""
    shown = {(page.relative_to(ROOT).as_posix(), language) for page in PAGES for language, _ in fenced(page)}
    assert {which for which in shown if which[1] not in ("console", "mermaid")} == CLAIMS.keys()


@cache
def _names(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(
        node.name if isinstance(node, ast.FunctionDef) else node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    )


def test_the_tests_that_claim_a_block_are_there() -> None:
    for of_page, claims in CLAIMS.items():
        for claim in claims.split():
            file, _, name = claim.partition("::")
            assert name in _names(Path(__file__).parent / file), (of_page, claim)


@pytest.mark.check
def test_the_command_takes_the_lines_that_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Its options are read before it helps."""
    for page in (page for page in PAGES if "fairwall " in page.read_text()):
        for language in ("", "sh", "text", "yaml"):
            for words in commands(page.relative_to(ROOT).as_posix(), language):
                assert not app([*words, "--help"], prog_name="fairwall", standalone_mode=False), words
                assert capsys.readouterr().out.startswith("Usage: fairwall "), words


def test_lines_are_found_and_a_wrong_one_is_noticed() -> None:
    assert len(commands("docs/conformance.md", "sh")) == 5
    assert commands("docs/sweeps.md", "yaml")[0][:2] == ["run", "dia-adult-sex"]
    assert commands("docs/sweeps.md", "sh")[-1] == ["results", "merge", "shards/*", "--out", "runs"]
    with pytest.raises(Exception, match="--shards"):
        app(["run", "demo", "--shards", "1/2", "--help"], standalone_mode=False)


def test_what_is_made_is_a_target() -> None:
    targets = re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text())
    text = "".join(page.read_text() for page in PAGES)
    assert {"demo", "supply"} <= set(re.findall(r"(?m)^(?:\$ )?make ([a-z-]+)", text)) <= set(targets)


def test_what_is_installed_is_there() -> None:
    """The commands want root; test_deploy.py lays the same files elsewhere and starts the service."""
    named = set(re.findall(r"\bdeploy/[\w.-]+", "".join(blocks("docs/operating.md", "sh"))))
    assert len(named) >= 4
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.check
def test_many_questions_are_answered(tmp_path: Path) -> None:
    (block,) = blocks("docs/metrics.md", "sh")
    assert block.count("| fairwall ") == 1
    line = block.replace("| fairwall ", f"| {shlex.quote(sys.executable)} -m sim ")
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.check
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(words, marks=pytest.mark.slow if words[2] in ("conceal", "group-counts") else (), id=words[2])
        for words in commands("docs/privacy-audit.md", "")
    ],
)
def test_a_mechanism_is_audited(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(*blocks("docs/privacy-audit.md", "python"))
    assert command.fairwall(*words, cwd=tmp_path).returncode == ("conceal-printed" in words)


@pytest.mark.check
def test_a_run_is_verified_and_sealed(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(command.SMALL)
    verify, seal, check, *_ = commands("docs/runs.md", "sh")
    command.played(tmp_path, "small.toml").rename(tmp_path / verify[1])
    for words in (verify, seal, check):
        done = command.fairwall(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_shards_are_played_and_merged(tmp_path: Path) -> None:
    """In the place of the demo a scenario that is over sooner."""
    (tmp_path / "small.toml").write_text(command.SMALL)
    _, shards, kept, *_ = blocks("docs/sweeps.md", "sh")
    for folder, block, merged in (("plain", shards, 1), ("secret", kept, 0)):
        place = tmp_path / folder
        place.mkdir()
        line = block.replace("run demo", "run ../small.toml").replace("fairwall ", f"{sys.executable} -m sim ")
        done = subprocess.run(["sh", "-euc", line], cwd=place, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert len(list(place.glob("runs/*/result.json"))) == merged


@pytest.mark.check
def test_protoc_needs_the_descriptors_alone(tmp_path: Path) -> None:
    """The compiler that is here writes Python."""
    line = shlex.split(blocks("docs/tools.md", "text")[0])
    assert command.fairwall("test", "protocol", "--descriptors", "protocol.binpb", cwd=tmp_path).returncode == 0
    words = [word.replace("--cpp_out", "--python_out") for word in line[1:]]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *words], cwd=tmp_path, check=True)
    assert (tmp_path / "fairwall/compliance/v1/audit_service_pb2.py").exists()


def test_the_keys_of_a_game_are_valid() -> None:
    for game in ("disclosure", "overfit", "release", "wash"):
        (block,) = blocks(f"docs/{game}.md", "toml")
        values = tomllib.loads(block)
        values["scenario"] = {"name": "docs", "game": game}
        if game == "release":
            values["data"]["source"] = "adult-coded"
            del values["data"]["sensitive"]  # the other way to say it
            values["compliance"] = {"mechanism": "counts", "epsilon": 1.0}
        assert lay_out(values, "docs").cells, game


def test_the_layers_that_are_demanded_are_layers() -> None:
    (block,) = blocks("docs/confinement.md", "toml")
    values = tomllib.loads(command.SMALL)
    values["scenario"] |= tomllib.loads(block)["scenario"]
    assert len(lay_out(values, "docs").scenario.scenario.require) == 5


def test_telemetry_is_a_key_of_the_policy() -> None:
    (block,) = blocks("docs/operating.md", "toml")
    example = tomllib.loads((DOCS / "example/policy.toml").read_text())
    told = {**example["deployment"], **tomllib.loads(block)["deployment"]}
    assert DeploymentSection.model_validate(told, context=DOCS / "example").telemetry


def test_the_check_that_is_shown_is_one(tmp_path: Path) -> None:
    (block,) = blocks("docs/conformance.md", "toml")
    (tmp_path / "own.toml").write_text(block)
    assert "X901" in {case.number for case in cases.read("compliance", [tmp_path])}
