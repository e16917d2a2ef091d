// The people, or models, that a party guesses about: a square for each, wrong guesses ringed.

import { drawn, el, plural, replace } from "./elements.js";
import { bytesAt } from "./blocks.js";

const SHOWN = 2000;
const SIDE = 14;

export async function peopleView(guess, party) {
  const [made, before, truth] = await Promise.all(
    [guess.made, guess.before, guess.true].map((place) => (place ? bytesAt(place) : null)),
  );
  if (!made) return el("p.note", {}, "The guesses have no room in this page.");
  const grid = el("div");
  const show = (values) => replace(grid, ...drawnGrid(guess, values, truth, party));
  const choices = before
    ? choice(
        [
          ["with the answers", made],
          ["before any answer", before],
        ],
        show,
      )
    : null;
  show(made);
  return el("div.people", {}, choices, grid);
}

function choice(ways, show) {
  const buttons = ways.map(([name, values], number) =>
    el(
      "button",
      {
        type: "button",
        "aria-pressed": String(number === 0),
        onclick: (event) => {
          buttons.forEach((one) => one.setAttribute("aria-pressed", String(one === event.currentTarget)));
          show(values);
        },
      },
      name,
    ),
  );
  return el("div.choice", { role: "group", "aria-label": "Which guess" }, ...buttons);
}

function drawnGrid(guess, values, truth, party) {
  const name = (value) => guess.names[value] ?? `group ${value}`;
  const shown = Math.min(values.length, SHOWN);
  const columns = shown > 200 ? 50 : 25;
  const wrong = truth ? values.reduce((count, value, person) => count + (value !== truth[person]), 0) : 0;
  const said = truth
    ? `right for ${(values.length - wrong).toLocaleString("en")} of ${plural(values.length, guess.of)}`
    : `guessed for ${plural(values.length, guess.of)}; who is right is ${party ? "not for these eyes" : "in no message"}`;
  const squares = [];
  for (let person = 0; person < shown; person++) {
    const [x, y] = [(person % columns) * SIDE, Math.floor(person / columns) * SIDE];
    const own = truth ? truth[person] : values[person];
    const is_wrong = truth && values[person] !== own;
    squares.push(
      drawn(
        "g",
        {},
        drawn("title", {}, truth ? `is ${name(own)}, taken for ${name(values[person])}` : `taken for ${name(own)}`),
        drawn(`rect.group-${Math.min(own, 6)}`, {
          x: x + 2,
          y: y + 2,
          width: SIDE - 4,
          height: SIDE - 4,
          rx: own % 2 ? 5 : 1,
        }),
        is_wrong && drawn("rect.wrong", { x: x + 1, y: y + 1, width: SIDE - 2, height: SIDE - 2, rx: 3 }),
      ),
    );
  }
  const rows = Math.ceil(shown / columns);
  const groups = [...new Set(truth || values)].sort((a, b) => a - b);
  const key = groups.map((value) =>
    el(
      "li",
      {},
      drawn(
        "svg.sample-square",
        { viewBox: "0 0 14 14", "aria-hidden": "true" },
        drawn(`rect.group-${Math.min(value, 6)}`, { x: 2, y: 2, width: 10, height: 10, rx: value % 2 ? 5 : 1 }),
      ),
      ` ${truth ? "is" : "taken for"} ${name(value)}`,
    ),
  );
  if (truth) {
    key.push(
      el(
        "li",
        {},
        drawn(
          "svg.sample-square",
          { viewBox: "0 0 14 14", "aria-hidden": "true" },
          drawn("rect.wrong", { x: 1, y: 1, width: 12, height: 12, rx: 3 }),
        ),
        " guessed wrong",
      ),
    );
  }
  return [
    el("p.told", {}, said),
    drawn(
      "svg.grid",
      { viewBox: `0 0 ${columns * SIDE} ${rows * SIDE}`, role: "img", "aria-label": `A square for each: ${said}` },
      ...squares,
    ),
    el("ul.legend", {}, ...key),
    shown < values.length && el("p.note", {}, `The first ${shown.toLocaleString("en")} are drawn.`),
  ];
}
