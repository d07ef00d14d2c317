import { get, url } from "../api.js";
import { fill, h } from "../dom.js";
import { moment } from "../format.js";
import { repeat } from "../repeat.js";
import { sources } from "../sources.js";

const SECONDS = 10;

/** The configuration that is in effect, defaults included. @param {import("../main.js").View} view */
export async function show(view) {
  let generation = null;
  await repeat(SECONDS, view.signal, async () => {
    const effective = await get("debug/config", {}, { signal: view.signal });
    if (effective.generation === generation) return;
    generation = effective.generation;
    draw(view.root, effective);
  });
}

function draw(root, { configuration, generation, loadedAt }) {
  fill(
    root,
    h("p", {}, `Generation ${generation}, loaded at ${moment(loadedAt)}. Defaults are included.`),
    h("pre", { class: "document", tabindex: "0", "aria-label": "Configuration" }, JSON.stringify(configuration, null, 2)),
    sources({ json: url("debug/config") }),
  );
}
