/** Characters of an address that all browsers and most chats take. */
export const LONGEST = 8000;
/** Of a manifest that an address unpacks to: no more than a request may have. */
const MOST_BYTES = 2 ** 20;

/**
 * Return *text*, compressed, in characters that an address may have.
 * @param {string} text
 * @returns {Promise<string>}
 */
export async function pack(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/**
 * The inverse of `pack`. Throws an Error for what `pack` has not returned.
 * @param {string} packed
 * @returns {Promise<string>}
 */
export async function unpack(packed) {
  try {
    const binary = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    return await decompressed(new Blob([bytes]).stream());
  } catch {
    throw new Error("The manifest in this address is damaged: part of the address may be missing.");
  }
}

async function decompressed(stream) {
  const reader = stream.pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (let size = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    size += value.length;
    if (size > MOST_BYTES) throw new RangeError("too large");
    text += decoder.decode(value, { stream: true });
  }
}
