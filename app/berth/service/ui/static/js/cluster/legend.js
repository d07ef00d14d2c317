import { fill, h } from "../dom.js";
import { count } from "../format.js";
import { MARKS } from "./data.js";

const MARK_WORDS = [
  [MARKS.NOT_READY, "×", "not ready"],
  [MARKS.UNSCHEDULABLE, "∕", "unschedulable"],
  [MARKS.TAINTED, "◥", "tainted"],
];

/** Say what colours and marks mean, and how many nodes have each. */
export function drawLegend(root, coloring, marks) {
  const shown = coloring.classes.filter((each) => each.count || each.token.startsWith("--ramp"));
  fill(
    root,
    h("h2", {}, coloring.title),
    coloring.note && h("p", { class: "muted" }, coloring.note),
    h("ul", { class: "classes" }, shown.map(entry)),
    coloring.counts?.length && [
      h("h3", {}, "Nodes that each filter rejects"),
      h("dl", {}, coloring.counts.map(([name, nodes]) => h("div", {}, h("dt", {}, name), h("dd", {}, count(nodes))))),
    ],
    h("h3", {}, "Marks"),
    h("ul", { class: "marks" }, MARK_WORDS.map((each) => markEntry(each, marks))),
  );
}

function entry({ label, token, sign, count: nodes }) {
  return h(
    "li",
    {},
    h("span", { class: "swatch", style: { background: `var(${token})` }, "aria-hidden": "true" }),
    h("span", { class: "sign", "aria-hidden": "true" }, sign),
    h("span", { class: "label" }, label),
    h("span", { class: "number" }, count(nodes)),
  );
}

function markEntry([bit, sign, words], marks) {
  let nodes = 0;
  for (const each of marks) if (each & bit) nodes += 1;
  return h("li", {}, h("span", { class: "sign", "aria-hidden": "true" }, sign), h("span", { class: "label" }, words), h("span", { class: "number" }, count(nodes)));
}
