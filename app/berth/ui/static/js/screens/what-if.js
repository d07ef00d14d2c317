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
import { FieldError, question } from "../whatif/question.js";
import { fieldOf } from "../whatif/refusal.js";
import { NOTHING, fromQuery, toQuery, weightList } from "../whatif/state.js";

/** Names that fields suggest. */
const MOST_SUGGESTED = 500;
const QUIET_MILLISECONDS = 250;

/**
 * What would be: the form of `POST /simulate`, and its answer.
 * @param {import("../main.js").View} view
 * @param {import("../routes.js").Route} route
 */
export async function show(view, route) {
  const [known, { state, damage }] = await Promise.all([choices(view.signal), stateOf(route.query)]);
  const asking = asker(view.signal);
  const said = h("output", { class: "headline", "aria-live": "polite" });
  const stale = h("p", { class: "note", role: "status" });
  const answer = h("div", { class: "answer" });
  const copies = h("footer", { class: "sources" });
  const ask = form(state, known, { onchange: changed, onsubmit: () => submit(), oncancel: asking.cancel });
  let timer = 0;

  function changed() {
    clearTimeout(timer);
    if (answer.childElementCount) fill(stale, "The form has changed since. Simulate again to see what it says now.");
    state.run = false;
    timer = setTimeout(kept, QUIET_MILLISECONDS);
  }

  async function kept() {
    showCopies(copies, state);
    const query = await toQuery(state);
    if (view.signal.aborted) return;
    const length = query.text?.length ?? 0;
    setQuery(length > LONGEST ? { ...query, text: null } : query);
    if (length > LONGEST) ask.warn("text", `The address does not have it: ${count(length)} characters, at most ${count(LONGEST)}. To share it, copy the command below.`);
  }

  async function submit() {
    clearTimeout(timer);
    let body;
    try {
      body = question(state);
    } catch (error) {
      refused(error);
      return;
    }
    state.run = true;
    await kept();
    ask.busy(true);
    fill(said, "Simulating …");
    try {
      const found = await asking.ask(body);
      fill(stale);
      if (found) shown(found);
      else if (!view.signal.aborted) fill(said, "Cancelled.");
    } catch (error) {
      refused(error);
    } finally {
      ask.busy(false);
    }
  }

  function shown(found) {
    const other = nameOf(state);
    fill(said, headline(found, other));
    fill(answer, shownAnswer(found, other));
    if (said.getBoundingClientRect().top > innerHeight) said.scrollIntoView(); // on a telephone
  }

  function refused(error) {
    fill(said);
    if (error instanceof FieldError) ask.refuse(error.field, error.message);
    else if (error instanceof ApiError) ask.refuse(error.status === 422 ? fieldOf(error.reason) : null, error.reason);
    else throw error;
  }

  fill(
    view.root,
    h("p", { class: "muted" }, "Runs the scheduler on a copy of the cluster, in a process of its own. Nothing changes. At most 20,000 pods, 10,000 nodes and 30 seconds; two simulations at once."),
    h("div", { class: "columns" }, ask, h("section", { class: "result", "aria-label": "Answer" }, said, asking.root, stale, answer)),
    copies,
  );
  showCopies(copies, state);
  if (damage) ask.refuse("text", damage);
  else if (state.run) await submit();
}

async function choices(signal) {
  const options = { signal };
  const [config, nodes, queue] = await Promise.all([
    get("debug/config", {}, options),
    get("debug/cache", { limit: MOST_SUGGESTED }, options),
    get("debug/queue", { limit: MOST_SUGGESTED }, options),
  ]);
  const pods = queue.items.map(({ pod }) => pod);
  return { config, nodes: nodes.items.map(({ node }) => node), pods };
}

async function stateOf(query) {
  try {
    return { state: await fromQuery(query), damage: "" };
  } catch (error) {
    return { state: { ...NOTHING, source: "text" }, damage: error.message };
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
    return; // the form says what is wrong when it is submitted
  }
  const path = url("simulate").pathname;
  fill(
    footer,
    lines.map(([title, text]) => h("p", {}, h("span", {}, title), h("code", {}, text), copyButton(text, title))),
    h("p", {}, `BERTH is the address of the scheduler; here it answers at ${path}.`),
  );
}
