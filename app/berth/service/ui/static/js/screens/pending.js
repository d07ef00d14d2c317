import { ApiError, get, segment, url } from "../api.js";
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
/** Of so many groups the smallest change is found. */
const MOST_EXPLAINED = 10;
/** And again after so long, for each node: a look at one takes some 20 µs, so that a tab costs the
 * scheduler 0.4% of its time. */
const MILLISECONDS_PER_NODE = 50;
const LEAST_MILLISECONDS = 60_000;

/** By cause: what it is called, and how much somebody should care. */
const CAUSES = {
  Error: ["Error", "bad"],
  Rejected: ["Fits nowhere", "bad"],
  Preempting: ["Victims leave", "warn"],
  Permit: ["Waits on Permit", "warn"],
  Gated: ["Gated", "muted"],
  NotTried: ["Not tried yet", "muted"],
};

/** All waiting pods by workload and reason, what to look at first before the others. */
export async function show(view, route) {
  const list = h("ul", { class: "groups" });
  const head = h("p", { class: "muted", role: "status" });
  const known = new Map();
  let open = route.query.get("group");

  await repeat(SECONDS, view.signal, async () => {
    const params = { byWorkload: true };
    const found = await get("debug/queue/groups", params, { signal: view.signal });
    if (!list.isConnected) {
      fill(
        view.root,
        head,
        list,
        sources({
          json: url("debug/queue/groups", params),
          command: ["kubectl", "get", "pods", "-A", "--field-selector=status.phase=Pending"],
        }),
      );
    }
    fill(head, told(found));
    draw(found.items);
    await explain(found.items.map((group) => known.get(keyOf(group))), view.signal);
  });

  /** Keep the elements of groups that stay: whoever reads or has the focus in one is not disturbed. */
  function draw(items) {
    const shown = items.map((group) => {
      const key = keyOf(group);
      const element = known.get(key) ?? groupElement(group, { isOpen: key === open, ontoggle: toggled, signal: view.signal });
      known.set(key, element);
      element.update(group);
      return element;
    });
    for (const [key, element] of known) if (!shown.includes(element)) known.delete(key);
    if (!list.children.length || shown.length !== list.children.length || shown.some((element, i) => list.children[i] !== element)) {
      const focused = document.activeElement;
      fill(list, shown.length ? shown : h("li", {}, empty("No pod waits.")));
      if (focused instanceof HTMLElement && list.contains(focused)) focused.focus({ preventScroll: true });
    }
  }

  function toggled(key, isOpen) {
    if (isOpen) open = key;
    else if (open === key) open = null;
    setQuery({ group: open });
  }
}

/** What tells a group from others, also in an address. */
const keyOf = ({ id, words, workloads, numWorkloads }) =>
  numWorkloads === 1 ? `${id || words}/${workloads[0].namespace}/${workloads[0].workload}` : id || words;

/**
 * Find the smallest change for the first groups, one after the other, and for each again after a while:
 * each takes a look at all nodes.
 */
async function explain(elements, signal) {
  const due = elements.slice(0, MOST_EXPLAINED).find((element) => element.isDue());
  if (!due) return;
  try {
    const { evaluation } = await get(due.path(), {}, { signal });
    due.explain(evaluation);
  } catch (error) {
    if (!(error instanceof ApiError) || !error.status) throw error;
    due.explain(null); // it has gone meanwhile, or nobody may look
  }
  await explain(elements, signal);
}

function told({ numPods, numGroups, at }) {
  if (!numPods) return `As of ${clock(at)}`;
  return `${counted(numPods, "pod")} ${numPods === 1 ? "waits" : "wait"}, in ${counted(numGroups, "group")} by workload and reason. As of ${clock(at)}.`;
}

/** One group; `update(group)` shows what is new. */
function groupElement(group, { isOpen, ontoggle, signal }) {
  const [title, tone] = CAUSES[group.cause] ?? [group.cause, "muted"];
  const number = h("span", { class: "count" });
  const why = h("p", { class: "why" });
  const facts = h("p", { class: "about muted" });
  const change = h("p", { class: "change", hidden: true });
  const detail = h("div", { class: "detail" });
  const more = h(
    "details",
    { open: isOpen, ontoggle: () => (ontoggle(keyOf(group), more.open), more.open && expand()) },
    h("summary", {}, "All pods and the message"),
    detail,
  );
  const element = h(
    "li",
    { class: `group ${tone}` },
    number,
    h("div", {}, h("h2", {}, nameOf(group), " ", h("span", { class: `cause ${tone}` }, title)), why, change, facts, more),
  );
  let explainedUntil = 0;

  function update(now) {
    group = now;
    fill(number, count(group.numPods));
    number.setAttribute("aria-label", counted(group.numPods, "pod"));
    replaceText(why, group.reasons.join(", ") || group.plugins.join(", "));
    const oldest = group.pods[0];
    if (facts.dataset.of !== factsOf(group).join()) {
      facts.dataset.of = factsOf(group).join();
      fill(facts, "Waits longest: ", podLink(oldest.pod), factsOf(group).slice(1).map((fact) => ` · ${fact}`));
    }
  }

  async function expand() {
    try {
      const params = { group: group.id, ...ofWorkload(group), limit: MOST_PODS };
      const listed = group.id ? await get("debug/queue", params, { signal }) : { items: [], continue: "" };
      fill(
        detail,
        group.message && [h("h3", {}, "Message of the pod that has waited longest"), h("p", { class: "message" }, group.message)],
        group.id ? podsTable(listed.items) : h("p", { class: "note" }, "There are too many groups to list the pods of each."),
        listed.continue && h("p", { class: "note" }, `The first ${count(MOST_PODS)} by name.`),
        group.id && sources({ json: url("debug/queue", params) }),
      );
    } catch (error) {
      if (!signal.aborted) fill(detail, problem(error));
    }
  }

  if (isOpen) expand();
  return Object.assign(element, {
    update,
    path: () => `explain/pods/${group.pods[0].pod.split("/").map(segment).join("/")}`,
    isDue: () => group.cause === "Rejected" && performance.now() > explainedUntil,
    explain(evaluation) {
      const miss = evaluation?.nearestMiss;
      const advice = evaluation?.advice ?? [];
      explainedUntil = performance.now() + Math.max(LEAST_MILLISECONDS, MILLISECONDS_PER_NODE * (evaluation?.numNodes ?? 0));
      change.hidden = !miss && !advice.length;
      if (advice.length) fill(change, h("strong", {}, "What would help: "), advice.join("; "));
      else if (miss) fill(change, h("strong", {}, group.numPods > 1 ? "Smallest change for one of them: " : "Smallest change: "), miss.words);
    },
  });
}

/** Whose pods they are. */
function nameOf({ workloads, numWorkloads }) {
  if (numWorkloads > 1) return counted(numWorkloads, "workload");
  const [{ namespace, workload }] = workloads;
  return `${workload} in ${namespace}`;
}

/** What asks for the pods of a workload only: their names begin with its name. */
function ofWorkload({ workloads: [{ namespace, workload }], numWorkloads }) {
  if (numWorkloads > 1) return {};
  const [kind, name] = workload.split("/");
  return { namespace, name: `${namespace}/${name}${kind === "pod" ? "" : "-"}` };
}

/** Leave text alone that is the same: somebody may be selecting it. */
function replaceText(element, text) {
  if (element.textContent !== text) fill(element, text);
}

/** The oldest pod, and what else there is to know; where its pods are only if that is not one place. */
function factsOf({ pods, oldestAgeSeconds, plugins, reasons, counts, highestPriority }) {
  const parts = Object.entries(counts).map(([queue, n]) => `${count(n)} ${QUEUES[queue] ?? queue}`);
  return [
    pods[0].pod,
    age(oldestAgeSeconds),
    reasons.length > 0 && plugins.join(", "),
    parts.length > 1 && parts.join(", "),
    highestPriority !== 0 && `highest priority ${count(highestPriority)}`,
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
