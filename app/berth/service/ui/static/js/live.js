import { url } from "./api.js";
import { clock } from "./format.js";

const STALE_SECONDS = 5;
const RETRY_SECONDS = 5;

/**
 * Follow a stream of server-sent events while the tab is seen, until *signal* is aborted. What ends
 * is begun again.
 * @param {string} path
 * @param {AbortSignal} signal
 * @param {object} on
 * @param {(message: any) => void} on.message is given the JSON of each event
 * @param {(state: {text: string, isLive: boolean}) => void} on.state
 */
export function follow(path, signal, { message, state }) {
  let source = /** @type {EventSource | null} */ (null);
  let last = new Date();
  let told = "";
  let retry = 0;

  function tell(text, isLive = false) {
    if (text === told) return;
    told = text;
    state({ text, isLive });
  }

  function open() {
    close();
    tell("Connecting …");
    source = new EventSource(url(path));
    source.onmessage = ({ data }) => {
      last = new Date();
      tell("Live", true);
      message(JSON.parse(data));
    };
    source.onerror = () => {
      tell(`Reconnecting. Last updated at ${clock(last)}`);
      // A refusal ends the source for good; a lost connection does not.
      if (source?.readyState === EventSource.CLOSED) retry = window.setTimeout(open, RETRY_SECONDS * 1000);
    };
  }

  function close() {
    clearTimeout(retry);
    source?.close();
    source = null;
  }

  const watch = setInterval(() => {
    if (told === "Live" && Date.now() - last.getTime() > STALE_SECONDS * 1000) tell(`Stale since ${clock(last)}`);
  }, 1000);
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()), { signal });
  signal.addEventListener("abort", () => (clearInterval(watch), close()), { once: true });
  if (!document.hidden) open();
}
