"""Draw docs/people.svg, the README's picture: who was found out in the first trial of the demo, by which answers."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fairwall

PICTURE = Path(__file__).parents[1] / "docs/people.svg"
SIDE, GAP, TOP = 16, 4, 58
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 290">
  <title>100 people: their groups, and a developer's guesses after exact and after noisy answers</title>
  <style>
    .white { fill: #d0d7de } .black { fill: #0072b2 } .wrong { fill: none; stroke: #d55e00; stroke-width: 3 }
    text { font: 14px system-ui, sans-serif; fill: #1f2328 } .name { font-size: 16px; font-weight: 600 }
  </style>
  <rect width="760" height="290" rx="8" fill="#fff"/>"""


def panel(left: int, name: str, below: str, guess: str, group: str) -> Iterator[str]:
    """Draw a square for each person: blue if guessed Black, with a ring if that is wrong."""
    yield f'  <text class="name" x="{left}" y="28">{name}</text>'
    yield f'  <text x="{left}" y="47">{below}</text>'
    for number, (guessed, true) in enumerate(zip(guess, group, strict=True)):
        x, y = left + number % 10 * (SIDE + GAP), TOP + number // 10 * (SIDE + GAP)
        place = f'x="{x}" y="{y}" width="{SIDE}" height="{SIDE}" rx="3"'
        yield f'  <rect class="{"white" if guessed == "1" else "black"}" {place}/>'
        if guessed != true:
            yield f'  <rect class="wrong" {place}/>'


def bits(values: list[int]) -> str:
    """Write groups as text: 1 is White, 0 is Black."""
    return "".join(map(str, values))


def picture() -> str:
    """Play the trial and draw it."""
    with tempfile.TemporaryDirectory() as folder:
        settings: dict[str, Any] = {"developer.strategy": "best", "compliance.epsilon": [math.inf, 10.0]}
        exact, noisy = fairwall.run("demo", trials=1, settings=settings, out=folder, progress=False).trials
    group = bits(exact["trace"]["group"])

    def drawn(left: int, name: str, line: Mapping[str, Any]) -> Iterator[str]:
        right = f"{line['recovered']} of 100 guesses are right"
        return panel(left, name, right, bits(line["trace"]["guess"]), group)

    answers = exact["queries"] + exact["size_queries"]
    parts = [
        *panel(20, "Who is Black (blue)?", "compliance alone knows", group, group),
        *drawn(270, f"After {answers} exact answers", exact),
        *drawn(520, "After noisy ones, ε = 10", noisy),
        '  <text x="20" y="278">A ring is a wrong guess.</text>',
    ]
    return "\n".join([HEAD, *parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
