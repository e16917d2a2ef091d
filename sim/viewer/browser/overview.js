// All trials: a row for each cell of the sweep, a square for each trial in the colour of its outcome.

import { ofTrial } from "./address.js";
import { el, plural, replace } from "./elements.js";
import { cellHeight, onChange } from "./measures.js";

const CELLS_WHOLE = 2000;

export class Overview {
  constructor(run) {
    this.run = run;
    this.cells = byCell(run);
    this.search = el("input", {
      type: "search",
      placeholder: "settings, trial 3, open, finding",
      oninput: () => this.fill(),
    });
    this.found = el("output.left");
    this.rows = el("div.cells");
    this.box = el(
      "div.trials",
      {},
      el("h1", { tabindex: "-1" }, run.as ? `The game as the ${run.as} saw it` : "All trials"),
      run.about && el("p.lead", {}, run.about),
      el(
        "p",
        {},
        `A square is a trial${run.headline ? `, the stronger its colour the more came out: ${run.headline.text}` : ""}. `,
        "Open one to see message by message who said what to whom, and who may know it.",
      ),
      this.badges(),
      el(
        "form.filters",
        { "aria-label": "Which trials", onsubmit: (event) => event.preventDefault() },
        el("label", {}, "search ", this.search),
        this.found,
      ),
      this.rows,
      el("dl.facts", {}, ...run.facts.flatMap(([term, text]) => [el("dt", {}, term), el("dd", {}, text)])),
    );
    window.addEventListener("scroll", () => this.box.isConnected && this.virtual && this.place(), { passive: true });
    onChange(() => this.fill());
    this.fill();
  }

  badges() {
    const { checked, trials } = this.run;
    const count = (badge) => trials.filter((trial) => trial.record.includes(badge)).length;
    const findings = checked && checked.findings.length;
    return el(
      "ul.badges",
      { "aria-label": "What is known of the record" },
      checked &&
        el(
          `li.badge.${findings ? "warn" : "good"}`,
          {},
          el("a", { href: "#findings" }, findings ? plural(findings, "finding") : "✓ verified: no findings"),
        ),
      ...["open", "digest only"]
        .filter(count)
        .map((badge) => el("li.badge.warn", {}, `${plural(count(badge), "trial")} ${badge}`)),
    );
  }

  fill() {
    const words = this.search.value.trim().toLowerCase();
    const kept = (name, trial) => !words || textOf(name, trial).includes(words);
    this.left = this.cells
      .map(({ name, trials }) => ({ name, trials: trials.filter((trial) => kept(name, trial)) }))
      .filter(({ trials }) => trials.length);
    this.found.textContent = plural(
      this.left.reduce((sum, { trials }) => sum + trials.length, 0),
      "trial",
    );
    this.virtual = this.left.length > CELLS_WHOLE;
    this.rows.classList.toggle("virtual", this.virtual);
    this.rows.style.height = this.virtual ? `${this.left.length * cellHeight()}px` : "";
    if (this.virtual) this.place();
    else replace(this.rows, ...this.left.map((cell) => this.row(cell)));
  }

  // Of many cells only those in view are in the page.
  place() {
    const above = -this.rows.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(above / cellHeight()) - 5);
    const last = Math.min(this.left.length, Math.ceil((above + window.innerHeight) / cellHeight()) + 5);
    replace(
      this.rows,
      ...this.left.slice(first, last).map((cell, number) => {
        const row = this.row(cell);
        row.style.top = `${(first + number) * cellHeight()}px`;
        return row;
      }),
    );
  }

  row({ name, trials }) {
    const squares = trials.map((trial) => {
      const marks = [
        ...trial.record,
        ...(trial.findings ? [plural(trial.findings, "finding")] : []),
        ...(trial.blocks ? [] : ["not in this page"]),
      ];
      const said = [`trial ${trial.id}`, trial.value, plural(trial.messages, "message"), ...marks]
        .filter(Boolean)
        .join(", ");
      return el(
        "li",
        {},
        el(
          `a.square${trial.step === undefined ? "" : `.step-${trial.step}`}${marks.length ? ".marked" : ""}`,
          { href: ofTrial(trial.id), "aria-label": said, title: said },
          trial.value || trial.id,
        ),
      );
    });
    return el(
      "div.cell",
      {},
      name && el("h2", {}, name),
      el("ul.squares", { "aria-label": `Trials of ${name || "the run"}` }, ...squares),
    );
  }
}

function byCell(run) {
  const cells = new Map();
  const findings = run.checked ? run.checked.findings : [];
  for (const trial of run.trials) {
    trial.findings = findings.filter((one) => one.at && one.at[0] === trial.id).length;
    const name = run.cells && trial.cell !== undefined ? run.cells[trial.cell] : "";
    if (!cells.has(name)) cells.set(name, { name, trials: [] });
    cells.get(name).trials.push(trial);
  }
  return [...cells.values()];
}

function textOf(name, trial) {
  const findings = trial.findings ? "finding" : "verified";
  return [name, `trial ${trial.id}`, trial.value, ...trial.record, findings, trial.refused ? "refused" : ""]
    .join(" ")
    .toLowerCase();
}
