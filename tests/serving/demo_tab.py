"""The page in `export/demo` in a tab of a browser, before a made-up server."""

import json
import shutil
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="needs a browser: pip install playwright"
)
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
)
PAGE = Path(__file__).parents[2] / "export" / "demo"
STUB = "http://127.0.0.1:9"  # Requests to it are answered by the browser.
# Colour in the middle of the cell that is read, as the canvas has it.
PIXEL = """(cell) => {
    const canvas = document.querySelector("canvas");
    const of = canvas.getBoundingClientRect();
    const { left, top, width, height } = cell.getBoundingClientRect();
    const scale = canvas.width / of.width;
    const x = (left + width / 2 - of.left) * scale;
    const y = (top + height / 2 - of.top) * scale;
    return [...canvas.getContext("2d").getImageData(x, y, 1, 1).data]; }"""
CHANNELS = """(name) => {
    const paint = document.createElement("canvas").getContext("2d");
    const root = getComputedStyle(document.documentElement);
    paint.fillStyle = root.getPropertyValue(name);
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data]; }"""


class Demo:
    """The page in a tab, and all that it asks for and complains about."""

    def __init__(self, tab, url):
        self.tab, self.url, self.servers = tab, url, [url]
        self.requests, self.errors, self.complaints = [], [], []
        tab.on("request", lambda request: self.requests.append(request))
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("console", lambda line: self.complaints.append(line.text))

    def open(self, server=STUB, model="tiny"):
        self.servers.append(server)
        query = urlencode({"server": server, "model": model})
        self.tab.goto(f"{self.url}/?{query}")

    def answer(self, found=None, aligned=None, status=200, text=None, **more):
        """Makes the stub answer: translations, or alignments by rank."""

        def fulfill(route):
            asked = json.loads(route.request.post_data or "{}")
            row = asked.get("instances", [{}])[0]
            body = {"predictions": [found]}
            if asked.get("signature_name") == "align" and aligned:
                body = {"predictions": [aligned[row["rank"]]]}
            if asked.get("signature_name") == "align_pair" and aligned:
                body = {"predictions": aligned}
            if status != 200 or more:
                body = more
            cors = ("Origin", "Headers", "Methods")
            route.fulfill(
                status=status,
                body=json.dumps(body) if text is None else text,
                headers={
                    **{f"Access-Control-Allow-{name}": "*" for name in cors},
                    "Access-Control-Expose-Headers": "*",
                    # Where it is CORS, a star is no leave for this one.
                    "Access-Control-Allow-Headers": "authorization",
                    **({"Retry-After": "2"} if status == 429 else {}),
                },
            )

        self.tab.unroute_all(behavior="ignoreErrors")
        self.tab.route(STUB + "/**", fulfill)

    def send(self, text="a cat"):
        self.tab.fill("#text", text)
        self.tab.press("#text", "Enter")

    def look(self):
        """Opens the alignment."""
        self.tab.click("#alignment > summary")

    def sent(self, signature="translate_with_options"):
        """The rows asked for."""
        bodies = [
            json.loads(request.post_data)
            for request in self.requests
            if request.method == "POST"
        ]
        return [
            body["instances"][0]
            for body in bodies
            if body["signature_name"] == signature
        ]

    def shows(self, selector, text):
        sync_api.expect(self.tab.locator(selector)).to_have_text(text)

    def shown_weight(self):
        """The weight that the colour of the cell that is read stands for."""
        pixel, ground, accent = (
            np.array(channels[:3], float)
            for channels in (
                self.tab.eval_on_selector("#cell", PIXEL),
                self.tab.evaluate(CHANNELS, "--cell"),
                self.tab.evaluate(CHANNELS, "--accent"),
            )
        )
        way = accent - ground
        return float((pixel - ground) @ way / (way @ way))


def translated(*texts, scores=None, **others):
    """A row of `translate_with_options` by the serving contract."""
    return {
        "translations": list(texts),
        "scores": scores or [-0.25 * (n + 1) for n in range(len(texts))],
        "truncated": False,
        "status": "OK",
        **others,
    }


def aligned(target, source, weights=None, padding=0, **others):
    """A row of `align`; its weights fall along each row, or are given."""
    width = len(source) + padding
    row = [0.5 ** (s + 1) for s in range(len(source))] + [0.0] * padding
    return {
        "translation": " ".join(target),
        "score": -0.25,
        "tokens": [*target, *[""] * padding],
        "lengths": len(target),
        "alignments": weights
        or [row] * len(target) + [[0.0] * width] * padding,
        "source_tokens": [*source, *[""] * padding],
        "source_lengths": len(source),
        "truncated": False,
        "status": "OK",
        **others,
    }
