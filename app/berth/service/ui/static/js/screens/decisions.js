import { h } from "../dom.js";
import { age, count, duration } from "../format.js";
import { nodeLink, pluginLinks, podLink } from "../cells.js";
import { paged } from "../paged.js";

const CLASSES = { scheduled: "good", unschedulable: "warn", error: "bad" };

const COLUMNS = [
  { name: "number", title: "Number", numeric: true, value: ({ number }) => number, cell: ({ number }) => count(number) },
  { name: "ago", title: "Ago", numeric: true, value: ({ secondsAgo }) => secondsAgo, cell: ({ secondsAgo }) => age(secondsAgo) },
  { name: "pod", title: "Pod", nowrap: true, value: ({ pod }) => pod, cell: ({ pod }) => podLink(pod) },
  { name: "result", title: "Result", value: ({ result }) => result, cell: ({ result }) => h("span", { class: CLASSES[result] }, result) },
  { name: "node", title: "Node", optional: true, nowrap: true, value: ({ node }) => node, cell: ({ node }) => nodeLink(node) },
  {
    name: "feasible", title: "Feasible nodes", numeric: true, value: ({ numFeasible }) => numFeasible,
    cell: ({ numFeasible, numNodes }) => `${count(numFeasible)} of ${count(numNodes)}`,
  },
  { name: "took", title: "Took", numeric: true, value: ({ tookSeconds }) => tookSeconds, cell: ({ tookSeconds }) => duration(tookSeconds) },
  { name: "attempt", title: "Attempt", numeric: true, value: ({ attempt }) => attempt },
  {
    name: "plugins", title: "Rejected by", optional: true, value: ({ plugins }) => plugins.join(" "),
    cell: ({ plugins }) => pluginLinks("decisions", plugins),
  },
  { name: "profile", title: "Profile", optional: true, nowrap: true, value: ({ profile }) => (profile === "default-scheduler" ? "" : profile) },
  { name: "message", title: "Message", detail: true, value: ({ message }) => message },
];

/** The attempts that are remembered, newest first. */
export const show = (view, route) =>
  paged(view, route, {
    path: "debug/decisions",
    caption: "Decisions",
    columns: COLUMNS,
    filters: [
      { name: "name", label: "Search namespace/name" },
      { name: "result", label: "Result", choices: ["scheduled", "unschedulable", "error"].map((name) => [name, name]) },
      { name: "node", label: "Node" },
      { name: "plugin", label: "Rejected by plugin" },
      { name: "profile", label: "Profile" },
    ],
    empty: "No attempt matches.",
    command: ({ result }) => ["kubectl", "get", "events", "-A", "--field-selector", `reason=${result === "scheduled" ? "Scheduled" : "FailedScheduling"}`],
  });
