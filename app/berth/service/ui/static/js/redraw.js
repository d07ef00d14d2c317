import { fill } from "./dom.js";

const FOCUSABLE = "a[href], button, summary, input, select, [tabindex]";

/**
 * Put *children* in place of what *root* contains, and leave what somebody has opened open, and the
 * focus where it is, as far as the new content has the same parts.
 * @param {Element} root @param {...import("./dom.js").Child} children
 */
export function redraw(root, ...children) {
  const name = (details) => details.querySelector("summary")?.textContent;
  const open = new Set([...root.querySelectorAll("details[open]")].map(name));
  const focused = [...root.querySelectorAll(FOCUSABLE)].indexOf(/** @type {Element} */ (document.activeElement));
  fill(root, ...children);
  for (const details of root.querySelectorAll("details")) if (open.has(name(details))) details.open = true;
  const again = root.querySelectorAll(FOCUSABLE)[focused];
  if (again instanceof HTMLElement) again.focus({ preventScroll: true });
}
