import { answered, unanswered } from "./connection.js";

/**
 * Call *run* now, and again *seconds* after it ended, until *signal* is aborted. Nothing runs while
 * the tab is hidden. The first error is thrown, so that a screen can show it in place of itself;
 * after that what was shown stays, and the head of the page tells that it is old.
 * @param {number} seconds
 * @param {AbortSignal} signal
 * @param {() => Promise<void>} run
 */
export async function repeat(seconds, signal, run) {
  await run();
  answered();
  again(seconds, signal, run);
}

async function again(seconds, signal, run) {
  while (true) {
    await pause(seconds, signal);
    await visible(signal);
    if (signal.aborted) return;
    try {
      await run();
      answered();
    } catch (error) {
      if (signal.aborted) return;
      unanswered(error);
    }
  }
}

function pause(seconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve(undefined)), { once: true });
  });
}

function visible(signal) {
  if (!document.hidden) return undefined;
  return new Promise((resolve) => {
    const listening = new AbortController();
    const done = () => (listening.abort(), resolve(undefined));
    document.addEventListener("visibilitychange", done, { signal: listening.signal });
    signal.addEventListener("abort", done, { signal: listening.signal });
  });
}
