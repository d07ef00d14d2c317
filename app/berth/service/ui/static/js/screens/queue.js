import { age, count } from "../format.js";
import { nodeLink, pluginLinks, podLink } from "../cells.js";
import { paged } from "../paged.js";

const PARTS = [
  ["active", "active"], ["backoff", "backoff"], ["errorBackoff", "backoff after an error"],
  ["unschedulable", "unschedulable"], ["gated", "gated"], ["inFlight", "in flight"],
];
const WORDS = Object.fromEntries(PARTS);

const COLUMNS = [
  { name: "name", title: "Pod", nowrap: true, value: ({ pod }) => pod, cell: ({ pod }) => podLink(pod) },
  { name: "queue", title: "Queue", fixed: true, nowrap: true, value: ({ queue }) => WORDS[queue] ?? queue },
  { name: "age", title: "Pending for", numeric: true, value: ({ ageSeconds }) => ageSeconds, cell: ({ ageSeconds }) => age(ageSeconds) },
  { name: "attempts", title: "Attempts", numeric: true, value: ({ attempts }) => attempts },
  { name: "priority", title: "Priority", numeric: true, value: ({ priority }) => priority, cell: ({ priority }) => count(priority) },
  {
    name: "next", title: "Next attempt", fixed: true, numeric: true, value: (pod) => pod.podsAhead ?? pod.nextTryInSeconds ?? null,
    cell: ({ podsAhead, nextTryInSeconds }) =>
      podsAhead !== null ? `after ${count(podsAhead)}` : nextTryInSeconds !== null && `within ${age(nextTryInSeconds)}`,
  },
  {
    name: "plugins", title: "Plugins", fixed: true, value: (pod) => plugins(pod).join(" "),
    cell: (pod) => pluginLinks("queue", plugins(pod)),
  },
  { name: "nominated", title: "Nominated node", fixed: true, optional: true, value: ({ nominatedNode }) => nominatedNode, cell: ({ nominatedNode }) => nodeLink(nominatedNode) },
  { name: "message", title: "Message", detail: true, value: ({ message }) => message },
];

/** The pods of the scheduling queue. */
export const show = (view, route) =>
  paged(view, route, {
    path: "debug/queue",
    caption: "Pending pods",
    columns: COLUMNS,
    sort: { by: "age", descending: true },
    filters: [
      { name: "name", label: "Search namespace/name" },
      { name: "queue", label: "Queue", choices: PARTS },
      { name: "namespace", label: "Namespace" },
      { name: "plugin", label: "Plugin" },
      { name: "minAge", label: "Pending for at least", choices: [["60", "1 minute"], ["300", "5 minutes"], ["3600", "1 hour"]] },
    ],
    empty: "No pod waits.",
    summary: ({ counts }) => PARTS.map(([name, words]) => `${count(counts[name])} ${words}`).join(", "),
    command: ({ namespace }) => ["kubectl", "get", "pods", ...(namespace ? ["-n", namespace] : ["-A"]), "--field-selector", "spec.nodeName="],
  });

const plugins = ({ rejectingPlugins, pendingPlugins, gatingPlugin }) =>
  [...new Set([...rejectingPlugins, ...pendingPlugins, gatingPlugin].filter(Boolean))];
