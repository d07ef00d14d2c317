/** What a refusal begins with, and the field of the form that it is about. */
const FIELDS = [
  [/^templates\[0\]\.like/, "pod"],
  [/^templates\[0\]\.text/, "text"],
  [/^templates\[0\](\.manifest)?\.replicas/, "replicas"],
  [/^templates\[0\].*\b(nodeSelector)/, "selector"],
  [/^templates\[0\].*\bpriority/, "priority"],
  [/^templates\[0\].*\bnamespace/, "namespace"],
  [/^templates\[0\].*\brequests\[cpu\]/, "cpu"],
  [/^templates\[0\].*\brequests\[memory\]/, "memory"],
  [/^templates\[0\].*\brequests\[/, "resources"],
  [/^templates/, "replicas"],
  [/^addNodes\[0\]\.count/, "count"],
  [/^addNodes: /, "count"],
  [/^addNodes/, "add"],
  [/^removeNodes\.selector/, "zone"],
  [/^removeNodes/, "remove"],
  [/^findRemovable/, "among"],
  [/^findNodes/, "find"],
  [/^cordonNodes/, "cordon"],
  [/^comparePreset/, "preset"],
  [/^compareProfile/, "profile"],
  [/^pod .*spec\.schedulerName/, "profile"],
  [/^compareWeights/, "weights"],
  [/^repack/, "repack"],
];

/**
 * Return the field that a refusal of `POST /simulate` is about, null for none of the form.
 * @param {string} reason
 */
export const fieldOf = (reason) => FIELDS.find(([pattern]) => pattern.test(reason))?.[1] ?? null;
