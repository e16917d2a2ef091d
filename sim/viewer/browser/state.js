// What is known at the cursor: what each party holds, how many answers there are, how much of epsilon is left.

import { el, plural, replace } from "./elements.js";
import { badge } from "./labels.js";
import { peopleView } from "./people.js";

// Follows a trial's rows from the first one on; going back begins anew.
export class State {
  constructor(run, rows) {
    this.run = run;
    this.rows = rows;
    this.begin();
  }

  begin() {
    this.next = 0;
    this.holds = new Map(this.run.parties.map((party) => [party, new Map()]));
    this.has = null;
    this.guess = null;
  }

  // Takes in all rows up to one, that one included.
  upTo(index) {
    if (index + 1 < this.next) this.begin();
    for (; this.next <= index; this.next++) this.take(this.rows[this.next]);
    return this;
  }

  take(row) {
    const held = this.holds.get(row.to);
    for (const [name, level, shape] of held ? row.holds || [] : []) {
      const known = held.get(name) || { level, shape, times: 0 };
      held.set(name, { level: Math.max(level, known.level), shape, times: known.times + 1 });
    }
    this.has = row.has || this.has;
    this.guess = row.guess || this.guess;
  }
}

export class StateView {
  constructor(run) {
    this.run = run;
    this.figures = el("dl.figures");
    this.parties = el("div.holdings");
    this.people = el("div");
    this.guess = null;
    this.box = el("section.state", { "aria-label": "What is known by now" }, this.figures, this.people);
    this.holdings = el(
      "section.state",
      { "aria-label": "What each party holds by now" },
      el("h2", {}, "Who holds what by now"),
      this.parties,
    );
  }

  show(state) {
    const [answers, left] = state.has || [0, null];
    replace(
      this.figures,
      el("div", {}, el("dt", {}, "answers so far"), el("dd", {}, answers.toLocaleString("en"))),
      left !== null && el("div", {}, el("dt", {}, "ε left"), el("dd", {}, left)),
    );
    replace(
      this.parties,
      ...this.run.parties
        .filter((party) => !this.run.as || party === this.run.as)
        .map((party) => this.holding(party, state.holds.get(party))),
    );
    this.showPeople(state.guess);
  }

  holding(party, held) {
    const rows = [...held].map(([name, { level, shape, times }]) =>
      el(
        "li",
        {},
        badge(this.run, level),
        ` ${name} `,
        el(
          "span.soft",
          {},
          `${shape.map((length) => length.toLocaleString("en")).join(" × ")}${times > 1 ? `, ${times} times` : ""}`,
        ),
      ),
    );
    return el(
      "div.party",
      {},
      el("h3", {}, party),
      rows.length ? el("ul", {}, ...rows) : el("p.soft", {}, "nothing that was sent as an array"),
    );
  }

  async showPeople(guess) {
    if (guess === this.guess) return;
    this.guess = guess;
    if (!guess) {
      replace(this.people);
      return;
    }
    const view = await peopleView(guess, this.run.as);
    if (guess === this.guess)
      replace(this.people, el("h3", {}, guess.of === "person" ? "The people" : `The ${guess.of}s`), view);
  }
}

export function summary(state) {
  const [answers, left] = state.has || [0, null];
  return `${plural(answers, "answer")} so far${left === null ? "" : `, ε left ${left}`}`;
}
