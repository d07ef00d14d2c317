import { nodeLink, podLink } from "../cells.js";
import { h } from "../dom.js";
import { count, counted, moment } from "../format.js";

const CRITERIA = {
  PDBViolations: "fewest victims against a PodDisruptionBudget",
  HighestPriority: "lowest priority of the most important victim",
  SumOfPriorities: "smallest sum of the victims' priorities",
  NumVictims: "fewest victims",
  StartTime: "most important victims started latest",
};

/** Whom the pod's attempts had evicted, and why those. */
export function preemption(history) {
  const all = history.filter((past) => past.preemption);
  if (!all.length) return null;
  return h(
    "section",
    { class: "preemption", "aria-labelledby": "preemption" },
    h("h2", { id: "preemption" }, "Preemption"),
    all.map(attempt),
  );
}

function attempt({ attempt: number, at, preemption: found }) {
  const { chosen, numCandidates, rounds, equals, runnerUp, words } = found;
  return h(
    "div",
    { class: "card" },
    h(
      "p",
      { class: "summary" },
      `Attempt ${number}, at ${moment(at)}, evicted ${counted(chosen.numVictims, "pod")} from `,
      nodeLink(chosen.node),
      ".",
    ),
    h("h3", {}, "Victims"),
    victims(chosen, number),
    h("h3", {}, "Why those"),
    h("p", {}, words),
    rounds.length > 0 &&
      h(
        "ol",
        { class: "rounds" },
        h("li", {}, counted(numCandidates, "candidate")),
        rounds.map(({ criterion, numLeft }) =>
          h("li", {}, `${CRITERIA[criterion] ?? criterion}: ${count(numLeft)} left`),
        ),
        equals > 0 && h("li", {}, "chance"),
      ),
    runnerUp && [h("h3", {}, "Would have come next: ", nodeLink(runnerUp.node)), victims(runnerUp, number)],
  );
}

function victims({ victims: told, numVictims, pdbViolations, node }, attemptNumber) {
  const rows = told.map(({ pod, priority, started }) =>
    h(
      "tr",
      {},
      h("td", {}, podLink(pod)),
      h("td", { class: "number" }, count(priority)),
      h("td", {}, started ? moment(started) : "not yet"),
    ),
  );
  const others = numVictims - told.length;
  return [
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": `Victims of attempt ${attemptNumber} on ${node}` },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, "Pod"),
            h("th", { scope: "col", class: "number" }, "Priority"),
            h("th", { scope: "col" }, "Started"),
          ),
        ),
        h("tbody", {}, rows),
      ),
    ),
    (others > 0 || pdbViolations > 0) &&
      h("p", { class: "note" }, [
        others > 0 && `${count(others)} more. `,
        pdbViolations > 0 && `The PodDisruptionBudgets of ${count(pdbViolations)} do not allow the eviction.`,
      ]),
  ];
}
