"""Docstrings begin with what they name, parameters and classes have names that say what they are, and one home each."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("proto", "compliance", "developer", "adversary", "sim")
OPENERS = frozenset({"What", "How", "Of", "So", "By", "Which", "Who", "Where", "As"})
POINTERS = re.compile(
    r"\b(its?|they|them|th[eo]se|th[ia]t|this|ones?|others?|such|what|who(se)?|which|so|as|else|besides?|alike|apart)\b",
    re.IGNORECASE,
)
"""Words whose noun stands elsewhere: a first sentence of which a quarter are such says nothing by itself."""
NAMES = frozenset(
    {"found", "told", "asked", "own", "hand", "each", "left", "said", "shown", "bought", "apart", "alike", "beside"}
)


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        if "_pb2" not in path.name and "node_modules" not in path.parts:
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def is_riddle(text: str) -> bool:
    words = text.split("\n\n")[0].split()
    pointers = POINTERS.findall(" ".join(words))
    return words[0].strip("*`") in OPENERS or (len(words) > 7 and len(pointers) > len(words) / 4)


def faults(path: str, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg in NAMES:
            yield f"{path}:{node.lineno}: parameter {node.arg}"
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        if (text := ast.get_docstring(node)) and is_riddle(text):
            yield f"{path}:{node.body[0].lineno}: {' '.join(text.split()[:9])}"


def test_nothing_is_said_in_riddles() -> None:
    wrong = [each for path, tree in modules() for each in faults(path, tree)]
    assert not wrong, "\n".join(wrong)


def test_a_class_name_means_one_class() -> None:
    homes = defaultdict(list)
    for path, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(f"{path}:{node.lineno}")
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def test_riddles_are_found() -> None:
    """The broken twins of a sentence, a parameter and a name."""
    code = 'def left(told):\n    """What of it they that asked for those have."""\n'
    assert len(list(faults("a.py", ast.parse(code)))) == 2
    assert not is_riddle("Return the noise scale of one answer, in units of the gap.")
