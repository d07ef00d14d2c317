import { get, post } from "./api.js";
import { fill, h } from "./dom.js";
import { moment } from "./format.js";
import { podAddress } from "./routes.js";
import { problem } from "./states.js";

const PATH = "debug/recording";

/**
 * @typedef {object} Position which moment of a recording is shown
 * @property {string} at
 * @property {number} made how many attempts have been made up to it
 * @property {number} attempts how many there are
 * @property {{pod: string, result: string, node: string} | null} next the attempt that comes next
 */

/**
 * Show which moment of the recording it is, below the header, and let people choose another one.
 * @param {() => void} redraw shows the screen anew
 */
export async function showMoment(redraw) {
  const slider = /** @type {HTMLInputElement} */ (
    h("input", { type: "range", min: 0, step: 1, "aria-label": "Attempts made", oninput: () => tell(), onchange: () => move(slider.valueAsNumber) })
  );
  const button = (text, label, to) => h("button", { type: "button", "aria-label": label, title: label, onclick: () => move(to()) }, text);
  const words = h("p", { role: "status" });
  let position = /** @type {Position | null} */ (null);
  let isMoving = false;
  const bar = h(
    "section",
    { class: "recording", "aria-label": "Recording" },
    button("|<", "First attempt", () => 0),
    button("<", "Attempt before", () => (position?.made ?? 0) - 1),
    slider,
    button(">", "Next attempt", () => (position?.made ?? 0) + 1),
    button(">|", "End of the recording", () => position?.attempts ?? 0),
    words,
  );
  document.querySelector("header.top")?.after(bar);

  function show(shown) {
    position = /** @type {Position} */ (shown);
    slider.max = String(position.attempts);
    slider.value = String(position.made);
    tell();
  }

  function tell() {
    if (!position) return;
    const chosen = slider.valueAsNumber;
    const which = `${chosen} of ${position.attempts} attempts made`;
    if (chosen !== position.made) {
      fill(words, which);
      return;
    }
    const { next } = position;
    const outcome = next && (next.node || next.result || "not tried");
    fill(words, `${moment(position.at)} · ${which}`, next && [" · next: ", h("a", { href: podAddress(next.pod) }, next.pod), ` → ${outcome}`]);
  }

  async function move(made) {
    if (isMoving || !position || made < 0 || made > position.attempts) return;
    isMoving = true;
    bar.setAttribute("aria-busy", "true");
    try {
      show(await post(PATH, { made }));
      redraw();
    } catch (error) {
      fill(words, problem(error));
    } finally {
      isMoving = false;
      bar.removeAttribute("aria-busy");
    }
  }

  try {
    show(await get(PATH));
  } catch (error) {
    fill(words, problem(error));
  }
}
