// A list box of rows of one height. From 2,001 rows on only those in view are in the page.

import { el } from "./elements.js";

const ROWS_WHOLE = 2000;
const MARGIN = 12;

export class LongList {
  // `render(index)` gives a row's content and its name; `chosen(index)` is told which row was chosen.
  constructor({ label, height, render, chosen }) {
    this.height = height;
    this.render = render;
    this.count = 0;
    this.shown = new Map();
    this.current = -1;
    this.inside = el("div.rows", { role: "presentation" });
    this.box = el(
      "div.long-list",
      { role: "listbox", tabindex: "0", "aria-label": label, onscroll: () => this.fill() },
      this.inside,
    );
    this.box.addEventListener("click", (event) => {
      const row = event.target.closest("[data-index]");
      if (row) chosen(Number(row.dataset.index));
    });
    new ResizeObserver(() => this.fill()).observe(this.box);
  }

  show(count) {
    this.count = count;
    this.current = -1;
    this.shown = new Map();
    this.inside.replaceChildren();
    this.inside.style.height = `${count * this.height()}px`;
    this.fill();
  }

  choose(index) {
    const before = this.shown.get(this.current);
    this.current = index;
    if (before) this.mark(before);
    this.reveal();
    this.fill();
    this.shown.forEach((row) => this.mark(row));
    this.box.setAttribute("aria-activedescendant", `row-${index}`);
  }

  reveal() {
    const top = this.current * this.height();
    const { scrollTop, clientHeight } = this.box;
    if (top < scrollTop + this.height()) this.box.scrollTop = top - this.height();
    else if (top + 2 * this.height() > scrollTop + clientHeight)
      this.box.scrollTop = top + 2 * this.height() - clientHeight;
  }

  mark(row) {
    const index = Number(row.dataset.index);
    row.setAttribute("aria-selected", String(index === this.current));
    row.classList.toggle("later", index > this.current);
  }

  fill() {
    const height = this.height();
    const virtual = this.count > ROWS_WHOLE;
    const first = virtual ? Math.max(0, Math.floor(this.box.scrollTop / height) - MARGIN) : 0;
    const last = virtual
      ? Math.min(this.count, Math.ceil((this.box.scrollTop + this.box.clientHeight) / height) + MARGIN)
      : this.count;
    for (const [index, row] of this.shown) {
      if (index < first || index >= last) {
        row.remove();
        this.shown.delete(index);
      }
    }
    for (let index = first; index < last; index++) {
      if (this.shown.has(index)) continue;
      const { name, content } = this.render(index);
      const row = el(
        "div.row",
        {
          role: "option",
          id: `row-${index}`,
          "data-index": index,
          "aria-label": name,
          "aria-setsize": this.count,
          "aria-posinset": index + 1,
        },
        ...content,
      );
      row.style.top = `${index * height}px`;
      row.style.height = `${height}px`;
      this.mark(row);
      this.shown.set(index, row);
      this.inside.append(row);
    }
  }
}
