import { fill, h } from "./dom.js";
import { commandLine } from "./shell.js";

const TOLD_SECONDS = 2;

/**
 * Return where a screen has its figures from, for those who would rather have JSON or a terminal.
 * @param {{json?: URL | string, command?: string[]}} where the command by its words
 */
export function sources({ json, command: words }) {
  const command = words && commandLine(...words);
  return h(
    "footer",
    { class: "sources" },
    json && h("p", {}, h("span", {}, "JSON"), h("a", { href: String(json) }, h("code", {}, shown(json)))),
    command && h("p", {}, h("span", {}, "Command"), h("code", {}, command), copyButton(command)),
  );
}

/**
 * A button that puts *text* into the clipboard.
 * @param {string} text
 * @param {string} [name] what it is called for readers of screens
 */
export function copyButton(text, name = text) {
  const button = h("button", { type: "button", class: "small", "aria-label": `Copy ${name}`, onclick: copy }, "Copy");
  async function copy() {
    let told = "Copied";
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      told = "Select the text to copy it";
    }
    fill(button, told);
    setTimeout(() => fill(button, "Copy"), TOLD_SECONDS * 1000);
  }
  return button;
}

function shown(json) {
  const target = new URL(json, document.baseURI);
  return target.pathname + target.search;
}
