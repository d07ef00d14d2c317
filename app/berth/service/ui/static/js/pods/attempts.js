import { nodeLink, podLink } from "../cells.js";
import { h } from "../dom.js";
import { age, count, duration, moment } from "../format.js";

/** What an attempt came to, for people. */
const RESULTS = { scheduled: ["scheduled", "good"], unschedulable: ["unschedulable", "warn"], error: ["error", "bad"] };

/** The attempts that are still remembered, as a timeline: the newest first. */
export function attempts(history, uid) {
  if (!history.length) return null;
  return h(
    "section",
    { "aria-labelledby": "attempts" },
    h("h2", { id: "attempts" }, "Attempts"),
    h(
      "ol",
      { class: "timeline" },
      history.map((past, i) => entry(past, { newer: history[i - 1], before: history[i + 1], uid })),
    ),
  );
}

function entry(past, { newer, before, uid }) {
  const [words, tone] = RESULTS[past.result] ?? [past.result, "muted"];
  const later = before ? `, ${age(before.secondsAgo - past.secondsAgo)} after the one before` : "";
  const isSame = past.message && past.message === newer?.message;
  return h(
    "li",
    { class: tone },
    h(
      "p",
      {},
      h("strong", {}, `Attempt ${past.attempt}: `),
      h("strong", { class: tone }, words),
      past.node && [" on ", nodeLink(past.node)],
    ),
    h(
      "p",
      { class: "muted" },
      `${moment(past.at)}${later} · took ${duration(past.tookSeconds)} · ${count(past.numFeasible)} of ${count(past.numNodes)} nodes could take it`,
    ),
    past.uid !== uid && h("p", { class: "muted" }, "Of an earlier pod of this name"),
    past.answeredBy &&
      h("p", {}, "Answered by the attempt of ", podLink(past.answeredBy), ", a pod of the same signature"),
    past.gang && h("p", {}, `Tried together with ${past.gang}`),
    isSame
      ? h("p", { class: "muted" }, "Message as above")
      : h("p", {}, past.choice ? past.choice.words : past.message),
    past.nominatedNode && h("p", {}, "Room is made on ", nodeLink(past.nominatedNode)),
  );
}
