const NUMBERS = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const SECONDS = { d: 86400, h: 3600, m: 60, s: 1 };

/** A number with groups of thousands, as in 1,234. @param {number} value */
export const count = (value) => NUMBERS.format(value);

/** A noun with its number, as in "1 node", "5,000 nodes". */
export const counted = (value, singular, plural = `${singular}s`) =>
  `${count(value)} ${value === 1 ? singular : plural}`;

/** How much *part* is of *whole*, as in 82%; a dash if there is no whole. */
export const percent = (part, whole) => (whole > 0 ? `${Math.round((100 * part) / whole)}%` : "–");

/** A duration as kubectl writes ages: 45s, 3m12s, 5h, 2d4h. @param {number} seconds */
export function age(seconds) {
  let left = Math.max(0, Math.floor(seconds));
  if (left < 120) return `${left}s`;
  const [large, small, until] = left < 10800 ? ["m", "s", 600] : left < 172800 ? ["h", "m", 28800] : ["d", "h", 691200];
  const whole = Math.floor(left / SECONDS[large]);
  const rest = Math.floor((left % SECONDS[large]) / SECONDS[small]);
  return left < until && rest ? `${whole}${large}${rest}${small}` : `${whole}${large}`;
}

/** Milliseconds, or seconds where these are many. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 0.001) return `${count(Math.round(seconds * 1e6))} µs`;
  if (seconds < 1) return `${count(Math.round(seconds * 1e4) / 10)} ms`;
  return seconds < 120 ? `${count(Math.round(seconds * 10) / 10)} s` : age(seconds);
}

/**
 * An amount of a resource, in the units of the scheduler, for people: cores, binary multiples of
 * bytes, otherwise a number.
 * @param {string} resource @param {number} amount CPU in thousandths, memory and storage in bytes
 */
export function quantity(resource, amount) {
  if (resource === "cpu") return Math.abs(amount) < 1000 && amount ? `${count(amount)}m` : count(amount / 1000);
  return isBytes(resource) ? bytes(amount) : count(amount);
}

/** As in 1.5Gi. @param {number} amount */
export function bytes(amount) {
  let power = 0;
  while (Math.abs(amount) >= 1024 && power < BINARY.length - 1) {
    amount /= 1024;
    power += 1;
  }
  return `${count(Math.round(amount * 10) / 10)}${BINARY[power]}`;
}

/** The time of day here, to the second. @param {Date | string} when */
export const clock = (when) => new Date(when).toLocaleTimeString("en-GB");

/** Day and time here. @param {Date | string} when */
export const moment = (when) => `${new Date(when).toLocaleDateString("sv-SE")} ${clock(when)}`;

const isBytes = (resource) =>
  ["memory", "ephemeral-storage", "storage"].includes(resource) || resource.startsWith("hugepages-");
