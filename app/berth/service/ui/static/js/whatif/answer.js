import { h } from "../dom.js";
import { count, counted, percent, quantity } from "../format.js";
import { nodeAddress, podAddress } from "../routes.js";
import { table } from "../table.js";
import { distribution, legend } from "./charts.js";
import { changedNodes, counts, differs, fates, unplaced } from "./outcomes.js";

/** Resources that are charted and listed by node, where the cluster has them. */
const CHARTED = ["cpu", "memory"];
const PODS_NAMED = 3;

/**
 * Return what was answered: the cluster as it is, as it would be, and, if another configuration was
 * asked, as it would be with that.
 * @param {any} answer of `POST /simulate`
 * @param {string} other what the other configuration is called
 */
export function shownAnswer(answer, other) {
  if (answer.removable) return [notes(answer.notes), ...removable(answer.removable, answer.before)];
  const outcomes = answer.compared ? [answer, answer.compared] : [answer];
  const titles = answer.compared ? ["As configured", other] : [answer.nodesNeeded?.count ? "Without more nodes" : "After"];
  return [
    answer.nodesNeeded && triedTable(answer.nodesNeeded),
    outcomeTable(outcomes, titles),
    notes([...answer.notes, answer.admission].filter(Boolean)),
    charts(outcomes, titles),
    unplacedTable(outcomes, titles),
    useTable(outcomes, titles),
    placements(outcomes, titles),
    nodeTable(outcomes, titles),
    outcomes.map((outcome, i) => evicted(outcome, titles[i], outcomes.length > 1)),
  ];
}

/** The answer in one sentence. @param {any} answer @param {string} other */
export function headline(answer, other) {
  if (answer.removable) return canGo(answer.removable.nodes.length, answer.before.nodes);
  if (answer.nodesNeeded) return needed(answer.nodesNeeded);
  const said = sentence(answer);
  if (!answer.compared) return said;
  return `As configured: ${said} ${other}: ${sentence(answer.compared)} ${counted(answer.moved, "pod")} placed differently.`;
}

function sentence(outcome) {
  const found = counts(outcome);
  const [has, all] = found.asked ? [found.askedPlaced, found.asked] : [found.waitingPlaced, found.waiting];
  const kind = found.asked ? "pod" : "waiting pod";
  const undecided = outcome.partial?.undecided.length ?? 0;
  if (undecided) return `So far, ${count(has)} of ${counted(all, kind)} fit. ${count(undecided)} more are undecided.`;
  if (!all) return "No pods to place.";
  const extra = found.evicted ? ` ${counted(found.evicted, "pod")} evicted.` : "";
  if (has === all) return `${all === 1 ? `The ${kind} fits.` : `All ${count(all)} ${kind}s fit.`}${extra}`;
  if (all === 1) return `The ${kind} does not fit.${extra}`;
  return `${count(has)} of ${counted(all, kind)} fit, ${count(all - has)} do not.${extra}`;
}

const canGo = (number, all) => (number ? `${count(number)} of ${counted(all, "node")} can go.` : "No node can go.");

function needed({ count: number, most }) {
  if (number === null) return `Not even ${counted(most, "more node")} would be enough.`;
  return number ? `${counted(number, "more node")} ${number === 1 ? "is" : "are"} needed.` : "It fits on the nodes that are there.";
}

const triedTable = ({ tried }) =>
  plainTable("Tried", ["Nodes added", "Enough"], Object.entries(tried).map(([number, isEnough]) => [count(Number(number)), isEnough ? "yes" : "no"]));

/** Which nodes can go, where their pods would be, and why the others stay. */
function removable({ nodes, stays, withoutController, after }, before) {
  return [
    table({
      caption: "Nodes that can go",
      columns: [
        { name: "node", title: "Node", value: ({ node }) => node, cell: ({ node }) => h("a", { href: nodeAddress(node) }, node) },
        { name: "pods", title: "Pods that move", numeric: true, value: ({ moves: all }) => Object.keys(all).length },
        { name: "targets", title: "To", value: ({ moves: all }) => [...new Set(Object.values(all))].join(", ") },
      ],
      rows: nodes,
      empty: "None.",
      search: nodes.length > 10,
    }),
    withoutController.length > 0 && h("p", { class: "warn" }, `Nobody makes these pods again once they are evicted: ${withoutController.join(", ")}.`),
    stays.length > 0 && plainTable("Nodes that stay", ["Nodes", "Why"], stays.map(({ why, nodes: names }) => [some(names), why]), { isText: true }),
    plainTable("Use", ["", "Now", "Without them"], usedRows([before, after])),
  ];
}

function outcomeTable(outcomes, titles) {
  const found = outcomes.map(counts);
  const of = (part, whole) => (whole ? `${count(part)} of ${count(whole)}` : "–");
  const rows = [
    ["Pods in question with a node", ...found.map((each) => of(each.askedPlaced, each.asked))],
    ["Waiting pods with a node", ...found.map((each) => of(each.waitingPlaced, each.waiting))],
    ["Pods that move", ...found.map((each) => count(each.moved))],
    ["Pods evicted", ...found.map((each) => count(each.evicted))],
    ["Nodes", ...outcomes.map(({ before, after }) => (before.nodes === after.nodes ? count(after.nodes) : `${count(before.nodes)} → ${count(after.nodes)}`))],
  ];
  return plainTable("Outcome", ["", ...titles], rows);
}

function useTable(outcomes, titles) {
  const usages = [outcomes[0].before, ...outcomes.map(({ after }) => after)];
  const shares = (title, field) =>
    Object.keys(usages[0][field])
      .filter((name) => CHARTED.includes(name) || name.includes("/"))
      .map((name) => [`${title} of ${name}`, ...usages.map((usage) => tenths(usage[field][name] ?? 0))]);
  const rows = [...usedRows(usages), ...shares("Fragmentation", "fragmentation"), ...shares("Imbalance", "imbalance")];
  return h(
    "section",
    {},
    plainTable("Use", ["", "Now", ...titles], rows),
    h("p", { class: "note" }, "Fragmentation: share that is free on nodes where a pod, drawn from the typical ones of cluster and question, does not fit. Imbalance: standard deviation of the use over nodes."),
  );
}

const usedRows = (usages) =>
  Object.keys(usages.at(-1).resources).map((name) => [
    name,
    ...usages.map(({ resources }) => {
      const { requested = 0, allocatable = 0 } = resources[name] ?? {};
      return h("span", {}, `${quantity(name, requested)} of ${quantity(name, allocatable)}`, h("strong", {}, percent(requested, allocatable)));
    }),
  ]);

function charts(outcomes, titles) {
  const usages = [outcomes[0].before, ...outcomes.map(({ after }) => after)];
  const names = ["Now", ...titles];
  const charted = Object.keys(usages[0].nodesByShare).filter((name) => CHARTED.includes(name) || name.includes("/"));
  const series = (resource) => usages.map(({ nodesByShare }, i) => ({ name: names[i], counts: nodesByShare[resource] ?? Array(10).fill(0) }));
  return h("section", { class: "charts card" }, h("h2", {}, "Distribution"), legend(names), h("div", { class: "figures" }, charted.map((resource) => distribution(resource, series(resource)))));
}

function unplacedTable(outcomes, titles) {
  const groups = unplaced(outcomes);
  if (!groups.length) return null;
  const rows = groups.map(({ template, message, asked, pods }) => [
    template,
    ...pods.map(({ length }) => count(length)),
    h("span", {}, message, h("span", { class: "pods muted" }, some(pods.find(({ length }) => length)), asked ? "" : " (waits already)")),
  ]);
  const counted = titles.length > 1 ? titles : ["Pods"];
  return plainTable("Without a node", ["Made from", ...counted, "Why"], rows, { isText: true });
}

function placements(outcomes, titles) {
  const column = (title, i) => ({
    name: `after-${i}`,
    title,
    value: ({ after }) => after[i] ?? "no node",
    cell: ({ after, why }) => (after[i] ? after[i] : h("span", { class: "bad", title: why[i] }, "no node")),
  });
  const difference = { name: "differs", title: "Differs", value: (fate) => (differs(fate) ? "differs" : "") };
  const from = { name: "before", title: "Now", value: ({ before }) => before, cell: ({ before, node }) => (node ? h("a", { href: nodeAddress(node) }, node) : before) };
  const pod = { name: "pod", title: "Pod", value: ({ pod: key }) => key, cell: ({ pod: key, before }) => (before === "new" ? key : h("a", { href: podAddress(key) }, key)) };
  return table({
    caption: "Placements",
    columns: [pod, from, ...titles.map(column), ...(outcomes.length > 1 ? [difference] : [])],
    rows: fates(outcomes),
    empty: "No pods to place.",
  });
}

function nodeTable(outcomes, titles) {
  const rows = changedNodes(outcomes);
  const resources = ["cpu", "memory", "pods", ...new Set(rows.flatMap(({ use }) => extended(outcomes).filter((name) => use(name))))];
  const column = (resource) => ({
    name: resource,
    title: resource,
    numeric: true,
    value: ({ use }) => share(use(resource)),
    cell: ({ use }) => shares(use(resource)),
  });
  const node = { name: "node", title: "Node", value: (row) => row.node, cell: (row) => (row.change === "added" ? row.node : h("a", { href: nodeAddress(row.node) }, row.node)) };
  const change = { name: "change", title: "Change", value: (row) => (row.change === "changed" ? "use" : row.change) };
  const shown = table({ caption: `Nodes that change (use now → ${titles.map((title) => title.toLowerCase()).join(" / ")})`, columns: [node, change, ...resources.map(column)], rows, empty: "None." });
  return shown;
}

function evicted({ victims }, title, isCompared) {
  if (!victims.length) return null;
  return table({
    caption: isCompared ? `Evicted: ${title}` : "Evicted",
    columns: [
      { name: "pod", title: "Pod", value: ({ pod }) => pod, cell: ({ pod }) => h("a", { href: podAddress(pod) }, pod) },
      { name: "priority", title: "Priority", numeric: true, value: ({ priority }) => priority },
      { name: "node", title: "Node", value: ({ node }) => node, cell: ({ node }) => h("a", { href: nodeAddress(node) }, node) },
      { name: "preemptor", title: "For", value: ({ preemptor }) => preemptor },
      { name: "target", title: "Then", value: ({ target, why }) => target || why, cell: ({ target, why }) => (target ? h("a", { href: nodeAddress(target) }, target) : h("span", { class: "bad" }, why)) },
    ],
    rows: victims,
    search: victims.length > 10,
  });
}

const notes = (texts) => (texts.length ? h("ul", { class: "notes" }, texts.map((text) => h("li", {}, text))) : null);

const extended = (outcomes) => Object.keys(outcomes[0].after.resources).filter((name) => name.includes("/"));

const share = (use) => (use && use.allocatable ? use.taken.at(-1) / use.allocatable : 0);

const shares = (use) => {
  if (!use) return "–";
  const [before, ...after] = use.taken.map((taken) => percent(taken, use.allocatable));
  return `${before} → ${after.join(" / ")}`;
};

const tenths = (value) => `${(100 * value).toFixed(1)}%`;

const some = (pods) => `${pods.slice(0, PODS_NAMED).join(", ")}${pods.length > PODS_NAMED ? ` and ${count(pods.length - PODS_NAMED)} more` : ""}`;

/** A table with a heading for each row, and numbers in all other columns but, if *isText*, the last. */
function plainTable(title, headings, rows, { isText = false } = {}) {
  const isNumber = (i) => i > 0 && !(isText && i === headings.length - 1);
  return h(
    "section",
    { class: isText ? "plain text" : "plain" },
    h("h2", {}, title),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
      h("table", {}, h("caption", { class: "hidden" }, title),
        h("thead", {}, h("tr", {}, headings.map((text, i) => (text ? h("th", { scope: "col", class: isNumber(i) && "number" }, text) : h("td", {}))))),
        h("tbody", {}, rows.map(([first, ...others]) => h("tr", {}, h("th", { scope: "row" }, first), others.map((cell, i) => h("td", { class: isNumber(i + 1) && "number" }, cell))))))),
  );
}
