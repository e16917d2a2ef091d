"""Every sentence that may promise a caller something has a check, or a reason why there is none."""

from __future__ import annotations

import re
from pathlib import Path

from fairwall import toml
from sim.conformance import cases

ROOT = Path(__file__).parents[3]
PROMISES = toml.read(ROOT / "sim" / "conformance" / "promises.toml")
REASONS = PROMISES["reasons"]
PAGES = {page: sections for page, sections in PROMISES.items() if page != "reasons"}
WHOLE = "*"


def sentences(text: str) -> dict[str, list[str]]:
    """A page's sentences by heading, without its code, tables and comments."""
    text = re.sub(r"(?ms)^```.*?^```$|<!--.*?-->", "", text)
    found: dict[str, list[str]] = {}
    for section in re.split(r"(?m)^#+ ", text)[1:]:
        heading, _, body = section.partition("\n")
        lines = [
            "" if line.startswith("|") else re.sub(r"^\s*([*-]|\d+\.)\s+", "\n", line) for line in body.splitlines()
        ]
        blocks = [" ".join(block.split()) for block in re.split(r"\n\s*\n", "\n".join(lines))]
        found[heading.strip()] = [
            sentence for block in blocks if block for sentence in re.split(r"(?<=[.:!?])\s+(?=[A-Z`*\[])", block)
        ]
    return found


def unlike(sections: dict[str, dict[str, object]], found: dict[str, list[str]]) -> list[str]:
    """What of a page is not told of exactly once, and what is told of that is not there."""
    wrong = sorted(set(sections) ^ set(found))
    for heading in set(sections) & set(found):
        told = sections[heading]
        if WHOLE in told:
            wrong += [] if told.keys() == {WHOLE} and isinstance(told[WHOLE], str) else [heading]
            continue
        for sentence in found[heading]:
            if sum(map(sentence.startswith, told)) != 1:
                wrong.append(sentence)
        wrong += [beginning for beginning in told if not any(each.startswith(beginning) for each in found[heading])]
    return wrong


def test_every_sentence_has_a_check_or_a_reason() -> None:
    several = ["protocol.md", "serving.md", "groups.md", "release.md", "operating.md"]
    for page in [*several, "sealed.md", "tables.md", "committed.md", "replicas.md"]:
        assert unlike(PAGES[page], sentences((ROOT / "docs" / page).read_text())) == []


def test_a_new_sentence_and_one_that_is_gone_are_noticed() -> None:
    page = {"A": {"The first ": ["C101"], "The second ": "explains"}, "B": {WHOLE: "game"}}
    assert unlike(page, sentences("# A\n\nThe first one. The second\none.\n\n# B\n\nWhatever. It is.\n")) == []
    assert unlike(page, sentences("# A\n\nThe first one. The third one.\n\n# B\n")) == ["The third one.", "The second "]
    assert unlike(page, sentences("# A\n\nThe first one. The second one.\n\n# B\n\n## C\n\nNew.\n")) == ["C"]


def test_checks_and_reasons_are_there() -> None:
    known = {case.number for kind in ("compliance", "developer", "referee", "client") for case in cases.read(kind)}
    told = [entry for sections in PAGES.values() for section in sections.values() for entry in section.values()]
    assert {number for entry in told if isinstance(entry, list) for number in entry} - known == set()
    assert {entry for entry in told if isinstance(entry, str)} == set(REASONS)
