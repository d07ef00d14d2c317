import { answered } from "./connection.js";
import { fill, h } from "./dom.js";
import { address, parse } from "./routes.js";
import { SCREENS } from "./screens.js";
import { loading, problem } from "./states.js";

/**
 * @typedef {object} View where a screen is shown
 * @property {HTMLElement} root to be filled
 * @property {AbortSignal} signal aborted when the screen is left
 * @property {(text: string) => void} title sets the heading and the title of the document
 */

const THEMES = { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
let shown = { screen: null, path: "", update: null, leave: new AbortController() };

/** Show what the address says. */
async function route({ anew = true } = {}) {
  const where = parse(location.hash);
  const screen = where.screen ? SCREENS.find(({ name }) => name === where.screen) : SCREENS[0];
  const path = where.path.join("/");
  if (!anew && screen && screen === shown.screen && path === shown.path && shown.update) {
    shown.update(where);
    return;
  }
  shown.leave.abort();
  const leave = new AbortController();
  shown = { screen, path, update: null, leave };
  answered();
  mark(screen);
  const heading = h("h1", { tabindex: "-1" }, screen?.title ?? "Not found");
  const root = h("div", { class: `screen ${screen?.name ?? ""}` }, loading());
  fill(main, heading, root);
  const title = (text) => {
    fill(heading, text);
    document.title = `${text} · berth`;
  };
  title(screen?.title ?? "Not found");
  heading.focus({ preventScroll: true });
  if (!screen) {
    fill(root, h("p", {}, `There is no screen ${where.screen}.`));
    return;
  }
  try {
    const module = await load(screen);
    if (leave.signal.aborted) return;
    const handle = await module.show({ root, signal: leave.signal, title }, where);
    if (!leave.signal.aborted) shown.update = handle?.update ?? null;
  } catch (error) {
    if (!leave.signal.aborted) fill(root, problem(error));
  }
}

async function load(screen) {
  const [module] = await Promise.all([
    import(`./screens/${screen.name}.js`),
    screen.hasStyle ? stylesheet(`css/${screen.name}.css`) : null,
  ]);
  return module;
}

function stylesheet(href) {
  if (document.querySelector(`link[href="${href}"]`)) return null;
  return new Promise((resolve, reject) => {
    const failed = () => reject(new Error(`${href} cannot be loaded`));
    document.head.append(h("link", { rel: "stylesheet", href, onload: resolve, onerror: failed }));
  });
}

function mark(screen) {
  for (const link of document.querySelectorAll("#screens a")) {
    if (link.getAttribute("href") === address(screen?.name ?? "")) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "center" });
    } else link.removeAttribute("aria-current");
  }
}

function themeSwitch() {
  const button = /** @type {HTMLElement} */ (document.getElementById("theme"));
  const names = Object.keys(THEMES);
  let theme = localStorage.getItem("theme") ?? "auto";
  const apply = () => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    fill(button, THEMES[theme] ?? THEMES.auto);
    dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", () => {
    theme = names[(names.indexOf(theme) + 1) % names.length];
    localStorage.setItem("theme", theme);
    apply();
  });
  apply();
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", () => dispatchEvent(new Event("themechange")));
}

/** `/` goes to the search of a screen, as in many other pages. */
function searchKey(event) {
  const typing = event.target instanceof Element && event.target.matches("input, textarea, select");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const field = main.querySelector("input[type=search]");
  if (field instanceof HTMLElement) {
    event.preventDefault();
    field.focus();
  }
}

const entries = SCREENS.filter(({ inNavigation }) => inNavigation);
fill(
  /** @type {HTMLElement} */ (document.getElementById("screens")),
  entries.map(({ name, title }) => h("li", {}, h("a", { href: address(name) }, title))),
);
themeSwitch();
if ("recording" in document.documentElement.dataset) import("./recording.js").then(({ showMoment }) => showMoment(route));
document.querySelector(".skip")?.addEventListener("click", (event) => {
  event.preventDefault(); // the address says which screen it is, not where in it
  main.focus();
});
addEventListener("keydown", searchKey);
addEventListener("hashchange", (event) => route({ anew: !(event instanceof HashChangeEvent && event.newURL) }));
route();
