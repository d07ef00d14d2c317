import { h } from "../dom.js";
import { count, counted, percent } from "../format.js";

/**
 * How many nodes each plugin takes out, as bars: what is left, and what it takes.
 * @param {{numNodes: number, numFeasible: number, funnel: any[]}} evaluation
 */
export function funnel({ numNodes, numFeasible, funnel: steps }) {
  if (!numNodes) return h("p", { class: "card" }, "There are no nodes.");
  if (!steps.length) return null;
  const rows = steps.map((step, i) => row(step, numNodes, i ? steps[i - 1].numLeft : numNodes));
  return h(
    "section",
    { class: "funnel", "aria-labelledby": "funnel" },
    h("h2", { id: "funnel" }, `Filters: ${count(numFeasible)} of ${counted(numNodes, "node")} left`),
    h(
      "p",
      { class: "muted" },
      "In the order in which the plugins are asked. A node counts for the first plugin that rejects it.",
    ),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Nodes left by plugin" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["Plugin", "Rejects", "Left", "", "Why", "Against", "Alone"].map((title, i) =>
              h("th", { scope: "col", class: [1, 2, 5, 6].includes(i) && "number", title: HELP[title] }, title || h("span", { class: "hidden" }, "Left, as a bar")),
            ),
          ),
        ),
        h(
          "tbody",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "row" }, "All nodes"),
            h("td"),
            number(numNodes),
            bar(numNodes, 0, numNodes),
            h("td"),
            h("td"),
            h("td"),
          ),
          rows,
        ),
      ),
    ),
    h(
      "p",
      { class: "note" },
      "Against: all nodes that the plugin rejects, also where another one came first. Alone: nodes that only this plugin rejects.",
    ),
  );
}

const HELP = {
  Rejects: "Nodes that are charged to the plugin",
  Against: "All nodes that it rejects, also where another plugin came first",
  Alone: "Nodes that only this plugin rejects",
};

function row(step, all, before) {
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, step.plugin || "PreFilter"),
    number(step.numRejected, "bad"),
    number(step.numLeft),
    bar(step.numLeft, before - step.numLeft, all),
    h(
      "td",
      { class: "why" },
      Object.entries(step.reasons).map(([reason, n]) => h("div", {}, `${reason}: ${count(n)}`)),
    ),
    number(step.numAgainst),
    number(step.numOnly),
  );
}

const number = (value, tone) => h("td", { class: `number ${tone ?? ""}` }, count(value));

function bar(left, taken, all) {
  const part = (name, n) => n > 0 && h("span", { class: name, style: { width: `${(100 * n) / all}%` } });
  const label = `${percent(left, all)} of all nodes left`;
  return h(
    "td",
    { class: "bars" },
    h("span", { class: "bar", role: "img", "aria-label": label }, part("left", left), part("taken", taken)),
  );
}
