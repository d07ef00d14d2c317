import { fill } from "./dom.js";
import { clock } from "./format.js";

const line = /** @type {HTMLElement} */ (document.getElementById("connection"));
let lastAnswer = new Date();

/** Say that what is shown is as of now. */
export function answered() {
  lastAnswer = new Date();
  line.classList.remove("stale");
  fill(line);
}

/** Say that what is shown is old, and why. @param {unknown} error */
export function unanswered(error) {
  line.classList.add("stale");
  const why = error instanceof Error ? error.message : String(error);
  fill(line, `Not updated since ${clock(lastAnswer)}. ${why}`);
}
