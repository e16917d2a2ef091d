// Visibility labels: who may learn what. Each has a colour and a dash.

import { drawn, el } from "./elements.js";

const DASHES = ["", "2 3", "6 3", ""];
const THICKNESS = [1.5, 1.8, 1.8, 2.6];

export function labelName(run, level) {
  return level ? run.levels[level - 1].name : "no label";
}

export function whoMayLearn(run, level) {
  if (!level) return "nobody: unknown to the protocol";
  const { who } = run.levels[level - 1];
  return who.length === run.parties.length ? "anybody" : who.join(", ");
}

export function line(level, attributes) {
  return drawn(`line.level-${level}`, {
    "stroke-dasharray": DASHES[level],
    "stroke-width": THICKNESS[level],
    ...attributes,
  });
}

export function badge(run, level) {
  const sample = drawn(
    "svg.sample",
    { viewBox: "0 0 26 8", "aria-hidden": "true" },
    line(level, { x1: 1, x2: 25, y1: 4, y2: 4 }),
  );
  return el(`span.label.level-${level}`, {}, sample, labelName(run, level));
}

export function legend(run) {
  const rows = run.levels.map((one, place) => el("li", {}, badge(run, place + 1), ` ${whoMayLearn(run, place + 1)}`));
  return el("ul.legend", { "aria-label": "Who may learn what: the labels" }, ...rows);
}
