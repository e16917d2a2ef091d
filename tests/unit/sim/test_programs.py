"""Programs of others in our parties' place: which are refused before anything starts, and what they must say first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sim.games import lay_out
from sim.play.launch import ProgramRefused, check, said
from sim.scenarios.sweep import Sweep


def sweep_of(**scenario: Any) -> Sweep:
    values: dict[str, Any] = {
        "scenario": {"name": "x", "game": "reveal", **scenario},
        "data": {"source": "synthetic", "n": 30, "n0": 12, "scores": "uniform"},
        "compliance": {"mechanism": "exact", "epsilon": "inf"},
    }
    return lay_out(values, "x.toml")


def test_where_the_seed_decides_no_other_program_plays() -> None:
    for party in ["compliance", "developer", "adversary"]:
        check(sweep_of(), {})
        check(sweep_of(secret="random"), {party: "true --loud"})  # noqa: S106 - a mode
        with pytest.raises(ProgramRefused, match=f"^--{party}: only with --set scenario.secret=random"):
            check(sweep_of(), {party: "true"})


def test_what_cannot_be_started_is_one_line() -> None:
    for command, named in [
        ("", "no command ''"),
        ("surely-no-such-program --x", "no command 'surely-no-such-program'"),
        ("/etc/passwd", "no command '/etc/passwd'"),
        ('true "', "'true \"': No closing quotation"),
    ]:
        with pytest.raises(ProgramRefused) as refused:
            check(sweep_of(secret="random"), {"developer": command})  # noqa: S106 - a mode
        assert str(refused.value) == f"--developer: {named}"


def test_no_layer_is_demanded_of_a_program_that_alone_can_say_what_confines_it() -> None:
    with pytest.raises(ProgramRefused, match=r"^--developer: scenario.require demands landlock, and what confines"):
        check(sweep_of(secret="random", require=["landlock"]), {"developer": "true"})  # noqa: S106 - a mode


def test_a_first_line_says_where_it_listens_and_perhaps_what_confines_it() -> None:
    layer = {"name": "landlock", "active": True}
    assert said('{"address": ""}\n') == ("", [])
    line = json.dumps({"address": "127.0.0.1:4711", "layers": [layer]})
    assert said(line) == ("127.0.0.1:4711", [{**layer, "why_not": ""}])


def test_any_other_first_line_is_refused() -> None:
    for line in [
        "ready",
        "[]",
        "{}",
        '{"address": 5}',
        '{"address": "example.org:80"}',
        '{"address": "127.0.0.1:99999999"}',
        '{"address": "", "process": 1}',
        '{"address": "", "layers": {}}',
        '{"address": "", "layers": ["landlock"]}',
        '{"address": "", "layers": [{"name": "moat", "active": true}]}',
        '{"address": "", "layers": [{"name": "landlock", "active": "yes"}]}',
    ]:
        with pytest.raises(ValueError, match=r"^is (no|to) "):
            said(line)
