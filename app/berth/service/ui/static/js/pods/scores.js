import { nodeLink } from "../cells.js";
import { fill, h } from "../dom.js";
import { count, counted, moment } from "../format.js";
import { setQuery } from "../routes.js";

const NODES_SHOWN = 5;
const LEGEND = "Raw score → normalised × weight = points. The difference is that of the best node to the runner-up.";

/**
 * Why this node: the scores of the best nodes, as they were when the decision was made, or as they
 * would be now.
 * @param {any} told an explanation @param {string | null} source "then" or "now", if somebody chose
 */
export function whyHere({ history, evaluation, state }, source) {
  const record = history.find((past) => past.node && past.node === state.node);
  const views = {
    then: record && {
      title: `As recorded when it was decided, at ${moment(record.at)}`,
      choice: record.choice,
      best: record.best,
      feasible: record,
    },
    now: evaluation?.choice && {
      title: titleNow(state),
      choice: evaluation.choice,
      best: scored(evaluation),
      feasible: evaluation,
    },
  };
  const body = h("div", {});
  const buttons = Object.entries({ then: "When it was decided", now: "Now" }).map(([name, text]) =>
    h("button", { type: "button", onclick: () => (setQuery({ scores: name }), draw(name)) }, text),
  );
  const names = Object.keys(views);

  function draw(name) {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(names[i] === name)));
    fill(body, scores({ ...views[name], own: state.node }));
  }

  const first = names.includes(source) && views[source] ? source : views.then ? "then" : "now";
  const heading = h("h2", { id: "why-here" }, state.node ? `Why ${state.node}` : "Where it would go");
  if (!views[first]) {
    return state.node
      ? h(
          "section",
          { "aria-labelledby": "why-here" },
          heading,
          h("p", {}, "The decision is not remembered any more, and the pod would fit nowhere now."),
        )
      : null;
  }
  draw(first);
  return h(
    "section",
    { class: "scores", "aria-labelledby": "why-here" },
    heading,
    views.then && views.now && h("p", { class: "choose" }, buttons),
    body,
  );
}

const titleNow = (state) =>
  state.node
    ? "Evaluated on the cluster as it is now, as if the pod had no node yet"
    : "Evaluated on the cluster as it is now";
const scored = ({ nodes }) =>
  nodes
    .map(({ score }) => score)
    .filter(Boolean)
    .slice(0, NODES_SHOWN);

function scores({ title, choice, best, feasible, own }) {
  return [
    h(
      "p",
      { class: "muted" },
      `${title}. ${count(feasible.numFeasible)} of ${counted(feasible.numNodes, "node")} could take it.`,
    ),
    h("p", { class: "summary" }, choice.words),
    best.length > 0 &&
      Object.keys(best[0].plugins).length > 0 && [scoreTable(choice, best, own), h("p", { class: "note" }, LEGEND)],
  ];
}

const signed = (value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${count(Math.abs(value))}`;

/** A row for each plugin, a column for each of the best nodes, the best one first; *own* is the pod's. */
function scoreTable(choice, best, own) {
  const nodes = [...best].sort((a, b) => Number(b.node === choice.node) - Number(a.node === choice.node));
  const plugins = Object.keys(nodes[0].plugins);
  const hasExtenders = nodes.some(({ extenders }) => extenders);
  const role = (node) =>
    [node === choice.node && "best", node === choice.runnerUp && "runner-up", node === own && "the pod's node"]
      .filter(Boolean)
      .join(", ");
  const heads = nodes.map(({ node }) =>
    h("th", { scope: "col", class: "number" }, nodeLink(node), h("div", { class: "muted" }, role(node))),
  );
  const rows = plugins.map((plugin) =>
    h(
      "tr",
      { class: plugin === choice.decidedBy && "decides" },
      h("th", { scope: "row" }, plugin, plugin === choice.decidedBy && h("div", { class: "muted" }, "decides")),
      nodes.map((node) => cell(node.plugins[plugin])),
      difference(choice.differences[plugin]),
    ),
  );
  const total = h(
    "tr",
    { class: "total" },
    h("th", { scope: "row" }, "Total"),
    nodes.map((node) => h("td", { class: "number" }, count(node.total))),
    difference(choice.runnerUp ? choice.total - choice.runnerUpTotal : undefined),
  );
  const titles = [h("th", { scope: "col" }, "Plugin"), heads, h("th", { scope: "col", class: "number" }, "Difference")];
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Scores" },
    h(
      "table",
      {},
      h("caption", { class: "hidden" }, "Scores by plugin and node"),
      h("thead", {}, h("tr", {}, titles)),
      h("tbody", {}, rows, hasExtenders && extenders(nodes, choice), total),
    ),
  );
}

function cell(score) {
  if (!score) return h("td", { class: "number" }, "–");
  return h(
    "td",
    { class: "number" },
    h("span", { class: "muted" }, `${count(score.raw)} → ${count(score.normalized)} × ${count(score.weight)} = `),
    h("strong", {}, count(score.weighted)),
  );
}

const extenders = (nodes, choice) =>
  h(
    "tr",
    {},
    h("th", { scope: "row" }, "Extenders"),
    nodes.map((node) => h("td", { class: "number" }, count(node.extenders))),
    difference(choice.differences.extenders),
  );

const difference = (value) => h("td", { class: "number" }, value === undefined ? "" : signed(value));
