// Two runs side by side, or one as it was recorded and as it was played again, opened at the first difference.

import { ofTrial } from "./address.js";
import { json } from "./blocks.js";
import { el, plural, replace } from "./elements.js";
import { Inspector } from "./inspector.js";
import { LongList } from "./longlist.js";
import { onChange, rowHeight } from "./measures.js";

export class BesideScreen {
  constructor(run) {
    this.run = run;
    const { name, difference, trials } = run.beside;
    this.pairs = [];
    this.list = new LongList({
      label: `Messages here, and in ${name}`,
      height: () => rowHeight() + 16,
      render: (index) => this.row(index),
      chosen: (index) => this.choose(index),
    });
    this.inspectors = [new Inspector(run), new Inspector(run)];
    const common = run.trials.filter((trial) => trials.some((other) => other.id === trial.id));
    this.select = el(
      "select",
      { onchange: () => this.show(this.select.value) },
      ...common.map((trial) => el("option", { value: trial.id }, trial.id)),
    );
    this.told = el("p.about");
    this.box = el(
      "div.compare",
      {},
      el("h1", { tabindex: "-1" }, `Beside ${name}`),
      el(
        `p.verdict${difference ? ".warn" : ".good"}`,
        {},
        difference ? `The first that differs: ${difference.text}` : "No message differs.",
      ),
      difference &&
        difference.at &&
        el(
          "p",
          {},
          el("a", { href: ofTrial(...difference.at) }, `trial ${difference.at[0]}, message ${difference.at[1]}`),
        ),
      el(
        "form.filters",
        { onsubmit: (event) => event.preventDefault() },
        el("label", {}, "trial ", this.select),
        el("button", { type: "button", onclick: () => this.next() }, "next difference"),
      ),
      this.told,
      el("div.heads", { "aria-hidden": "true" }, el("span", {}, "recorded"), el("span", {}, name)),
      this.list.box,
      el("div.pair", {}, ...this.inspectors.map((inspector) => inspector.box)),
    );
    this.list.box.addEventListener("keydown", (event) => this.key(event));
    onChange(() => this.list.show(this.pairs.length));
    const first = difference && difference.at ? difference.at[0] : common.length ? common[0].id : null;
    if (first !== null) {
      this.select.value = first;
      this.ready = this.show(first, difference && difference.at ? difference.at[1] - 1 : undefined);
    }
  }

  async show(id, message) {
    const [own, other] = [this.run.trials, this.run.beside.trials].map((trials) =>
      trials.find((trial) => trial.id === id),
    );
    const [here, there] = await Promise.all([own, other].map((trial) => (trial.blocks ? json(trial.blocks[0]) : [])));
    this.pairs = paired(here, there);
    this.sides = [
      [own, here],
      [other, there],
    ];
    const differing = this.pairs.filter((pair) => pair.differs).length;
    this.told.textContent = `${plural(this.pairs.length, "message")}, ${differing} otherwise`;
    this.list.show(this.pairs.length);
    const at =
      message === undefined
        ? this.pairs.findIndex((pair) => pair.differs)
        : this.pairs.findIndex((pair) => pair.place === message);
    if (this.pairs.length) await this.choose(Math.max(at, 0));
  }

  // Shows both messages of a pair, and marks the fields that differ.
  async choose(index) {
    this.list.choose(index);
    const pair = this.pairs[index];
    await Promise.all(
      [pair.place, pair.otherPlace].map((place, side) => {
        const [trial, rows] = this.sides[side];
        return place >= 0 ? this.inspectors[side].show(trial, rows, place) : this.inspectors[side].clear("Not said.");
      }),
    );
    if (this.list.current !== index) return;
    this.inspectors[0].compare(this.inspectors[1]);
    this.inspectors[1].compare(this.inspectors[0]);
  }

  next() {
    const at = this.pairs.findIndex((pair, index) => pair.differs && index > this.list.current);
    if (at >= 0) this.choose(at);
  }

  key(event) {
    const where = {
      ArrowDown: this.list.current + 1,
      ArrowUp: this.list.current - 1,
      Home: 0,
      End: this.pairs.length - 1,
    }[event.key];
    if (where === undefined || !this.pairs[where]) return;
    event.preventDefault();
    this.choose(where);
  }

  row(index) {
    const { here, there, differs } = this.pairs[index];
    const say = (row) => (row ? `${row.from} → ${row.to}: ${row.text}` : "not said");
    return {
      name: `${differs ? "otherwise" : "the same"}: ${say(here)}${differs ? `; there: ${say(there)}` : ""}`,
      content: [
        el(`span.mark${differs ? ".warn" : ""}`, {}, differs ? "≠" : "="),
        el("span.text", {}, say(here)),
        el(`span.text${differs ? "" : ".soft"}`, {}, say(there)),
      ],
    };
  }
}

// Lays the messages of one method between the same parties side by side, in their order.
function paired(here, there) {
  const known = new Map();
  const key = (row, times) => {
    const name = [row.from, row.to, row.method, row.kind === "asks"].join(" ");
    times.set(name, (times.get(name) || 0) + 1);
    return `${name} ${times.get(name)}`;
  };
  const counts = new Map();
  there.forEach((row, place) => known.set(key(row, counts), { row, place }));
  const times = new Map();
  const pairs = here.map((row, place) => {
    const name = key(row, times);
    const other = known.get(name);
    known.delete(name);
    const differs = !other || other.row.digest !== row.digest;
    return { here: row, there: other && other.row, place, otherPlace: other ? other.place : -1, differs };
  });
  return [
    ...pairs,
    ...[...known.values()].map(({ row, place }) => ({ there: row, place: -1, otherPlace: place, differs: true })),
  ];
}
