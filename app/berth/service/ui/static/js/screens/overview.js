import { get, url } from "../api.js";
import { chart, roundUpTime } from "../chart.js";
import { fill, h } from "../dom.js";
import { age, bytes, count, moment, percent, quantity } from "../format.js";
import { podLink } from "../cells.js";
import { follow } from "../live.js";
import { repeat } from "../repeat.js";
import { address } from "../routes.js";
import { sources } from "../sources.js";

const HISTORY_SECONDS = 60;
const REASONS_SECONDS = 5;
const MOST_REASONS = 3;
/** Causes for which pods wait until somebody does something. */
const STUCK = ["Error", "Rejected"];
const LAG_BOUND = 0.1;
const rate = (value) => `${count(Math.round(value * 10) / 10)}/s`;
const milliseconds = (value) => `${count(Math.round(value * 1e4) / 10)} ms`;
const whole = (value) => `${Math.round(value)}%`;
const pods = (value) => count(Math.round(value));

/** Of each part: what it is called, its figure now, what else there is to say, and its chart. */
const PARTS = [
  {
    title: "Pending pods",
    figure: ({ numbers: n }) => h("a", { href: address("queue") }, count(n.active + n.backoff + n.unschedulable)),
    note: ({ numbers: n }) => n.gated > 0 && h("a", { href: address("queue", [], { queue: "gated" }) }, `and ${count(n.gated)} gated`),
    chart: {
      description: "pods in the scheduling queue, by state", format: pods, least: 10,
      lines: [
        { name: "active", label: "Active" }, { name: "backoff", label: "Backoff" },
        { name: "unschedulable", label: "Unschedulable" }, { name: "gated", label: "Gated" },
      ],
    },
  },
  {
    title: "Attempts",
    figure: ({ numbers: n }) => `${count(Math.round(n.scheduledPerSecond * 10) / 10)} binds/s`,
    note: () => h("a", { href: address("decisions") }, "last decisions"),
    chart: {
      description: "attempts per second, by result", format: rate, least: 1,
      lines: [
        { name: "scheduledPerSecond", label: "Scheduled" }, { name: "unschedulablePerSecond", label: "Unschedulable" },
        { name: "errorPerSecond", label: "Error" },
      ],
    },
  },
  {
    title: "Oldest pending pod",
    figure: ({ numbers: n }) => (n.oldestPendingSeconds ? age(n.oldestPendingSeconds) : "None"),
    note: ({ oldest }) => oldest.length > 0 && podLink(oldest[0].pod),
    chart: {
      description: "how long the oldest pod has been pending", format: age, least: 60, ceiling: roundUpTime,
      lines: [{ name: "oldestPendingSeconds", label: "Oldest" }],
    },
  },
  {
    title: "Event loop lag",
    figure: ({ numbers: n }) => milliseconds(n.loopLagSeconds),
    note: () => `should stay below ${milliseconds(LAG_BOUND)}`,
    chart: {
      description: "delay of a timer of the event loop", format: milliseconds, bound: LAG_BOUND,
      least: LAG_BOUND, lines: [{ name: "loopLagSeconds", label: "Lag" }],
    },
  },
  {
    title: "Writes to the API server",
    figure: ({ numbers: n }) => `${count(n.bindInFlight + n.statusInFlight + n.eventInFlight)} in flight`,
    note: ({ numbers: n }) => `${count(n.bindDepth + n.statusDepth + n.eventDepth)} wait`,
    chart: {
      description: "writes in flight and waiting, by lane", format: pods, least: 10,
      lines: [
        { name: "bindInFlight", label: "Binds" }, { name: "statusInFlight", label: "Status" },
        { name: "eventInFlight", label: "Events" }, { name: "depth", label: "Waiting" },
      ],
    },
  },
  {
    title: "Bound pods",
    figure: ({ numbers: n }) => count(n.bound),
    note: ({ numbers: n }) => `${count(n.binding)} being bound, ${count(n.waiting)} waiting for Permit`,
    chart: { description: "pods on nodes", format: pods, least: 10, lines: [{ name: "bound", label: "Bound" }] },
  },
  {
    title: "Requested of the nodes",
    figure: ({ numbers: n }) => `CPU ${percent(n.cpuRequested, n.cpuAllocatable)}, memory ${percent(n.memoryRequested, n.memoryAllocatable)}`,
    note: ({ numbers: n }) =>
      `${quantity("cpu", n.cpuRequested)} of ${quantity("cpu", n.cpuAllocatable)} cores, ${bytes(n.memoryRequested)} of ${bytes(n.memoryAllocatable)}`,
    chart: {
      description: "requests of pods, in percent of what is allocatable", format: whole, least: 100,
      lines: [{ name: "cpu", label: "CPU" }, { name: "memory", label: "Memory" }],
    },
  },
];

/** Whether the scheduler is healthy. @param {import("../main.js").View} view */
export async function show(view) {
  const live = h("p", { class: "live", role: "status" });
  const verdict = h("section", { class: "verdict", "aria-label": "State", role: "status" });
  const figures = PARTS.map((part) => card(part));
  const facts = h("dl", { class: "facts" });
  const oldest = h("section", { class: "card oldest" });
  let series = { times: [], numbers: {} };
  let recent = [];
  let waiting = [];

  function draw(now) {
    verdictOf(verdict, now, waiting);
    factsOf(facts, now);
    oldestOf(oldest, now.oldest);
    const points = joined(series, recent);
    for (const figure of figures) figure.update(now, points);
  }

  const readReasons = async () => {
    waiting = (await get("debug/queue/groups", {}, { signal: view.signal })).items.filter(({ cause }) => STUCK.includes(cause));
  };

  // Without permission for the reasons there is all the rest.
  repeat(REASONS_SECONDS, view.signal, readReasons).catch(() => {});
  await repeat(HISTORY_SECONDS, view.signal, async () => {
    const answer = await get("debug/overview", {}, { signal: view.signal });
    series = answer.series;
    recent = recent.filter(({ time }) => time > answer.now.time);
    draw(recent.at(-1) ?? answer.now);
  });
  fill(
    view.root, live, verdict,
    h("div", { class: "figures" }, figures.map(({ root }) => root), h("section", { class: "card" }, h("h2", {}, "Process"), facts), oldest),
    sources({ json: url("debug/overview"), command: ["kubectl", "get", "pods", "-A", "--field-selector", "spec.nodeName="] }),
  );
  follow("debug/overview/stream", view.signal, {
    message: (sample) => (recent.push(sample), draw(sample)),
    state: ({ text, isLive }) => (live.classList.toggle("is-live", isLive), fill(live, text)),
  });
}

function card({ title, figure, note, chart: options }) {
  const number = h("p", { class: "figure" });
  const beside = h("p", { class: "muted" });
  const graph = chart({ title, ...options });
  return {
    root: h("section", { class: "card" }, h("h2", {}, title), number, beside, graph),
    update(now, points) {
      replace(number, figure(now));
      replace(beside, note(now));
      graph.update(points);
    },
  };
}

/** What is wrong, or that nothing is. Who has it read out is told of changes only. */
function verdictOf(element, { problems }, waiting) {
  element.classList.toggle("is-well", !problems.length && !waiting.length);
  element.classList.toggle("is-waiting", !problems.length && waiting.length > 0);
  const others = waiting.length - MOST_REASONS;
  replace(
    element,
    problems.length ? h("ul", {}, problems.map(problemLine)) : h("p", {}, waiting.length ? "The scheduler is well." : "Nothing is wrong."),
    waiting.length > 0 && h("ul", { class: "reasons" },
      waiting.slice(0, MOST_REASONS).map(({ words }) => h("li", {}, words)),
      h("li", {}, h("a", { href: address("pending") }, others > 0 ? `${count(others)} more reasons, by workload` : "By workload"))),
  );
}

const problemLine = ({ message, pods: named }) =>
  h("li", {}, named.length ? `${message}: ` : `${message}.`, named.map((pod, i) => [i > 0 && ", ", podLink(pod)]));

function factsOf(element, { numbers, leader, configurationLoadedAt }) {
  const facts = [
    ["Leader", numbers.leading ? `this process${leader && ` (${leader})`}` : leader || "nobody"],
    ["Configuration", h("a", { href: address("configuration") }, `generation ${numbers.configurationGeneration}`)],
    ["Loaded", moment(configurationLoadedAt)],
    ["Nodes", h("a", { href: address("nodes") }, count(numbers.nodes))],
  ];
  replace(element, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function oldestOf(element, found) {
  const lines = found.map(({ pod, ageSeconds }) => h("li", {}, podLink(pod), " ", h("span", { class: "muted" }, age(ageSeconds))));
  replace(element, h("h2", {}, "Pending longest"), lines.length ? h("ol", {}, lines) : h("p", { class: "muted" }, "No pod is pending."));
}

/** As `fill`, but what has not changed stays, and with it the focus and a selection. */
function replace(element, ...children) {
  const other = fill(/** @type {HTMLElement} */ (element.cloneNode(false)), ...children);
  if (!element.isEqualNode(other)) element.replaceChildren(...other.childNodes);
}

/** The series, and what came since. */
function joined(series, recent) {
  const since = series.times.length ? /** @type {number} */ (series.times.at(-1)) + series.stepSeconds : 0;
  const newer = recent.filter(({ time }) => time >= since);
  const numbers = Object.fromEntries(
    Object.entries(series.numbers).map(([name, old]) => [name, [...old, ...newer.map((sample) => sample.numbers[name])]]),
  );
  const derived = (of) => numbers.active?.map((_, i) => of((name) => numbers[name][i]));
  const share = (part, all) => (all > 0 ? (100 * part) / all : 0);
  return {
    times: [...series.times, ...newer.map(({ time }) => time)],
    numbers: {
      ...numbers,
      depth: derived((of) => of("bindDepth") + of("statusDepth") + of("eventDepth")),
      cpu: derived((of) => share(of("cpuRequested"), of("cpuAllocatable"))),
      memory: derived((of) => share(of("memoryRequested"), of("memoryAllocatable"))),
    },
  };
}
