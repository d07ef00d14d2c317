import { count } from "../format.js";
import { groupLink } from "../cells.js";
import { paged } from "../paged.js";
import { showGroup } from "./group.js";

const COLUMNS = [
  { name: "group", title: "Pod group", nowrap: true, value: ({ podGroup }) => podGroup, cell: ({ podGroup }) => groupLink(podGroup) },
  { name: "policy", title: "Policy", value: ({ exists, policy }) => (exists ? policy : "no PodGroup object") },
  { name: "min", title: "Min count", numeric: true, value: ({ minCount }) => minCount },
  { name: "pods", title: "Pods", numeric: true, value: ({ numPods }) => numPods, cell: ({ numPods }) => count(numPods) },
  { name: "scheduled", title: "Scheduled", numeric: true, value: ({ numScheduled }) => numScheduled, cell: ({ numScheduled }) => count(numScheduled) },
  { name: "gated", title: "Gated", numeric: true, value: ({ numGated }) => numGated, cell: ({ numGated }) => count(numGated) },
  { name: "reason", title: "Last result", value: ({ status }) => status?.reason ?? "" },
  { name: "message", title: "Message", detail: true, value: ({ status }) => status?.message ?? "" },
];

/** The pod groups, or the one that the address names. */
export const show = (view, route) =>
  route.path.length === 2
    ? showGroup(view, route.path)
    : paged(view, route, {
        path: "debug/podgroups",
        caption: "Pod groups",
        columns: COLUMNS,
        filters: [{ name: "name", label: "Search namespace/name" }, { name: "namespace", label: "Namespace" }],
        empty: "No pod group matches. There are none unless the feature gate GenericWorkload is on.",
        command: ({ namespace }) => ["kubectl", "get", "podgroups", ...(namespace ? ["-n", namespace] : ["-A"])],
      });
