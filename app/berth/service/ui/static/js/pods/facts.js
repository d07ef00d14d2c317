import { nodeLink } from "../cells.js";
import { fill, h } from "../dom.js";
import { moment } from "../format.js";

/** The answer in a sentence, and where the pod is; `update(explanation)` shows what is new. */
export function facts(told) {
  const summary = h("p", { class: "summary" });
  const list = h("dl", { class: "facts" });
  const element = h("section", { class: "card", "aria-label": "Where the pod is" }, summary, list);

  function update(now) {
    if (now.evaluation) fill(summary, now.summary);
    fill(
      list,
      rows(now).map(([term, ...values]) => [h("dt", {}, term), values.map((value) => h("dd", {}, value))]),
    );
  }

  // What was evaluated is said in the sentence: without an evaluation it says less.
  fill(summary, told.summary);
  update(told);
  return Object.assign(element, { update });
}

function rows({ state, profile, podGroup }) {
  if (!state) return [["Scheduler", profile]];
  const node = state.node && ["Node", nodeLink(state.node)];
  const nominated = state.nominatedNode && ["Nominated to", nodeLink(state.nominatedNode)];
  return [
    ["State", state.words],
    node,
    nominated,
    state.leaving.length > 0 && ["Must leave first", state.leaving.join(", ")],
    state.since && ["Since", moment(state.since)],
    state.until && [state.where === "Unschedulable" ? "Tried again at the latest" : "Until", moment(state.until)],
    ...Object.entries(state.wokenBy).map(([plugin, events]) => [`Woken for ${plugin} by`, events.join(", ")]),
    ["Scheduler", profile],
    podGroup && [
      "Pod group",
      `${podGroup.summary}${podGroup.isObstacle ? " This pod is the first that gets no node." : ""}`,
    ],
  ].filter(Boolean);
}
