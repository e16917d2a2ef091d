// One trial: its messages on four lifelines, a scrubber through them, filters, the inspector, and the state.

import { ofTrial } from "./address.js";
import { json } from "./blocks.js";
import { el, plural, replace } from "./elements.js";
import { Inspector } from "./inspector.js";
import { labelName, legend } from "./labels.js";
import { laneHeads, lanes } from "./lanes.js";
import { LongList } from "./longlist.js";
import { onChange, rowHeight } from "./measures.js";
import { State, StateView, summary } from "./state.js";

const PACE_MS = 900;
const ADDRESS_MS = 150;

export class TrialScreen {
  constructor(run) {
    this.run = run;
    this.inspector = new Inspector(run);
    this.stateView = new StateView(run);
    this.list = new LongList({
      label: "Messages, in the order of causes",
      height: rowHeight,
      render: (index) => this.row(index),
      chosen: (index) => this.go(index),
    });
    this.title = el("h1", { tabindex: "-1" });
    this.about = el("p.about");
    this.others = el("nav.others", { "aria-label": "Other trials" });
    this.told = el("p.now", { "aria-live": "polite" });
    this.box = el(
      "div.trial",
      {},
      this.others,
      this.title,
      this.about,
      this.filters(),
      legend(run),
      this.scrubber(),
      el(
        "div.columns",
        {},
        el("div.messages", {}, laneHeads(run), this.list.box),
        el("div.beside", {}, this.stateView.box, this.inspector.box, this.stateView.holdings),
      ),
    );
    onChange(() => this.rows && this.filter(this.at));
    document.addEventListener("keydown", (event) => this.key(event));
  }

  async show(trial, message) {
    if (this.trial !== trial) {
      this.stop();
      this.trial = trial;
      this.title.textContent = `Trial ${trial.id}`;
      const cell = this.run.cells && trial.cell !== undefined ? this.run.cells[trial.cell] : "";
      const outcome = trial.value ? `; ${this.run.headline.name} ${trial.value}` : "";
      this.about.textContent = trial.blocks
        ? `${cell ? `${cell}; ` : ""}${plural(trial.messages, "message")}, ${trial.refused} refused${outcome}`
        : `This page has no room for its messages: fairwall view RUN --trial ${parseInt(trial.id, 10)}`;
      this.neighbours();
      this.rows = trial.blocks ? await json(trial.blocks[0]) : [];
      if (this.trial !== trial) return;
      this.state = new State(this.run, this.rows);
      this.choices();
      this.clear();
      this.at = -1;
    }
    this.filter(Math.min(Math.max(message, 1), this.rows.length) - 1);
    await this.inspected;
  }

  neighbours() {
    const at = this.run.trials.indexOf(this.trial);
    const link = (trial, text) => trial && el("a", { href: ofTrial(trial.id) }, text);
    replace(
      this.others,
      link(this.run.trials[at - 1], "← the trial before"),
      link(this.run.trials[at + 1], "the next trial →"),
    );
  }

  hide() {
    this.stop();
  }

  // The filters, and which rows they leave.

  filters() {
    const changed = () => this.filter(this.at);
    this.party = el("select", { name: "party", onchange: changed });
    this.method = el("select", { name: "method", onchange: changed });
    this.words = el("input", { type: "search", placeholder: "words", oninput: changed });
    this.refused = el("input", { type: "checkbox", onchange: changed });
    this.routine = el("input", { type: "checkbox", onchange: changed });
    this.left = el("output.left");
    return el(
      "form.filters",
      { "aria-label": "Which messages", onsubmit: (event) => event.preventDefault() },
      el("label", {}, "party ", this.party),
      el("label", {}, "method ", this.method),
      el("label", {}, "search ", this.words),
      el("label.check", {}, this.refused, " refusals alone"),
      el("label.check", {}, this.routine, " also messages without content"),
      this.left,
    );
  }

  choices() {
    const fill = (select, names) => {
      replace(select, el("option", { value: "" }, "any"), ...names.map((name) => el("option", { value: name }, name)));
    };
    fill(this.party, this.run.parties);
    fill(this.method, [...new Set(this.rows.map((row) => row.method))].sort());
  }

  clear() {
    this.party.value = this.method.value = this.words.value = "";
    this.refused.checked = this.routine.checked = false;
  }

  passes(row) {
    const words = this.words.value.toLowerCase();
    return (
      (!this.party.value || row.from === this.party.value || row.to === this.party.value) &&
      (!this.method.value || row.method === this.method.value) &&
      (!this.refused.checked || row.kind === "refuses") &&
      (this.routine.checked || !row.routine) &&
      (!words || row.text.toLowerCase().includes(words) || row.method.toLowerCase().includes(words))
    );
  }

  // Shows what the filters leave, and of that the message at an index of the trial, or the next one.
  filter(index) {
    this.kept = [];
    this.rows.forEach((row, place) => {
      if (this.passes(row)) this.kept.push(place);
    });
    const asked = this.rows[index];
    if (asked && asked.routine && !this.routine.checked && index !== this.at && index > 0) {
      this.routine.checked = true; // an address leads to it
      this.filter(index);
      return;
    }
    this.left.textContent = `${this.kept.length.toLocaleString("en")} of ${plural(this.rows.length, "message")}`;
    this.list.show(this.kept.length);
    this.range.max = String(Math.max(this.kept.length, 1));
    const next = this.kept.findIndex((place) => place >= index);
    if (this.kept.length) this.go(next < 0 ? this.kept.length - 1 : next);
    else this.nothing();
  }

  nothing() {
    this.told.textContent = "No message is left.";
    this.inspector.clear("No message is left.");
  }

  // The scrubber.

  scrubber() {
    const button = (name, sign, where) =>
      el("button", { type: "button", "aria-label": name, title: name, onclick: where }, sign);
    this.range = el("input", {
      type: "range",
      min: "1",
      max: "1",
      value: "1",
      "aria-label": "Message",
      oninput: () => this.go(Number(this.range.value) - 1),
    });
    this.playing = button("play", "▶", () => (this.timer ? this.stop() : this.play()));
    return el(
      "div.scrubber",
      { role: "group", "aria-label": "Step through the messages" },
      button("first message", "⇤", () => this.go(0)),
      button("one back", "←", () => this.go(this.cursor - 1)),
      this.playing,
      button("one on", "→", () => this.go(this.cursor + 1)),
      button("last message", "⇥", () => this.go(this.kept.length - 1)),
      this.range,
      this.told,
    );
  }

  play() {
    this.playing.textContent = "❚❚";
    this.playing.setAttribute("aria-label", "pause");
    if (this.cursor >= this.kept.length - 1) this.go(0);
    this.timer = setInterval(
      () => (this.cursor < this.kept.length - 1 ? this.go(this.cursor + 1) : this.stop()),
      PACE_MS,
    );
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    this.playing.textContent = "▶";
    this.playing.setAttribute("aria-label", "play");
  }

  key(event) {
    if (!this.box.isConnected || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.closest("input, select, textarea, summary")) return;
    const inList = event.target === this.list.box;
    const where = {
      ArrowRight: this.cursor + 1,
      ArrowLeft: this.cursor - 1,
      Home: 0,
      End: this.kept.length - 1,
      ...(inList ? { ArrowDown: this.cursor + 1, ArrowUp: this.cursor - 1 } : {}),
    }[event.key];
    if (where === undefined) return;
    event.preventDefault();
    this.go(where);
  }

  // Goes to one of the rows that are left.
  go(cursor) {
    if (!this.kept.length) return;
    this.cursor = Math.min(Math.max(cursor, 0), this.kept.length - 1);
    this.at = this.kept[this.cursor];
    this.list.choose(this.cursor);
    this.range.value = String(this.cursor + 1);
    const row = this.rows[this.at];
    this.range.setAttribute("aria-valuetext", `message ${this.at + 1}, ${row.from} to ${row.to}: ${row.text}`);
    const state = this.state.upTo(this.at);
    this.told.textContent = `${this.at + 1}: ${row.from} → ${row.to}; ${summary(state)}`;
    this.stateView.show(state);
    this.inspected = this.inspector.show(this.trial, this.rows, this.at, [this.cursor, this.kept.length]);
    // A browser takes so many changes of an address only at its leisure.
    clearTimeout(this.addressed);
    const [before, after] = [location.hash, ofTrial(this.trial.id, this.at + 1)];
    this.addressed = setTimeout(() => {
      // Unless it leads elsewhere by now.
      if (this.box.isConnected && location.hash === before) history.replaceState(null, "", after);
    }, ADDRESS_MS);
  }

  row(index) {
    const place = this.kept[index];
    const row = this.rows[place];
    return {
      name: `${place + 1}, ${row.from} to ${row.to}, ${row.kind}, ${labelName(this.run, row.level)}: ${row.text}`,
      content: [
        el("span.place", {}, String(place + 1)),
        lanes(this.run, row, rowHeight()),
        el(`span.text${row.kind === "refuses" ? ".refused" : ""}${row.routine ? ".soft" : ""}`, {}, row.text),
      ],
    };
  }
}
