"use strict";

// A rank that the search did not fill has -1e30: JSON has no -Infinity.
const ABSENT = -1e29;
const SETTINGS = ["server", "model", "limit"];
const STORE = "luong_keras demo";
const HINT =
  "Each row shows where the model looked to write the word beside it. " +
  "Point at a cell, or walk with the arrow keys.";

const page = {};
for (const part of document.querySelectorAll("[id]")) page[part.id] = part;

// Strings become text nodes, so that no sentence is ever read as HTML.
function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// A word keeps its own direction beside words of another.
const word = (text) => element("bdi", { lang: "" }, text);

// Settings: the address bar goes before what was typed in an earlier visit.

function stored() {
  try {
    return JSON.parse(localStorage.getItem(STORE)) ?? {};
  } catch {
    return {}; // refused, or not ours
  }
}

function store() {
  const values = SETTINGS.map((name) => [name, page[name].value]);
  try {
    localStorage.setItem(STORE, JSON.stringify(Object.fromEntries(values)));
  } catch {
    // Refused: the settings hold for this visit.
  }
}

function restore() {
  const query = new URLSearchParams(location.search);
  const earlier = stored();
  for (const name of SETTINGS) {
    page[name].value = query.get(name) ?? earlier[name] ?? page[name].value;
  }
}

// The server.

function request() {
  const options = {
    beam_size: page.beam_size.valueAsNumber || 0,
    n_best: page.n_best.valueAsNumber || 0,
    prefix: page.prefix.value.trim(),
  };
  const text = page.text.value;
  if (!Object.values(options).some(Boolean)) {
    return { signature_name: "translate", instances: [{ text }] };
  }
  // The signature takes all options or none.
  const others = { length_penalty: -1, replace_unknown: -1 };
  return {
    signature_name: "translate_with_options",
    instances: [{ text, ...options, ...others }],
  };
}

// The browser does not tell a page which it was, but lets it send a request
// whose answer it does not want to read.
async function whyUnread(server, signal) {
  const flag = "--rest_api_enable_cors_support=true";
  try {
    await fetch(`${server}/v1/models/`, { mode: "no-cors", signal });
  } catch {
    signal.throwIfAborted();
    return (
      `No answer from ${server}. Does TensorFlow Serving run there, is this ` +
      `its REST port, 8501 by default, and was it started with ${flag}?`
    );
  }
  return (
    `${server} answers, but does not let this page read its answers. ` +
    `Start TensorFlow Serving with ${flag}.`
  );
}

async function ask(signal) {
  const server = page.server.value.trim().replace(/\/+$/, "");
  const model = page.model.value.trim();
  const url = `${server}/v1/models/${encodeURIComponent(model)}:predict`;
  // As text/plain, which needs no leave in advance as JSON would.
  const message = { method: "POST", body: JSON.stringify(request()), signal };
  const response = await fetch(url, message).catch(async () => {
    signal.throwIfAborted();
    throw new Error(await whyUnread(server, signal));
  });
  const text = await response.text();
  let answer = {};
  try {
    answer = JSON.parse(text) ?? {};
  } catch {
    // Not JSON: told below, with its text.
  }
  const said = answer.error ?? text.slice(0, 300);
  if (response.status === 404) {
    throw new Error(
      `${server} serves no model “${model}”, as named under “Server”. ${said}`,
    );
  }
  if (!response.ok) {
    throw new Error(`The server refuses (${response.status}): ${said}`);
  }
  const found = answer.predictions?.[0];
  if (!found?.alignments || !found.source_tokens) {
    throw new Error(
      "This is no answer of a translator that export/export_saved_model.py " +
      `has written. Expected: translations and alignments. Received: ${said}`,
    );
  }
  return found;
}

let pending;

async function translate(event) {
  event.preventDefault();
  pending?.abort(new Error("Replaced."));
  const mine = (pending = new AbortController());
  const seconds = page.limit.valueAsNumber;
  const late = new Error(
    `No answer within ${seconds} seconds. Send the sentence again, or raise ` +
    "the time limit under “Server”.",
  );
  const timer = setTimeout(() => mine.abort(late), seconds * 1000);
  report("Translating…", true);
  try {
    show(await ask(mine.signal));
  } catch (error) {
    if (mine === pending) fail(error.message);
  } finally {
    clearTimeout(timer);
  }
}

// What the page shows.

function report(message, busy = false) {
  page.status.textContent = message;
  page.status.className = busy ? "busy" : "";
  page.cancel.hidden = !busy;
  page.answer.ariaBusy = page.translation.ariaBusy = busy;
}

function fail(message) {
  report(message);
  page.status.className = "error";
  page.translation.replaceChildren();
  page.answer.hidden = true;
}

function show(found) {
  const source = found.source_tokens.slice(0, found.source_lengths);
  const ranks = found.scores
    .map((score, rank) => ({
      score,
      text: found.translations[rank],
      target: found.tokens[rank].slice(0, found.lengths[rank]),
      weights: found.alignments[rank],
    }))
    .filter(({ score }) => score > ABSENT);
  report("");
  page.answer.hidden = false;
  page.truncated.hidden = !found.truncated;
  const choices = ranks.map((rank, i) => choice(rank, i === 0, source));
  page.ranks.replaceChildren(...choices);
  select(ranks[0], source);
}

function choice(rank, checked, source) {
  const radio = element("input", { type: "radio", name: "rank", checked });
  radio.addEventListener("change", () => select(rank, source));
  const score = rank.score.toFixed(3).replace("-", "−");
  const parts = [radio, word(rank.text), element("data", {}, score)];
  return element("li", {}, element("label", {}, ...parts));
}

function select({ text, target, weights }, source) {
  page.translation.textContent = text || "(no words)";
  const row = (...cells) => element("tr", {}, ...cells);
  const heading = (scope, text) =>
    element("th", { scope, title: text }, word(text));
  const columns = source.map((w) => heading("col", w));
  page.source.replaceChildren(row(element("td"), ...columns));
  const rows = target.map((w, t) => {
    const cells = source.map((_, s) => cell(weights[t][s]));
    return row(heading("row", w), ...cells);
  });
  page.weights.replaceChildren(...rows);
  page.weights.querySelector("td")?.setAttribute("tabindex", 0);
  page.pair.textContent = target.length ? HINT : "";
}

function cell(weight) {
  const made = element("td", { tabIndex: -1 }, weight.toFixed(3));
  made.style.setProperty("--weight", weight);
  return made;
}

function point(event) {
  const cell = event.target.closest("td");
  if (!cell) return;
  const row = cell.parentNode.cells[0];
  const column = page.source.rows[0].cells[cell.cellIndex];
  for (const old of document.querySelectorAll(".pointed")) {
    old.classList.remove("pointed");
  }
  for (const part of [cell, row, column]) part.classList.add("pointed");
  page.pair.replaceChildren(
    ...["“", word(row.title), "” attends to “", word(column.title)],
    `” with weight ${cell.textContent}`,
  );
  if (event.type === "focusin") {
    // The cell last visited is the one that Tab comes back to.
    page.weights.querySelector("[tabindex='0']").tabIndex = -1;
    cell.tabIndex = 0;
    // Out from under the headings, which focus alone does not see to.
    cell.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}

function walk(event) {
  const { key, target } = event;
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const { rowIndex, cells } = target.parentNode;
  const row = { ArrowUp: rowIndex - 1, ArrowDown: rowIndex + 1 }[key];
  const column = {
    ArrowLeft: target.cellIndex - 1,
    ArrowRight: target.cellIndex + 1,
    Home: 1,
    End: cells.length - 1,
  }[key];
  if (row === undefined && column === undefined) return;
  event.preventDefault();
  // The headings, row 0 and column 0, take no focus.
  const there = target.closest("table").rows[row ?? rowIndex];
  there?.cells[column ?? target.cellIndex]?.focus();
}

page.request.addEventListener("submit", translate);
// A field that the browser complains about must be seen.
page.request.addEventListener("invalid", (event) => {
  event.target.closest("details")?.setAttribute("open", "");
}, true);
page.text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  page.request.requestSubmit();
});
page.cancel.addEventListener("click", () => {
  pending.abort(new Error("Cancelled."));
  page.text.focus();
});
page.server_settings.addEventListener("change", store);
page.weights.addEventListener("pointerover", point);
page.weights.addEventListener("focusin", point);
page.weights.addEventListener("keydown", walk);
restore();
