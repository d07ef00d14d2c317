/**
 * Command lines to be copied. What is in them comes from the cluster and from links, and a terminal
 * acts on more than the shell does: on control characters that are pasted, escape sequences that end
 * a bracketed paste, line breaks. So a command is one line of characters that can be seen, and what
 * is copied is what is shown.
 */

/** What nobody sees, or sees in another order: controls, line breaks, bidirectional marks. */
const UNSEEN = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;
/** Those, and what means something to `printf %b`, to quotes, or to the history of a shell. */
const SPECIAL = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]|[\\'!]/gu;
const BARE = /^[\w@%+:,./-][\w@%+=:,./-]*$/;
const UTF8 = new TextEncoder();

/** Return a command line of *words*, each of them quoted where need be. @param {...string} words */
export const commandLine = (...words) => words.map(quoted).join(" ");

/** Return a command that writes *text*. @param {string} text */
export const written = (text) => `printf '%b' '${escaped(text)}'`;

/** Return *value* as JSON of visible ASCII only. @param {unknown} value */
export const plainJson = (value) =>
  JSON.stringify(value).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

function quoted(word) {
  if (UNSEEN.test(word)) return `"$(${written(word)})"`;
  return BARE.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** For `printf %b`, in single quotes. */
const escaped = (text) =>
  text.replace(SPECIAL, (character) => {
    if (character === "\n") return "\\n";
    return character === "\\" ? "\\\\" : [...UTF8.encode(character)].map((byte) => `\\0${byte.toString(8).padStart(3, "0")}`).join("");
  });
