"use strict";

// Unfilled ranks have the score -1e30, because JSON has no -Infinity.
const ABSENT = -1e29;
const SETTINGS = ["model", "limit"];
const STORE = "luong_keras demo";
const HINT =
  "Each row shows where the model looked to write the word beside it. " +
  "Point at a cell, or walk with the arrow keys.";

const page = {};
for (const part of document.querySelectorAll("[id]")) page[part.id] = part;

// Strings become text nodes, so sentences are never parsed as HTML.
function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// Isolates the writing direction of a word from its surroundings.
const word = (text) => element("bdi", { lang: "" }, text);

const matrix = new Matrix(
  {
    box: page.matrix, extent: page.extent, canvas: page.canvas,
    row: page.row, cell: page.cell,
  },
  (row, column) => page.pair.replaceChildren(
    ...["“", word(matrix.rows[row]), "” attends to “"],
    ...[word(matrix.columns[column]), "” with weight "],
    matrix.weights[row][column].toFixed(3),
  ),
);

// Settings: the query of the address has priority over values of an earlier
// visit. The server is never stored: it is the origin of the page unless the
// query names another.

function kept(storage, name) {
  try {
    return storage().getItem(name);
  } catch {
    return null; // no access to the storage
  }
}

function keep(storage, name, value) {
  try {
    storage().setItem(name, value);
  } catch {
    // No access to the storage: the value lasts for this visit.
  }
}

const local = () => localStorage, session = () => sessionStorage;

function stored() {
  try {
    return JSON.parse(kept(local, STORE)) ?? {};
  } catch {
    return {}; // invalid JSON
  }
}

function store() {
  const values = SETTINGS.map((name) => [name, page[name].value]);
  keep(local, STORE, JSON.stringify(Object.fromEntries(values)));
}

function restore() {
  const query = new URLSearchParams(location.search);
  const earlier = stored();
  for (const name of SETTINGS) {
    page[name].value = query.get(name) ?? earlier[name] ?? page[name].value;
  }
  const own = location.protocol.startsWith("http") && location.origin;
  page.server.value = query.get("server") ?? (own || page.server.value);
  serverChanged();
}

const server = () => page.server.value.trim().replace(/\/+$/, "");

// A token belongs to one server and lasts as long as the tab, so a link that
// names another server does not send it there.
function serverChanged() {
  page.token.value = kept(session, `${STORE} token ${server()}`) ?? "";
  page.address.textContent = server();
  page.foreign.hidden = server() === location.origin;
}

// Requests. At most one of each kind is pending.

function place() {
  return {
    server: server(),
    model: page.model.value.trim(),
    token: page.token.value.trim(),
  };
}

function options() {
  return {
    beam_size: page.beam_size.valueAsNumber || 0,
    length_penalty: -1,
    prefix: page.prefix.value.trim(),
    replace_unknown: -1,
  };
}

// The server expects tabs between phrases, which cannot be typed in a field.
const phrases = (field) =>
  field.value.split(";").map((phrase) => phrase.trim()).filter(Boolean).join("\t");

// Options that only the signature `search` accepts. Without any the result is
// null, so the request suits older exports too.
function searchOptions() {
  const required = phrases(page.required), forbidden = phrases(page.forbidden);
  const drawn = page.temperature.value !== "" || page.seed.value !== "";
  if (!required && !forbidden && !drawn) return null;
  const number = (field) => (field.value === "" ? -1 : field.valueAsNumber);
  return {
    required,
    forbidden,
    temperature: number(page.temperature),
    seed: number(page.seed),
    top_k: -1,
    top_p: -1,
    coverage_penalty: -1,
    no_repeat_ngram: -1,
  };
}

function request() {
  return {
    text: page.text.value,
    ...options(),
    n_best: page.n_best.valueAsNumber || 0,
  };
}

const pending = {};

// Runs `work(signal)`; a later call of the same kind replaces it.
async function only(kind, work, done, failed) {
  pending[kind]?.abort(new Error("Replaced."));
  const mine = (pending[kind] = new AbortController());
  const seconds = page.limit.valueAsNumber;
  const late = new Error(
    `No answer within ${seconds} seconds. Send the sentence again, or raise ` +
    "the time limit under “Server”.",
  );
  const timer = setTimeout(() => mine.abort(late), seconds * 1000);
  try {
    const found = await work(mine.signal);
    if (mine === pending[kind]) done(found);
  } catch (error) {
    if (mine === pending[kind]) failed(error);
  } finally {
    clearTimeout(timer);
  }
}

function translate(event) {
  event.preventDefault();
  pending.alignment?.abort(new Error("Replaced."));
  pending.alignment = undefined;
  const asked = {
    place: place(), row: request(), searchOptions: searchOptions(),
    alignments: [],
  };
  report("Translating…", true);
  only(
    "translation",
    (signal) => translations(asked, signal),
    (found) => show(found, asked),
    fail,
  );
}

// Display.

let looked; // the request, and the translation that is selected

function report(message, busy = false) {
  page.status.textContent = message;
  page.status.className = busy ? "busy" : "";
  page.cancel.hidden = !busy;
  page.answer.ariaBusy = page.translation.ariaBusy = busy;
}

function fail(error) {
  report(error.message);
  page.status.className = "error";
  page.translation.replaceChildren();
  page.answer.hidden = true;
  if (error instanceof TokenError) {
    page.server_details.open = true;
    page.token.focus();
  }
}

function show(found, asked) {
  const ranks = found.scores
    .map((score, rank) => ({ score, rank, text: found.translations[rank] }))
    .filter(({ score }) => score > ABSENT);
  if (!ranks.length) {
    throw new Error(
      "There is no translation: the prefix and the phrases leave no word.",
    );
  }
  report("");
  page.answer.hidden = false;
  page.truncated.hidden = !found.truncated;
  const choices = ranks.map((rank, i) => choice(rank, i === 0, asked));
  page.ranks.replaceChildren(...choices);
  select(ranks[0], asked);
}

function choice(found, checked, asked) {
  const radio = element("input", { type: "radio", name: "rank", checked });
  radio.addEventListener("change", () => select(found, asked));
  const score = found.score.toFixed(3).replace("-", "−");
  const parts = [radio, word(found.text), element("data", {}, score)];
  return element("li", {}, element("label", {}, ...parts));
}

function select({ text, rank }, asked) {
  page.translation.textContent = text || "(no words)";
  looked = { asked, text, rank };
  align();
}

// Requests the alignment only when it is visible, and only once.
function align() {
  if (!looked || !page.alignment.open) return;
  const { asked, text, rank } = looked;
  if (asked.alignments[rank]) {
    pending.alignment?.abort(new Error("Replaced."));
    pending.alignment = undefined;
    draw(asked.alignments[rank]);
    return;
  }
  page.matrix.hidden = true;
  page.pair.textContent = "Asking for the alignment…";
  only(
    "alignment",
    (signal) => alignment(asked, text, rank, signal),
    (found) => draw((asked.alignments[rank] = found)),
    (error) => { page.pair.textContent = error.message; },
  );
}

function draw(found) {
  const target = found.tokens.slice(0, found.lengths);
  const source = found.source_tokens.slice(0, found.source_lengths);
  page.pair.textContent = target.length ? HINT : "There is nothing to align.";
  matrix.show(target, source, found.alignments);
}

page.request.addEventListener("submit", translate);
// Invalid fields must be visible.
page.request.addEventListener("invalid", (event) => {
  event.target.closest("details")?.setAttribute("open", "");
}, true);
page.text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  page.request.requestSubmit();
});
page.cancel.addEventListener("click", () => {
  pending.translation.abort(new Error("Cancelled."));
  page.text.focus();
});
page.server_settings.addEventListener("change", store);
page.server.addEventListener("change", serverChanged);
page.token.addEventListener("change", () =>
  keep(session, `${STORE} token ${server()}`, page.token.value.trim()));
page.alignment.addEventListener("toggle", align);
restore();
