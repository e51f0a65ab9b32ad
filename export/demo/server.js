"use strict";

// Requests to a server and their responses, by docs/serving_contract.md.

const CORS_FLAG = "--rest_api_enable_cors_support=true";
const STATUSES = {
  TEXT_TOO_LONG:
    "The sentence, or what the translation is to begin with, is longer than " +
    "the server takes. Split it.",
  TOO_MANY_ROWS: "The server takes fewer sentences at once.",
};

// Error that a valid token may resolve.
class TokenError extends Error {}

// Explains why a fetch failed. The browser hides the reason from the page, but
// allows requests whose response the page cannot read.
async function whyUnread(server, signal) {
  if (location.protocol === "https:" && server.startsWith("http:")) {
    return `A page of https may not ask ${server}, which is http only.`;
  }
  try {
    await fetch(`${server}/v1/models/`, { mode: "no-cors", signal });
  } catch {
    signal.throwIfAborted();
    return (
      `No answer from ${server}. Does a server run there, and is this its ` +
      "address? Behind the proxy this page may ask only its own server; " +
      `a server on its own needs ${CORS_FLAG} to be asked by a page.`
    );
  }
  return (
    `${server} answers, but does not let this page read its answers. Open ` +
    "the page at the address of the proxy, or start TensorFlow Serving with " +
    `${CORS_FLAG}.`
  );
}

function refusal(response, said, { server, model }) {
  const { status } = response;
  if (status === 401) {
    return new TokenError(
      `${server} asks for a token: enter it under “Server”. ${said}`,
    );
  }
  if (status === 404) {
    return new Error(
      `${server} serves no model “${model}”, as named under “Server”. ${said}`,
    );
  }
  const wait = response.headers.get("Retry-After");
  const advice = wait ? ` Try again in ${wait} s.` : "";
  return new Error(`The server refuses (${status}): ${said}${advice}`);
}

// Sends one row to a signature; returns the row of the response after checking
// that it has the parts.
async function predict(place, signature, row, parts, signal) {
  const { server, model, token } = place;
  const body = { signature_name: signature, instances: [row] };
  const response = await fetch(
    `${server}/v1/models/${encodeURIComponent(model)}:predict`,
    {
      method: "POST",
      // As text/plain: JSON would need a preflight request.
      body: JSON.stringify(body),
      headers: token ? { Authorization: `Bearer ${token}` } : {},
      credentials: "omit",
      redirect: "error",
      signal,
    },
  ).catch(async () => {
    signal.throwIfAborted();
    throw new Error(await whyUnread(server, signal));
  });
  const text = await response.text();
  let answer = {};
  try {
    answer = JSON.parse(text) ?? {};
  } catch {
    // Not JSON: reported below, with its text.
  }
  const said = answer.error ?? text.slice(0, 300);
  if (!response.ok) throw refusal(response, said, place);
  const found = answer.predictions?.[0];
  if (!parts.every((name) => found?.[name] !== undefined)) {
    throw new Error(
      "This is no answer of a translator that speaks contract 3. Expected: " +
      `${parts.join(", ")}. Received: ${said}`,
    );
  }
  if (found.status !== "OK") {
    throw new Error(STATUSES[found.status] ?? `Status ${found.status}.`);
  }
  return found;
}

// A request is `{ place, row, searchOptions }`. The row has the text and the
// options of beam search; searchOptions are those of the signature `search`,
// or null.

const translations = ({ place, row, searchOptions }, signal) =>
  predict(
    place, searchOptions ? "search" : "translate_with_options",
    { ...row, ...searchOptions },
    ["translations", "scores", "truncated", "status"], signal,
  );

const ALIGNMENT = ["tokens", "lengths", "alignments", "source_tokens",
  "source_lengths", "status"];

// Requests the alignment of the translation with a rank. `align` does not accept
// searchOptions; with them, the text of the translation is sent instead.
async function alignment({ place, row, searchOptions }, text, rank, signal) {
  const { n_best, ...beam } = row;
  if (!searchOptions) {
    return predict(place, "align", { ...beam, rank }, ALIGNMENT, signal);
  }
  const pair = { source: row.text, target: text };
  const found = await predict(place, "align_pair", pair, ALIGNMENT, signal);
  // The last row belongs to the end-of-sentence token, which is not a word.
  return { ...found, lengths: found.lengths - 1 };
}
