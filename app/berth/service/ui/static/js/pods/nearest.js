import { nodeLink } from "../cells.js";
import { h } from "../dom.js";
import { count } from "../format.js";

/** The smallest change that would do, the nodes that come next, and what is held against each. */
export function nearest({ nearestMiss, nextMisses, nodes, numNodes, findings, message, error, refusedBy, advice }) {
  if (error) return null;
  if (refusedBy.length) return refused(advice, message);
  return [
    h(
      "section",
      { class: "card", "aria-labelledby": "nearest" },
      h("h2", { id: "nearest" }, "Smallest change that would do"),
      nearestMiss
        ? misses([nearestMiss, ...nextMisses])
        : h("p", {}, "Nothing that an operator could change on a node would do."),
      findings.length > 0 &&
        h(
          "ul",
          { class: "notes" },
          findings.map((each) => h("li", {}, each)),
        ),
    ),
    h("details", {}, h("summary", {}, "FailedScheduling message"), h("p", { class: "message" }, message)),
    nodes.length > 0 && nodesTable(nodes, numNodes),
  ];
}

/** What would help a pod that is rejected whatever the nodes are like. */
function refused(advice, message) {
  return [
    advice.length > 0 &&
      h(
        "section",
        { class: "card", "aria-labelledby": "advice" },
        h("h2", { id: "advice" }, "What would help"),
        h("ul", { class: "notes" }, advice.map((each) => h("li", {}, each))),
      ),
    h("details", {}, h("summary", {}, "FailedScheduling message"), h("p", { class: "message" }, message)),
  ];
}

function misses(all) {
  return h(
    "ol",
    { class: "misses" },
    all.map((miss) =>
      h(
        "li",
        {},
        nodeLink(miss.node),
        ` ${miss.words.slice(miss.node.length + (miss.words[miss.node.length] === ":" ? 2 : 0))}`,
      ),
    ),
  );
}

function nodesTable(nodes, numNodes) {
  const rows = nodes.map((verdict) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, nodeLink(verdict.node)),
      h(
        "td",
        {},
        verdict.obstacles.map((each) => h("div", {}, h("strong", {}, each.plugin || "PreFilter"), `: ${why(each)}`)),
        verdict.beside.length > 0 &&
          h("div", { class: "muted" }, `beside ${verdict.beside.join(", ")}, nominated to it`),
        !verdict.obstacles.length && "not evaluated",
      ),
    ),
  );
  return h(
    "details",
    { class: "verdicts" },
    h(
      "summary",
      {},
      `What is held against ${nodes.length < numNodes ? `the nearest ${count(nodes.length)} of ${count(numNodes)} nodes` : "each node"}`,
    ),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Nodes" },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Node"), h("th", { scope: "col" }, "Why not"))),
        h("tbody", {}, rows),
      ),
    ),
  );
}

const why = (obstacle) => obstacle.details.map(({ message }) => message).join("; ") || obstacle.reasons.join(", ");
