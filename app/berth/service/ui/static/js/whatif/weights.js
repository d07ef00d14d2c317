import { fill, h } from "../dom.js";

/** Where a slider ends, unless a weight is larger; the field beside it takes more. */
const SLIDER_END = 20;
const LARGEST = 2 ** 31 - 1;

/**
 * Return the weights of the plugins that score: one slider and one field for each. `draw` shows
 * those of what *state* has chosen.
 * @param {import("./state.js").State} state
 * @param {{scoreWeights: object, presets: object}} config as `debug/config` has it
 * @param {() => void} onchange
 */
export function weightSliders(state, config, onchange) {
  const list = h("div", { class: "weights" });
  const summary = h("summary", {}, "Weights");
  const root = h("details", { id: "weights", open: Object.keys(state.weights).length > 0 }, summary, list);

  function draw() {
    const profiles = state.preset ? config.presets[state.preset] ?? {} : config.scoreWeights;
    const profile = state.profile || ("default-scheduler" in profiles ? "default-scheduler" : Object.keys(profiles)[0]);
    const present = profiles[profile] ?? {};
    const kept = Object.entries(state.weights[profile] ?? {}).filter(([plugin, weight]) => present[plugin] !== weight);
    set(profile, Object.fromEntries(kept), false);
    fill(summary, `Weights of score plugins${Object.keys(profiles).length > 1 ? ` of ${profile}` : ""}`);
    fill(list, Object.entries(present).map(([plugin, weight]) => row(profile, plugin, weight)));
  }

  function set(profile, weights, changes = true) {
    state.weights = Object.keys(weights).length ? { [profile]: weights } : {};
    if (changes) onchange();
  }

  function row(profile, plugin, present) {
    const value = state.weights[profile]?.[plugin] ?? present;
    const end = Math.max(SLIDER_END, 2 * present, value);
    const attributes = { min: 0, step: 1, value, "aria-describedby": `present-${plugin}` };
    const slider = h("input", { ...attributes, type: "range", max: end, "aria-label": `Weight of ${plugin}`, oninput: changed });
    const number = h("input", { ...attributes, type: "number", max: LARGEST, "aria-label": `Weight of ${plugin}, as a number`, oninput: changed });
    const told = h("span", { id: `present-${plugin}`, class: "muted" });
    tell(value);

    function changed(event) {
      const weight = Math.round(Number(event.target.value));
      if (!event.target.value || !(weight >= 0 && weight <= LARGEST)) return;
      for (const input of [slider, number]) if (input !== event.target) /** @type {HTMLInputElement} */ (input).value = String(weight);
      const { [plugin]: _, ...others } = state.weights[profile] ?? {};
      tell(weight);
      set(profile, weight === present ? others : { ...others, [plugin]: weight });
    }

    function tell(weight) {
      fill(told, weight === present ? "as it is" : weight === 0 ? `off, now ${present}` : `now ${present}`);
    }

    return h("div", { class: "weight" }, h("span", { class: "plugin" }, plugin), slider, number, told);
  }

  draw();
  return { root, draw };
}
