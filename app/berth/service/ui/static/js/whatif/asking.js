import { post } from "../api.js";
import { fill, h } from "../dom.js";

/** What the server gives one simulation, of CPU time; while others run, that takes longer. */
const MOST_SECONDS = 30;

/**
 * Asks one question at a time and shows how long it takes.
 * @param {AbortSignal} leaving
 */
export function asker(leaving) {
  const bar = /** @type {HTMLProgressElement} */ (h("progress", { max: MOST_SECONDS, "aria-label": "Simulating" }));
  const seconds = h("span", { class: "muted" });
  const root = h("p", { class: "asking", hidden: true }, bar, seconds);
  let current = new AbortController();

  /** @param {object} body @returns {Promise<any>} null if it was cancelled */
  async function ask(body) {
    cancel();
    const mine = (current = new AbortController());
    const begin = Date.now();
    const tick = () => {
      const passed = Math.floor((Date.now() - begin) / 1000);
      bar.value = passed;
      fill(seconds, `${passed} s; the answer may take ${MOST_SECONDS} s of CPU time`);
    };
    root.hidden = false;
    tick();
    const timer = setInterval(tick, 1000);
    try {
      return await post("simulate", body, { signal: AbortSignal.any([leaving, mine.signal]) });
    } catch (error) {
      if (mine.signal.aborted || leaving.aborted) return null;
      throw error;
    } finally {
      clearInterval(timer);
      if (mine === current) root.hidden = true;
    }
  }

  function cancel() {
    current.abort();
  }

  return { root, ask, cancel };
}
