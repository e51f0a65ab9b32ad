"""The page of `export/demo` in a browser, with a stub of the server."""

import json
import re
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="needs a browser: pip install playwright"
)
# Long, for busy machines.
sync_api.expect.set_options(timeout=30_000)
PAGE = Path(__file__).parents[2] / "export" / "demo"
STUB = "http://127.0.0.1:9"  # Playwright responds to its requests.
PAIR = "“{}” attends to “{}” with weight {}".format
# Colour of the canvas in the middle of the selected cell.
PIXEL = """(cell) => {
    const canvas = document.querySelector("canvas");
    const box = canvas.getBoundingClientRect();
    const { left, top, width, height } = cell.getBoundingClientRect();
    const scale = canvas.width / box.width;
    const x = (left + width / 2 - box.left) * scale;
    const y = (top + height / 2 - box.top) * scale;
    return [...canvas.getContext("2d").getImageData(x, y, 1, 1).data]; }"""
CHANNELS = """(name) => {
    const paint = document.createElement("canvas").getContext("2d");
    const root = getComputedStyle(document.documentElement);
    paint.fillStyle = root.getPropertyValue(name);
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data]; }"""


class Demo:
    """The page in a tab, with its requests, errors and console messages."""

    def __init__(self, tab, url):
        self.tab, self.url, self.servers = tab, url, [url]
        self.requests, self.errors, self.console = [], [], []
        tab.on("request", lambda request: self.requests.append(request))
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("console", lambda line: self.console.append(line.text))

    def open(self, server=STUB, model="tiny"):
        self.servers.append(server)
        query = urlencode({"server": server, "model": model})
        self.tab.goto(f"{self.url}/?{query}")

    def answer(self, found=None, aligned=None, status=200, text=None, **more):
        """Set the responses of the stub.

        They have the row of a translation and the rows of alignments by rank;
        or other members of the JSON; or a text instead of JSON.
        """

        def fulfill(route):
            request, rows = json.loads(route.request.post_data or "{}"), [found]
            if request.get("signature_name") == "align" and aligned:
                rows = [aligned[request["instances"][0]["rank"]]]
            if request.get("signature_name") == "align_pair" and aligned:
                rows = aligned
            body = more if status != 200 or more else {"predictions": rows}
            cors = ("Origin", "Headers", "Methods")
            route.fulfill(
                status=status,
                body=json.dumps(body) if text is None else text,
                headers={
                    **{f"Access-Control-Allow-{name}": "*" for name in cors},
                    "Access-Control-Expose-Headers": "*",
                    # A star does not allow this header.
                    "Access-Control-Allow-Headers": "authorization",
                    **({"Retry-After": "2"} if status == 429 else {}),
                },
            )

        self.tab.unroute_all(behavior="ignoreErrors")
        self.tab.route(STUB + "/**", fulfill)

    def send(self, text="a cat"):
        self.tab.fill("#text", text)
        self.tab.press("#text", "Enter")

    def ask(self, sentence, *answer, **others):
        """Set the responses, and send a sentence."""
        self.answer(*answer, **others)
        self.send(sentence)

    def fill(self, **values):
        for name, value in values.items():
            self.tab.fill(f"#{name}", value)

    def open_alignment(self):
        self.tab.click("#alignment > summary")

    def see_alignment(self):
        """Open the section, and wait until it shows the matrix."""
        self.open_alignment()
        self.shows("#pair", re.compile("^Each row"))

    def see_pair(self, target, source, weight="0.500"):
        """Focus the selected cell, which shows these words."""
        self.tab.focus("#cell")
        self.shows("#pair", PAIR(target, source, weight))

    def sent_rows(self, signature="translate_with_options"):
        """Return the first row of each request for a signature."""
        posts = [each for each in self.requests if each.method == "POST"]
        bodies = [json.loads(post.post_data) for post in posts]
        bodies = [x for x in bodies if x["signature_name"] == signature]
        return [body["instances"][0] for body in bodies]

    def shows(self, selector, text):
        sync_api.expect(self.tab.locator(selector)).to_have_text(text)

    def shown_weight(self):
        """Return the weight that the colour of the selected cell shows."""
        pixel = np.array(self.tab.eval_on_selector("#cell", PIXEL)[:3], float)
        ground, accent = (
            np.array(self.tab.evaluate(CHANNELS, name)[:3], float)
            for name in ("--cell", "--accent")
        )
        span = accent - ground
        return float((pixel - ground) @ span / (span @ span))


def translated(*texts, scores=None, **others):
    """Create an output row of `translate_with_options`."""
    return {
        "translations": list(texts),
        "scores": scores or [-0.25 * (n + 1) for n in range(len(texts))],
        "truncated": False,
        "status": "OK",
        **others,
    }


def aligned(target, source, weights=None, padding=0):
    """Create an output row of `align`; by default weights halve per word."""
    width = len(source) + padding
    row = [0.5 ** (s + 1) for s in range(len(source))] + [0.0] * padding
    halves = [row] * len(target) + [[0.0] * width] * padding
    return {
        "translation": " ".join(target),
        "score": -0.25,
        "tokens": [*target, *[""] * padding],
        "lengths": len(target),
        "alignments": weights or halves,
        "source_tokens": [*source, *[""] * padding],
        "source_lengths": len(source),
        "truncated": False,
        "status": "OK",
    }
