import { h } from "./dom.js";

/** What is shown until there is something to show. */
export const loading = () => h("p", { class: "state", "aria-busy": "true" }, "Loading …");

/** Why nothing can be shown. @param {unknown} error */
export const problem = (error) =>
  h(
    "div",
    { class: "state problem", role: "alert" },
    h("p", {}, error instanceof Error ? error.message : String(error)),
    h("button", { type: "button", onclick: () => dispatchEvent(new HashChangeEvent("hashchange")) }, "Try again"),
  );

/** That there is nothing of what was asked for. @param {string} text */
export const empty = (text) => h("p", { class: "state" }, text);
