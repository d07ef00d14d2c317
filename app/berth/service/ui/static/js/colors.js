/**
 * Return a colour of base.css as the theme has it now, as in `rgb(31, 95, 191)`: for canvases, which
 * know no variables. Ask again at the event `themechange`, of `window`.
 * @param {string} token as in `--accent`
 */
export function color(token) {
  const probe = document.createElement("span");
  probe.style.color = `var(${token})`;
  document.body.append(probe);
  const { color: resolved } = getComputedStyle(probe);
  probe.remove();
  return resolved;
}
