import { ApiError, get, url } from "../api.js";
import { fill, h } from "../dom.js";
import { count } from "../format.js";
import { setQuery } from "../routes.js";
import { copyButton } from "../sources.js";
import { headline, shownAnswer } from "../whatif/answer.js";
import { asker } from "../whatif/asking.js";
import { command, curl } from "../whatif/command.js";
import { form } from "../whatif/form.js";
import { LONGEST } from "../whatif/packing.js";
import { FieldError, ZONE, question } from "../whatif/question.js";
import { choose, firstAsk } from "../whatif/questions.js";
import { fieldOf } from "../whatif/refusal.js";
import { fromQuery, toQuery } from "../whatif/address.js";
import { NOTHING, weightList } from "../whatif/state.js";

/** Names that fields suggest. */
const MOST_SUGGESTED = 500;
const QUIET_MILLISECONDS = 250;
const LIMITS = "At most 20,000 pods, 10,000 nodes and 30 seconds of CPU time; two simulations at once.";

/**
 * What would be: the form of `POST /simulate`, and its answer.
 * @param {import("../main.js").View} view
 * @param {import("../routes.js").Route} route
 */
export async function show(view, route) {
  const [known, { state, damage }] = await Promise.all([choices(view.signal), stateOf(route.query)]);
  if (!state.ask) choose(state, firstAsk(known), known);
  const whatIf = new WhatIf(view, known, state);
  fill(
    view.root,
    h("p", { class: "muted" }, `Runs the scheduler on a copy of the cluster, in a process of its own. Nothing changes. ${LIMITS}`),
    h("div", { class: "columns" }, whatIf.form, whatIf.result),
    whatIf.copies,
  );
  if (damage) whatIf.form.refuse("text", damage);
  else whatIf.say(route.query.size ? "The form says what the link says. Press Simulate to ask it." : "Choose a question, and press Simulate.");
}

/** The form and the answer to what it asks. */
class WhatIf {
  #view;
  #state;
  #asking;
  #timer = 0;
  #said = h("output", { class: "headline", "aria-live": "polite" });
  #stale = h("p", { class: "note", role: "status" });
  #answer = h("div", { class: "answer" });

  constructor(view, known, state) {
    this.#view = view;
    this.#state = state;
    this.#asking = asker(view.signal);
    this.copies = h("footer", { class: "sources" });
    this.form = form(state, known, {
      onchange: () => this.#changed(),
      onsubmit: () => this.submit(),
      oncancel: () => this.#asking.cancel(),
    });
    this.result = h("section", { class: "result", "aria-label": "Answer" }, this.#said, this.#asking.root, this.#stale, this.#answer);
    showCopies(this.copies, state);
  }

  /** What there is to know before there is an answer. @param {string} text */
  say(text) {
    fill(this.#stale, text);
  }

  /** Ask what the form says, and show the answer or what is wrong. */
  async submit() {
    clearTimeout(this.#timer);
    let body;
    try {
      body = question(this.#state);
    } catch (error) {
      this.#refused(error);
      return;
    }
    await this.#keep();
    this.form.busy(true);
    fill(this.#said, "Simulating …");
    try {
      const found = await this.#asking.ask(body);
      fill(this.#stale);
      if (found) this.#show(found);
      else fill(this.#said, "Cancelled.");
    } catch (error) {
      this.#refused(error);
    } finally {
      this.form.busy(false);
    }
  }

  #changed() {
    clearTimeout(this.#timer);
    if (this.#answer.childElementCount) fill(this.#stale, "The form has changed since. Simulate again to see what it says now.");
    this.#timer = setTimeout(() => this.#keep(), QUIET_MILLISECONDS);
  }

  /** Let the address, and what is there to copy, say what the form says. */
  async #keep() {
    showCopies(this.copies, this.#state);
    const query = await toQuery(this.#state);
    if (this.#view.signal.aborted) return;
    const length = query.text?.length ?? 0;
    setQuery(length > LONGEST ? { ...query, text: null } : query);
    if (length > LONGEST) this.form.warn("text", `The address does not have it: ${count(length)} characters, at most ${count(LONGEST)}. To share it, copy the command below.`);
  }

  #show(found) {
    const other = nameOf(this.#state);
    fill(this.#said, headline(found, other));
    fill(this.#answer, shownAnswer(found, other));
    if (this.#said.getBoundingClientRect().top > innerHeight) this.#said.scrollIntoView(); // on a telephone
  }

  #refused(error) {
    fill(this.#said);
    if (error instanceof FieldError) this.form.refuse(error.field, error.message);
    else if (error instanceof ApiError) this.form.refuse(error.status === 422 ? fieldOf(error.reason) : null, error.reason);
    else throw error;
  }
}

/** What the form offers. Without permission for some of it, names can be typed all the same. */
async function choices(signal) {
  const options = { signal };
  const [config, cluster, queue] = await Promise.all([
    get("debug/config", {}, options),
    get("debug/cluster", { groupBy: ZONE }, options).catch(() => get("debug/cluster", {}, options)).catch(() => null),
    get("debug/queue", { limit: MOST_SUGGESTED }, options).catch(() => null),
  ]);
  return {
    config,
    zones: cluster?.groupBy ? cluster.groups.filter((zone) => zone !== null).sort() : [],
    nodes: cluster?.names.slice(0, MOST_SUGGESTED) ?? [],
    pods: queue?.items.map(({ pod }) => pod) ?? [],
  };
}

async function stateOf(query) {
  try {
    return { state: await fromQuery(query), damage: "" };
  } catch (error) {
    return { state: { ...NOTHING, ask: "release" }, damage: error.message };
  }
}

/** What the configuration is called that is compared. */
function nameOf({ preset, profile, weights }) {
  const changes = weightList(weights).map((weight) => weight.split("/")[1].replace("=", " "));
  return [preset && `Preset ${preset}`, profile && `profile ${profile}`, ...changes].filter(Boolean).join(", ");
}

function showCopies(footer, state) {
  let lines;
  try {
    const body = question(state);
    lines = [["HTTP", curl(body)], ["Command", command(state)]];
  } catch {
    fill(footer); // the form says what is wrong when it is submitted
    return;
  }
  const path = url("simulate").pathname;
  fill(
    footer,
    lines.map(([title, text]) => h("p", {}, h("span", {}, title), h("code", {}, text), copyButton(text, title))),
    h("p", {}, `BERTH is the address of the scheduler; here it answers at ${path}.`),
  );
}
