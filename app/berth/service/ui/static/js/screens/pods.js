import { ApiError, get, segment, url } from "../api.js";
import { groupLink } from "../cells.js";
import { fill, h } from "../dom.js";
import { moment } from "../format.js";
import { attempts } from "../pods/attempts.js";
import { facts } from "../pods/facts.js";
import { funnel } from "../pods/funnel.js";
import { nearest } from "../pods/nearest.js";
import { preemption } from "../pods/preemption.js";
import { whyHere } from "../pods/scores.js";
import { redraw } from "../redraw.js";
import { repeat } from "../repeat.js";
import { address, parse } from "../routes.js";
import { sources } from "../sources.js";
import { empty } from "../states.js";

const SECONDS = 3;
/** After so many seconds, for each node, a pod is evaluated again though nothing happened to it: that
 * takes some 20 µs for each node, so that a tab costs the scheduler a thousandth of its time. */
const SECONDS_PER_NODE = 0.02;
const LEAST_SECONDS = 15;
/** Where an evaluation on the nodes says nothing: it is not this scheduler's, or it is leaving. */
const SETTLED = ["Foreign", "Deleted"];

/** Why one pod is pending, or why it is on its node. */
export async function show(view, route) {
  const [namespace, name] = route.path;
  if (!name) {
    fill(view.root, empty("The address of a pod is #/pods/NAMESPACE/NAME."));
    return;
  }
  const key = `${namespace}/${name}`;
  const path = `explain/pods/${segment(namespace)}/${segment(name)}`;
  view.title(key);
  let shown = null;
  let evaluated = "";
  let evaluateAt = 0;

  const evaluate = async () => {
    const told = await get(path, {}, { signal: view.signal });
    const seconds = Math.max(LEAST_SECONDS, SECONDS_PER_NODE * (told.evaluation?.numNodes ?? 0));
    evaluateAt = performance.now() + 1000 * seconds;
    evaluated = version(told);
    shown = screen(told, { path, again: () => ((evaluateAt = 0), tick().catch(() => {})) });
    redraw(view.root, shown);
  };

  const tick = async () => {
    try {
      if (performance.now() >= evaluateAt) return await evaluate();
      // Cheap: no node is looked at until something has happened to the pod.
      const told = await get(path, { evaluate: false }, { signal: view.signal });
      if (version(told) !== evaluated) await evaluate();
      else shown.update(told);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      evaluateAt = 0;
      await gone(view, key);
    }
  };

  await repeat(SECONDS, view.signal, tick);
}

/** What an evaluation depends on, as far as the pod shows it. */
function version({ uid, state, history }) {
  return [uid, state?.where, state?.node, state?.nominatedNode, history[0]?.number].join(" ");
}

function screen(told, { path, again }) {
  const source = parse(location.hash).query.get("scores");
  const [namespace, name] = told.pod.split("/");
  const { evaluation, history, state } = told;
  const isPlaced = ["Bound", "Binding", "Waiting"].includes(state?.where);
  const about = facts(told);
  const button = h("button", { type: "button", onclick: again }, "Evaluate again");
  const element = h(
    "div",
    { class: "pod" },
    about,
    h(
      "p",
      { class: "links" },
      links(told),
      evaluation && button,
      evaluation && h("span", { class: "muted" }, `Evaluated at ${moment(new Date())}`),
    ),
    isPlaced && whyHere(told, source),
    !isPlaced && evaluation && !SETTLED.includes(state?.where) && whyPending(evaluation, told),
    preemption(history),
    attempts(history, told.uid),
    sources({ json: url(path), command: ["berth", "explain", `pod/${name}`, "-n", namespace] }),
  );
  return Object.assign(element, { update: about.update });
}

function whyPending(evaluation, told) {
  return [
    evaluation.notes.length > 0 &&
      h(
        "ul",
        { class: "notes" },
        evaluation.notes.map((note) => h("li", {}, note)),
      ),
    evaluation.error && h("p", { class: "card bad" }, `A plugin failed: ${evaluation.error}`),
    evaluation.choice ? [whyHere(told, "now"), funnel(evaluation)] : [funnel(evaluation), nearest(evaluation)],
  ];
}

function links({ pod, podGroup, state }) {
  const isOurs = state && !SETTLED.includes(state.where);
  return [
    isOurs && h("a", { href: address("what-if", [], { pod }) }, "What if"),
    isOurs && !state.node && h("a", { href: address("cluster", [], { pod }) }, "Nodes that reject it"),
    podGroup && ["Group ", groupLink(podGroup.name)],
  ];
}

/** A pod that is not there: say so, and what is still remembered of it. */
async function gone(view, key) {
  const { items } = await get("debug/decisions", { pod: key, limit: 10 }, { signal: view.signal });
  redraw(
    view.root,
    h("p", { class: "card summary" }, `There is no pod ${key}, or it has finished.`),
    items.length > 0 &&
      whyHere({ history: items, evaluation: null, state: { where: "Gone", node: items[0].node } }, "then"),
    preemption(items),
    attempts(items, items[0]?.uid),
    h("p", {}, h("a", { href: address("pending") }, "All pending pods")),
    sources({ json: url("debug/decisions", { pod: key }) }),
  );
}
