// Elements of the page. Whatever a run holds becomes text here, and never markup.

const SVG = "http://www.w3.org/2000/svg";

// el("p.note", {id: "x"}, "text", child): an element with classes, attributes, listeners ("onclick") and children.
export function el(what, attributes = {}, ...children) {
  return build(document.createElement(what.split(".")[0]), what, attributes, children);
}

export function drawn(what, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, what.split(".")[0]), what, attributes, children);
}

function build(made, what, attributes, children) {
  const classes = what.split(".").slice(1);
  if (classes.length) made.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false)
      made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export function replace(parent, ...children) {
  parent.replaceChildren(...children.flat().filter(Boolean));
}

export function plural(number, thing) {
  const name = number === 1 ? thing : { person: "people", query: "queries", reply: "replies" }[thing] || `${thing}s`;
  return `${number.toLocaleString("en")} ${name}`;
}

export function bytesInWords(size) {
  if (size < 1e4) return plural(size, "byte");
  return size < 1e6 ? `${(size / 1e3).toFixed(0)} kB` : `${(size / 1e6).toFixed(1)} MB`;
}
