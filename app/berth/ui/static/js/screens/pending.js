import { get, url } from "../api.js";
import { podLink } from "../cells.js";
import { fill, h } from "../dom.js";
import { age, clock, count, counted } from "../format.js";
import { repeat } from "../repeat.js";
import { setQuery } from "../routes.js";
import { sources } from "../sources.js";
import { empty, problem } from "../states.js";
import { table } from "../table.js";

const SECONDS = 3;
const MOST_PODS = 500;

/** By cause: what it is called, and how much somebody should care. */
const CAUSES = {
  Error: ["Error", "bad"],
  Rejected: ["Fits nowhere", "bad"],
  Preempting: ["Victims leave", "warn"],
  Permit: ["Waits on Permit", "warn"],
  Gated: ["Gated", "muted"],
  NotTried: ["Not tried yet", "muted"],
};

/** All waiting pods by reason, what to look at first before the others. */
export async function show(view, route) {
  const list = h("ul", { class: "groups" });
  const head = h("p", { class: "muted", role: "status" });
  const known = new Map();
  let open = route.query.get("group");

  await repeat(SECONDS, view.signal, async () => {
    const found = await get("debug/queue/groups", {}, { signal: view.signal });
    if (!list.isConnected) {
      fill(
        view.root,
        head,
        list,
        sources({
          json: url("debug/queue/groups"),
          command: ["kubectl", "get", "pods", "-A", "--field-selector=status.phase=Pending"],
        }),
      );
    }
    fill(head, told(found));
    draw(found.items);
  });

  /** Keep the elements of groups that stay: whoever reads or has the focus in one is not disturbed. */
  function draw(items) {
    const shown = items.map((group) => {
      const key = group.id || group.words;
      const element =
        known.get(key) ??
        groupElement(group, { isOpen: group.id !== "" && group.id === open, ontoggle: toggled, signal: view.signal });
      known.set(key, element);
      element.update(group);
      return element;
    });
    for (const [key, element] of known) if (!shown.includes(element)) known.delete(key);
    if (shown.length !== list.children.length || shown.some((element, i) => list.children[i] !== element)) {
      const focused = document.activeElement;
      fill(list, shown.length ? shown : h("li", {}, empty("No pod waits.")));
      if (focused instanceof HTMLElement && list.contains(focused)) focused.focus({ preventScroll: true });
    }
  }

  function toggled(id, isOpen) {
    if (isOpen) open = id;
    else if (open === id) open = null;
    setQuery({ group: open });
  }
}

function told({ numPods, numGroups, at }) {
  if (!numPods) return `As of ${clock(at)}`;
  const pods = `${counted(numPods, "pod")} ${numPods === 1 ? "waits" : "wait"}`;
  return `${pods}, for ${counted(numGroups, "reason")}. As of ${clock(at)}.`;
}

/** One group; `update(group)` shows what is new. */
function groupElement(group, { isOpen, ontoggle, signal }) {
  const [title, tone] = CAUSES[group.cause] ?? [group.cause, "muted"];
  const number = h("span", { class: "count" });
  const words = h("h2");
  const facts = h("p", { class: "facts muted" });
  const first = h("p", { class: "first" });
  const detail = h("div", { class: "detail" });
  const more = h(
    "details",
    { open: isOpen, ontoggle: () => (ontoggle(group.id, more.open), more.open && expand()) },
    h("summary", {}, "All pods and the message"),
    detail,
  );
  const element = h(
    "li",
    { class: `group ${tone}` },
    number,
    h("div", {}, h("p", { class: `cause ${tone}` }, title), words, facts, first, more),
  );
  let pods = null;

  function update(now) {
    group = now;
    fill(number, count(group.numPods));
    number.setAttribute("aria-label", counted(group.numPods, "pod"));
    replaceText(words, group.words);
    fill(facts, factsOf(group).join(" · "));
    if (first.dataset.pods !== podsKey(group)) {
      first.dataset.pods = podsKey(group);
      fill(first, firstPods(group));
    }
  }

  async function expand() {
    try {
      const params = { group: group.id, limit: MOST_PODS };
      const listed = group.id ? await get("debug/queue", params, { signal }) : { items: [], continue: "" };
      pods = podsTable(listed.items);
      fill(
        detail,
        group.message && [
          h("h3", {}, "Message of the pod that has waited longest"),
          h("p", { class: "message" }, group.message),
        ],
        workloads(group),
        group.id ? pods : h("p", { class: "note" }, "There are too many reasons to list the pods of each."),
        listed.continue && h("p", { class: "note" }, `The first ${count(MOST_PODS)} by name.`),
        group.id && sources({ json: url("debug/queue", params) }),
      );
    } catch (error) {
      if (!signal.aborted) fill(detail, problem(error));
    }
  }

  if (isOpen) expand();
  return Object.assign(element, { update });
}

const podsKey = (group) => group.pods.map(({ pod }) => pod).join(" ") + group.numPods;

/** Leave text alone that is the same: somebody may be selecting it. */
function replaceText(element, text) {
  if (element.textContent !== text) fill(element, text);
}

function factsOf(group) {
  const parts = Object.entries(group.counts).map(([queue, n]) => `${count(n)} ${QUEUES[queue] ?? queue}`);
  return [
    `oldest ${age(group.oldestAgeSeconds)}`,
    parts.join(", "),
    group.plugins.length > 0 && group.plugins.join(", "),
    group.highestPriority !== 0 && `highest priority ${count(group.highestPriority)}`,
  ].filter(Boolean);
}

const QUEUES = {
  active: "about to be tried",
  backoff: "in backoff",
  errorBackoff: "in backoff after an error",
  unschedulable: "unschedulable",
  gated: "gated",
  inFlight: "in flight",
};

function firstPods({ pods, numPods }) {
  const links = pods.flatMap(({ pod }, i) => [i > 0 && ", ", podLink(pod)]);
  const others = numPods - pods.length;
  return [links, others > 0 && ` and ${count(others)} more`];
}

function workloads(group) {
  const { workloads: told, numWorkloads } = group;
  const items = told.map(({ namespace, workload, numPods }) =>
    h("li", {}, `${workload} in ${namespace}: ${counted(numPods, "pod")}`),
  );
  const others = numWorkloads - told.length;
  return [
    h("h3", {}, "Workloads"),
    h("ul", {}, items, others > 0 && h("li", { class: "muted" }, `and ${count(others)} more`)),
  ];
}

function podsTable(rows) {
  return table({
    caption: "Pods",
    rows,
    columns: [
      {
        name: "pod",
        title: "Pod",
        value: (row) => row.pod,
        cell: (row) => podLink(row.pod),
      },
      {
        name: "age",
        title: "Waiting",
        numeric: true,
        value: (row) => row.ageSeconds,
        cell: (row) => age(row.ageSeconds),
      },
      { name: "attempts", title: "Attempts", numeric: true, value: (row) => row.attempts },
      { name: "priority", title: "Priority", numeric: true, value: (row) => row.priority },
      { name: "queue", title: "Queue", value: (row) => QUEUES[row.queue] ?? row.queue },
      {
        name: "next",
        title: "Tried again in",
        numeric: true,
        value: (row) => row.nextTryInSeconds ?? "",
        cell: (row) => (row.nextTryInSeconds === null ? "" : age(row.nextTryInSeconds)),
      },
    ],
    sort: { by: "age", descending: true },
  });
}
