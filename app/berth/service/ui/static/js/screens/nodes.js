import { h } from "../dom.js";
import { age, count, percent, quantity } from "../format.js";
import { list, nodeLink, podLink } from "../cells.js";
import { paged } from "../paged.js";

/** The resource of which most is requested, and how much. */
function fullest({ resources }) {
  const [name, most] = Object.entries(resources).reduce((a, b) => (share(b[1]) > share(a[1]) ? b : a), ["cpu", resources.cpu]);
  return { name, share: share(most), text: percent(most.requested, most.allocatable) };
}

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
  { name: "name", title: "Node", nowrap: true, value: ({ node }) => node, cell: ({ node }) => nodeLink(node) },
  { name: "zone", title: "Zone", fixed: true, nowrap: true, value: ({ zone }) => zone },
  {
    name: "use", title: "Fullest", numeric: true, value: (node) => fullest(node).share,
    cell: (node) => [h("strong", {}, fullest(node).text), h("span", { class: "muted" }, ` ${fullest(node).name}`)],
  },
  used("cpu", "CPU requested"),
  used("memory", "Memory requested"),
  used("pods", "Pods"),
  { name: "others", title: "Other resources", fixed: true, optional: true, value: others, cell: others },
  { name: "taints", title: "Taints", fixed: true, optional: true, value: taints, cell: taints },
  {
    name: "assumed", title: "Assumed", fixed: true, optional: true, value: ({ assumed }) => assumed.map(({ pod }) => pod).join(" "),
    cell: ({ assumed }) => list(assumed, ({ pod, assumedSeconds }) => [podLink(pod), assumedSeconds !== null && ` ${age(assumedSeconds)}`]),
  },
  {
    name: "nominated", title: "Nominated", fixed: true, optional: true, value: ({ nominated }) => nominated.join(" "),
    cell: ({ nominated }) => list(nominated, podLink),
  },
];

/** The nodes, as the scheduler's cache counts them. */
export const show = (view, route) =>
  paged(view, route, {
    path: "debug/cache",
    caption: "Nodes in the cache",
    columns: COLUMNS,
    sort: { by: "use", descending: true },
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
