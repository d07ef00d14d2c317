import { get, segment, url } from "../api.js";
import { fill, h } from "../dom.js";
import { count, moment, quantity } from "../format.js";
import { list, nodeLink, pluginLinks, podLink } from "../cells.js";
import { repeat } from "../repeat.js";
import { address } from "../routes.js";
import { sources } from "../sources.js";
import { table } from "../table.js";

const SECONDS = 5;

const BLOCKED = [
  { name: "pods", title: "Pods", value: ({ pods }) => pods.join(" "), cell: ({ pods }) => list(pods, podLink) },
  { name: "plugins", title: "Rejected by", value: ({ plugins }) => plugins.join(" "), cell: ({ plugins }) => pluginLinks("queue", plugins) },
  { name: "message", title: "Message", detail: true, value: ({ message }) => message },
];

const PLACEMENTS = [
  { name: "placement", title: "Placement", value: ({ placement }) => placement },
  { name: "nodes", title: "Nodes", numeric: true, value: ({ nodes }) => nodes, cell: ({ nodes }) => count(nodes) },
  { name: "fit", title: "Members that fit", numeric: true, value: ({ numFit }) => numFit, cell: ({ numFit }) => count(numFit) },
  { name: "start", title: "Can start", value: ({ canStart, isChosen }) => (isChosen ? "chosen" : canStart ? "yes" : "no") },
  { name: "total", title: "Score", numeric: true, value: ({ total }) => total, cell: ({ total }) => total !== null && count(total) },
  { name: "free", title: "Free", value: ({ free }) => amounts(free) },
  { name: "message", title: "Message", detail: true, value: ({ message }) => message },
];

/**
 * Show one pod group: why it waits, and what would let it start.
 * @param {import("../main.js").View} view
 * @param {string[]} path namespace and name
 */
export async function showGroup(view, path) {
  const [namespace, name] = path;
  const endpoint = `explain/podgroups/${path.map(segment).join("/")}`;
  view.title(`Pod group ${namespace}/${name}`);
  const summary = h("section", { class: "card" });
  const facts = h("dl", { class: "facts" });
  const blocked = table({ caption: "Pods without a node", columns: BLOCKED, empty: "None is blocked.", search: false });
  const placements = table({ caption: "Placements", columns: PLACEMENTS, search: false });

  await repeat(SECONDS, view.signal, async () => {
    const group = await get(endpoint, {}, { signal: view.signal });
    fill(summary, h("p", {}, group.summary), group.notes.map((note) => h("p", { class: "muted" }, note)));
    factsOf(facts, group);
    blocked.update(group.blocked);
    placements.update(group.placements);
    placements.hidden = !group.placements.length;
  });
  fill(
    view.root,
    h("p", {}, h("a", { href: address("groups") }, "All pod groups")),
    summary, facts, blocked, placements,
    sources({ json: url(endpoint), command: ["berth", "explain", `podgroup/${name}`, "-n", namespace] }),
  );
}

function factsOf(element, group) {
  const facts = [
    ["Policy", group.exists ? group.policy : "no PodGroup object"],
    ["Min count", group.minCount !== null && count(group.minCount)],
    ["Pods", `${count(group.numPods)}${group.numUncreated ? `, ${count(group.numUncreated)} more must be created` : ""}`],
    ["Where they are", Object.entries(group.members).map(([where, number]) => `${count(number)} ${where}`).join(", ")],
    ["Would get nodes together now", group.numTried > 0 && `${count(group.numFit)} of ${count(group.numTried)}`],
    ["Topology", group.topologyKey],
    ["Part of", group.partOf?.name],
    ["First obstacle", group.obstacle && podLink(group.obstacle)],
    ["Would start with", group.shortage?.nodes && [`${count(group.shortage.nodes)} more like `, nodeLink(group.shortage.like)]],
    ["Attempts", count(group.attempts)],
    ["Next attempt", group.nextTry && `before ${moment(group.nextTry)}`],
    ["Last result", group.status && `${group.status.reason}: ${group.status.message}`],
  ];
  fill(element, facts.filter(([, value]) => value).map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))));
}

const amounts = (free) => Object.entries(free).map(([resource, amount]) => `${resource} ${quantity(resource, amount)}`).join(", ");
