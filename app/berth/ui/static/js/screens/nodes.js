import { h } from "../dom.js";
import { age, count, percent, quantity } from "../format.js";
import { list, nodeLink, podLink } from "../cells.js";
import { paged } from "../paged.js";

const share = ({ requested, allocatable }) => (allocatable > 0 ? requested / allocatable : 0);

/** How much of a resource is taken, sorted by the share. */
const used = (resource, title) => ({
  name: resource,
  title,
  numeric: true,
  value: ({ resources }) => share(resources[resource]),
  cell: ({ resources }) => {
    const { requested, allocatable } = resources[resource];
    return [
      `${quantity(resource, requested)} of ${quantity(resource, allocatable)} `,
      h("span", { class: "muted" }, percent(requested, allocatable)),
    ];
  },
});

const COLUMNS = [
  { name: "node", title: "Node", nowrap: true, value: ({ node }) => node, cell: ({ node }) => nodeLink(node) },
  { name: "zone", title: "Zone", nowrap: true, value: ({ zone }) => zone },
  used("cpu", "CPU requested"),
  used("memory", "Memory requested"),
  used("pods", "Pods"),
  { name: "others", title: "Other resources", value: others, cell: others },
  { name: "taints", title: "Taints", value: taints, cell: taints },
  {
    name: "assumed", title: "Assumed", value: ({ assumed }) => assumed.map(({ pod }) => pod).join(" "),
    cell: ({ assumed }) => list(assumed, ({ pod, assumedSeconds }) => [podLink(pod), assumedSeconds !== null && ` ${age(assumedSeconds)}`]),
  },
  {
    name: "nominated", title: "Nominated", value: ({ nominated }) => nominated.join(" "),
    cell: ({ nominated }) => list(nominated, podLink),
  },
  { name: "generation", title: "Generation", numeric: true, value: ({ generation }) => generation, cell: ({ generation }) => count(generation) },
];

/** The nodes, as the scheduler's cache counts them. */
export const show = (view, route) =>
  paged(view, route, {
    path: "debug/cache",
    caption: "Nodes in the cache",
    columns: COLUMNS,
    filters: [
      { name: "name", label: "Search name" },
      { name: "zone", label: "Zone" },
      { name: "labelSelector", label: "Label selector" },
    ],
    empty: "No node matches.",
    summary: ({ counts, unknownNodes, unreadable }) => [
      `${count(counts.nodes)} nodes, ${count(counts.pods)} pods, ${count(counts.assumedPods)} of them assumed`,
      unreadable.length > 0 && `, ${count(unreadable.length)} objects could not be read as a whole`,
      Object.entries(unknownNodes).map(([node, pods]) => `. Unknown node ${node} has ${pods.join(", ")}`),
    ],
    command: ({ labelSelector }) => ["kubectl", "describe", "nodes", ...(labelSelector ? ["-l", labelSelector] : [])],
  });

function taints({ taints: written, unschedulable }) {
  return [unschedulable && "unschedulable", ...written].filter(Boolean).join(", ");
}

function others({ resources }) {
  return Object.entries(resources)
    .filter(([name, { requested }]) => !["cpu", "memory", "pods"].includes(name) && (requested || name !== "ephemeral-storage"))
    .map(([name, { allocatable, requested }]) => `${name} ${quantity(name, requested)} of ${quantity(name, allocatable)}`)
    .join(", ");
}
