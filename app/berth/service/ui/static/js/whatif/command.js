import { commandLine, plainJson, written } from "../shell.js";
import { inZone, podOf, words } from "./question.js";
import { asked } from "./questions.js";
import { weightList } from "./state.js";

/** @typedef {import("./state.js").State} State */

/**
 * Return the command line that asks what *state* says. Throws FieldError.
 * @param {State} state
 */
export function command(state) {
  state = asked(state);
  const manifest = state.source === "text" ? state.text.trimEnd() : state.source === "size" ? JSON.stringify(podOf(state)) : "";
  const flags = [
    state.source === "like" && state.pod.trim() && ["--like", state.pod.trim()],
    manifest && ["--template", "-"],
    state.source !== "none" && (manifest || state.pod.trim()) && state.replicas.trim() && ["--replicas", state.replicas.trim()],
    !state.pending && ["--no-pending"],
    state.add.trim() && ["--add-nodes", state.add.trim()],
    state.add.trim() && state.count.trim() && ["--count", state.count.trim()],
    state.remove.trim() && ["--remove-node", words(state.remove).join(",")],
    state.zone && ["--remove-node-selector", inZone(state)],
    state.cordon.trim() && ["--cordon-node", words(state.cordon).join(",")],
    state.removable && ["--find-removable", ...(state.among.trim() ? [words(state.among).join(",")] : [])],
    state.find.trim() && ["--find-nodes", state.find.trim()],
    state.preset && ["--compare-preset", state.preset],
    state.profile && ["--compare-profile", state.profile],
    ...weightList(state.weights).map((weight) => ["--compare-weight", weight]),
    state.preemption && ["--preemption"],
    state.repack && ["--repack"],
  ];
  const line = commandLine("berth", "simulate", ...flags.filter(Boolean).flat());
  return manifest ? `${written(`${manifest}\n`)} | ${line}` : line;
}

/** Return the same over HTTP; BERTH is the address of the scheduler. @param {object} body */
export const curl = (body) =>
  `curl -s "$BERTH/simulate" -H 'Content-Type: application/json' ${commandLine("-d", plainJson(body))}`;
