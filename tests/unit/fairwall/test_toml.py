"""TOML of other people's: as the standard library reads it, within bounds."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fairwall import toml

FILES = sorted(Path(__file__).parents[3].glob("sim/**/*.toml"))


def test_a_file_is_read_as_the_standard_library_reads_it() -> None:
    assert len(FILES) > 50
    for path in FILES[::8]:
        assert repr(toml.read(path)) == repr(tomllib.loads(path.read_text(encoding="utf-8"))), path


def test_numbers_and_sentences_are_no_long_keys() -> None:
    text = f"a = [{'0.1, ' * 5000}]\nb = '{'. . ' * 500}'\nc = '{'One. Two, three. ' * 500}'\n"
    assert toml.loads(text) == tomllib.loads(text)


def test_a_key_has_at_most_so_many_parts() -> None:
    for part, shape in (
        ("a", "{key} = 1"),
        ("'a.b'", "[{key}]"),
        ('"a b"', "[[{key}]]"),
        ("a ", "a = {{{key} = 1}}"),
        ("1-_", "b=1\n  {key}=1"),
    ):
        assert toml.loads(shape.format(key=".".join([part] * toml.PARTS_MAX)))
        for parts in (toml.PARTS_MAX + 1, 50_000):
            with pytest.raises(toml.TomlError, match="a key has more than 32 parts"):
                toml.loads(shape.format(key=".".join([part] * parts)))


def test_what_is_no_toml_is_refused_in_linear_time() -> None:
    for text in ("'" * 10**6, "a " * 10**6, "'a\"b" * 10**5):
        with pytest.raises(toml.TomlError):
            toml.loads(text)


def test_brackets_too_deep_and_numbers_too_long_are_errors_like_others() -> None:
    for text in ("a = " + "[" * 9000, "a = " + "9" * 9000, "a"):
        with pytest.raises(toml.TomlError):
            toml.loads(text)


def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(toml.TomlError, match="more than 4,194,304 bytes"):
        toml.read(Path("/dev/zero"))
