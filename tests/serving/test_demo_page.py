"""The page in `export/demo` in a real browser, against the loopback server."""

import functools
import json
import re
import shutil
import socket
import threading
import urllib.request
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np
import pytest

from tests.serving.server_process import LoopbackProcess

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="needs a browser: pip install playwright"
)
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="needs a browser: apt-get install chromium"
)
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
)
PAGE = Path(__file__).parents[2] / "export" / "demo"
CORS_FLAG = "--rest_api_enable_cors_support=true"
STUB = "http://127.0.0.1:9"  # Requests to it are answered by the browser.
PHONE = {"viewport": {"width": 360, "height": 640}, "is_mobile": True}
MATRIX = """() => [...document.querySelectorAll("#weights tr")].map(
    (row) => [...row.querySelectorAll("td")].map(
        (cell) => Number(getComputedStyle(cell, "::before").opacity)))"""
# [colour, background] of an element as the browser computes them.
COLOURS = """(element, pseudo) => {
    let behind = element, colour = "";
    const transparent = "rgba(0, 0, 0, 0)";
    do colour = getComputedStyle(behind).backgroundColor;
    while (colour === transparent && (behind = behind.parentElement));
    return [getComputedStyle(element, pseudo).color, colour];
}"""

IN_FRONT = """(element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return [[left + 2, top + 2], [right - 2, bottom - 2]].every(
        ([x, y]) => document.elementFromPoint(x, y) === element);
}"""


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

    def answer(self, status=200, **body):
        """Makes the stub answer with JSON; `text` is sent as it is."""
        self.tab.route(
            STUB + "/**",
            lambda route: route.fulfill(
                status=status,
                body=body.get("text", json.dumps(body)),
                headers={"Access-Control-Allow-Origin": "*"},
            ),
        )

    def send(self, text="a cat"):
        self.tab.fill("#text", text)
        self.tab.press("#text", "Enter")

    def sent(self):
        """The bodies of the predictions asked for."""
        return [
            json.loads(request.post_data)
            for request in self.requests
            if request.method == "POST"
        ]

    def shows(self, selector, text):
        sync_api.expect(self.tab.locator(selector)).to_have_text(text)

    def shows_rank(self, answer, rank):
        """Checks translation and matrix against one rank of an answer."""
        self.shows("#translation", answer["translations"][rank])
        words, length = answer["lengths"][rank], answer["source_lengths"]
        self.shows("#weights th", answer["tokens"][rank][:words])
        self.shows("#source th", answer["source_tokens"][:length])
        expected = np.array(answer["alignments"][rank])[:words, :length]
        np.testing.assert_allclose(
            self.tab.evaluate(MATRIX), expected, rtol=0, atol=1e-5
        )


@pytest.fixture(scope="module")
def page_url():
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    files = functools.partial(Quiet, directory=PAGE)
    with ThreadingHTTPServer(("127.0.0.1", 0), files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    # A machine may be busy; what comes at once is not waited for.
    sync_api.expect.set_options(timeout=30_000)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS
        )
        yield browser
        browser.close()


@pytest.fixture
def demo(browser, page_url, request):
    """The page, which must not speak to anyone but the server it is told."""
    context = browser.new_context(**getattr(request, "param", {}))
    found = Demo(context.new_page(), page_url)
    yield found
    for request in found.requests:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(request.url))
        assert origin in found.servers or request.url.startswith("data:")
    assert found.errors == []
    found.tab.unroute_all(behavior="ignoreErrors")
    context.close()


@pytest.fixture(scope="module")
def translator(exported_models):
    """The address of a server that lets pages read its answers."""
    running = LoopbackProcess(exported_models, "--cors")
    yield "{0.scheme}://{0.netloc}".format(urlsplit(running.rest_url))
    running.stop()


def prediction(server, body):
    """What the server answers, asked without a browser."""
    with urllib.request.urlopen(
        f"{server}/v1/models/tiny:predict", json.dumps(body).encode()
    ) as response:
        return json.load(response)["predictions"][0]


def made_up(target, source, **others):
    """An answer of one rank, whose weights fall along each row."""
    row = [0.5**s for s in range(1, len(source) + 1)]
    return {
        "translations": [" ".join(target)],
        "scores": [-0.25],
        "tokens": [target],
        "lengths": [len(target)],
        "alignments": [[row] * len(target)],
        "source_tokens": source,
        "source_lengths": len(source),
        "truncated": False,
        **others,
    }


def test_enter_sends_a_sentence_and_a_rank_can_be_chosen(demo, translator):
    demo.open(translator)
    demo.send("the cat sees a dog .")
    sync_api.expect(demo.tab.locator("#ranks li").first).to_be_visible()
    (body,) = demo.sent()
    assert body == {
        "signature_name": "translate",
        "instances": [{"text": "the cat sees a dog ."}],
    }
    answer = prediction(translator, body)
    demo.shows("#ranks bdi", answer["translations"])
    assert len(set(answer["translations"])) == 3
    scores = demo.tab.locator("#ranks data").all_inner_texts()
    numbers = [float(score.replace("−", "-")) for score in scores]
    assert numbers == pytest.approx(answer["scores"], abs=5e-4)
    demo.shows_rank(answer, 0)
    demo.tab.locator("#ranks input").first.press("ArrowDown")
    demo.shows_rank(answer, 1)
    assert demo.complaints == []


def test_options_ask_the_signature_that_takes_them(demo, translator):
    demo.open(translator)
    demo.tab.click("text=Search")
    demo.tab.fill("#beam_size", "2")
    demo.tab.fill("#n_best", "1")
    demo.tab.fill("#prefix", "das Hund")
    demo.send()
    sync_api.expect(demo.tab.locator("#ranks li")).to_have_count(1)
    demo.shows("#translation", re.compile("^das Hund"))
    (body,) = demo.sent()
    assert body["signature_name"] == "translate_with_options"
    assert body["instances"] == [
        {
            "text": "a cat",
            "beam_size": 2,
            "n_best": 1,
            "length_penalty": -1,
            "prefix": "das Hund",
            "replace_unknown": -1,
        }
    ]


def test_pointing_and_arrow_keys_name_a_pair(demo):
    demo.open()
    demo.answer(predictions=[made_up(["▁ei", "n"], ["an", "old", "tea"])])
    demo.send()
    pair = "“{}” attends to “{}” with weight {}".format
    demo.tab.locator("#weights tr").nth(1).locator("td").nth(2).hover()
    demo.shows("#pair", pair("n", "tea", "0.125"))
    demo.tab.focus("#ranks input")
    for key, target, source, weight in (
        ("Tab", "▁ei", "an", "0.500"),
        ("ArrowUp", "▁ei", "an", "0.500"),
        ("ArrowLeft", "▁ei", "an", "0.500"),
        ("ArrowRight", "▁ei", "old", "0.250"),
        ("ArrowDown", "n", "old", "0.250"),
        ("ArrowDown", "n", "old", "0.250"),
        ("End", "n", "tea", "0.125"),
        ("ArrowRight", "n", "tea", "0.125"),
        ("Home", "n", "an", "0.500"),
        ("Shift+Tab", "n", "an", "0.500"),
        ("Tab", "n", "an", "0.500"),
        ("ArrowUp", "▁ei", "an", "0.500"),
    ):
        demo.tab.keyboard.press(key)
        demo.shows("#pair", pair(target, source, weight))
        demo.shows(".pointed", [source, target, weight])


def test_padding_and_ranks_without_translation_are_left_out(demo):
    demo.open()
    demo.answer(
        predictions=[
            {
                "translations": ["ja", ""],
                "scores": [-1.5, -1e30],
                "tokens": [["ja", ""], ["", ""]],
                "lengths": [1, 0],
                "alignments": [[[0.75, 0.25, 0.0], [1.0, 0.0, 0.0]]] * 2,
                "source_tokens": ["oh", "yes", ""],
                "source_lengths": 2,
                "truncated": True,
            }
        ]
    )
    demo.send()
    demo.shows("#ranks li", ["ja−1.500"])
    assert demo.tab.evaluate(MATRIX) == [[0.75, 0.25]]
    sync_api.expect(demo.tab.locator("#truncated")).to_be_visible()
    demo.answer(predictions=[made_up([], [])])
    demo.send(" ")
    demo.shows("#translation", "(no words)")
    sync_api.expect(demo.tab.locator("#truncated")).to_be_hidden()


def test_markup_in_sentences_and_answers_stays_text(demo):
    markup = "<img src=x onerror=alert(1)><script>alert(1)</script>"
    demo.open()
    demo.answer(predictions=[made_up([markup], [markup])])
    demo.send(markup)
    for selector in ("#translation", "#ranks bdi", "th[scope=row]"):
        demo.shows(selector, markup)
    demo.tab.hover("#weights td")
    demo.shows("#pair", re.compile(re.escape(markup)))
    demo.answer(400, error=markup)
    demo.send()
    demo.shows("#status", f"The server refuses (400): {markup}")
    assert demo.tab.locator("main img, main script").count() == 0


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (404, {"error": "Servable not found"}, "no model “tiny”.*Servable not"),
        (400, {"error": "beam_size is -1"}, r"\(400\): beam_size is -1"),
        (503, {"text": "<p>Overloaded"}, r"\(503\): <p>Overloaded"),
        (200, {"text": "a home page"}, "no answer of a tr.*: a home page"),
        (200, {"predictions": [0.5]}, 'no answer of a tr.*"predictions"'),
    ],
)
def test_a_bad_answer_is_explained(demo, status, body, message):
    demo.open()
    demo.answer(predictions=[made_up(["ja"], ["yes"])])
    demo.send()
    demo.shows("#translation", "ja")
    demo.answer(status, **body)
    demo.send()
    demo.shows("#status", re.compile(message))
    sync_api.expect(demo.tab.locator("#answer")).to_be_hidden()
    demo.shows("#translation", "")


def test_a_server_that_cannot_be_read_is_explained(demo, page_url):
    with socket.socket() as nobody:  # bound, so that no other takes the port
        nobody.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        demo.open(address)
        demo.send()
        expected = f"^No answer from {address}.*{CORS_FLAG}"
        demo.shows("#status", re.compile(expected))
    # Another origin that says nothing about CORS: a server without the flag.
    silent = page_url.replace("127.0.0.1", "localhost")
    demo.open(silent)
    demo.send()
    expected = f"^{silent} answers, but does not let.*{CORS_FLAG}"
    demo.shows("#status", re.compile(expected))


def test_waiting_ends_by_cancelling_or_at_the_limit(demo):
    demo.tab.clock.install(time=0)
    demo.open()
    demo.tab.clock.pause_at(3_600_000)
    demo.tab.route(STUB + "/**", lambda route: None)  # never answers
    demo.send()
    demo.shows("#status", "Translating…")
    demo.tab.click("text=Cancel")
    demo.shows("#status", "Cancelled.")
    sync_api.expect(demo.tab.locator("#text")).to_be_focused()
    demo.send()
    demo.tab.clock.fast_forward(29_999)
    demo.shows("#status", "Translating…")
    demo.tab.clock.fast_forward(1)
    demo.shows("#status", re.compile("^No answer within 30 seconds"))
    sync_api.expect(demo.tab.locator("#cancel")).to_be_hidden()


def test_only_the_last_of_two_requests_counts(demo):
    demo.open()
    demo.tab.route(STUB + "/**", lambda route: None)  # never answers
    demo.send("first")
    with demo.tab.expect_event("requestfailed", timeout=15_000) as ended:
        demo.send("second")
    assert "first" in ended.value.post_data
    demo.shows("#status", "Translating…")


def test_settings_are_kept_and_the_address_bar_goes_first(demo):
    demo.open()
    demo.tab.click("text=Server")
    demo.tab.fill("#model", "other")
    demo.tab.press("#model", "Tab")
    demo.tab.goto(demo.url)
    for name, value in (("server", STUB), ("model", "other")):
        assert demo.tab.input_value("#" + name) == value
    demo.open(model="tiny")
    assert demo.tab.input_value("#model") == "tiny"
    # A field that the browser refuses is shown, though it was folded away.
    demo.tab.eval_on_selector("#server", "field => field.value = 'localhost'")
    demo.send()
    sync_api.expect(demo.tab.locator("#server")).to_be_focused()
    assert demo.sent() == []


def test_a_browser_without_storage_does_not_matter(demo):
    demo.tab.add_init_script(
        "Object.defineProperty(window, 'localStorage', "
        "{ get() { throw new DOMException('no', 'SecurityError'); } });"
    )
    demo.open()
    demo.tab.click("text=Server")
    demo.tab.fill("#limit", "5")
    demo.answer(predictions=[made_up(["ja"], ["yes"])])
    demo.send()
    demo.shows("#translation", "ja")
    assert demo.complaints == []


@pytest.mark.parametrize("demo", [PHONE], indirect=True)
def test_a_phone_scrolls_the_matrix_and_not_the_page(demo):
    demo.open()
    words = ["w" * 300, "שלום", *["word"] * 40]
    demo.answer(predictions=[made_up(words, words)])
    demo.send(" ".join(words))
    demo.tab.click("text=Search")
    demo.tab.click("text=Server")
    # Where the matrix scrolls, its headings do not hide the cell in focus.
    demo.tab.locator("#weights td").last.focus()
    for key in ["ArrowLeft", "ArrowUp"] * 20:
        demo.tab.keyboard.press(key)
        assert demo.tab.locator("td:focus").evaluate(IN_FRONT)
    width = "element => element.scrollWidth"
    assert demo.tab.eval_on_selector("html", width) == 360
    assert demo.tab.eval_on_selector(".matrix", width) > 42 * 24
    demo.answer(400, error="e" * 300)
    demo.send()
    demo.shows("#status", re.compile("eee"))
    assert demo.tab.eval_on_selector("html", width) == 360


def contrast(colours):
    """Contrast ratio of two colours, as WCAG 2 defines it."""
    light = []
    for colour in colours:
        channels = np.array(re.findall(r"[\d.]+", colour)[:3], float) / 255
        linear = np.where(
            channels > 0.04045,
            ((channels + 0.055) / 1.055) ** 2.4,
            channels / 12.92,
        )
        light.append(linear @ [0.2126, 0.7152, 0.0722] + 0.05)
    return max(light) / min(light)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_enough_contrast(demo, scheme):
    demo.tab.emulate_media(color_scheme=scheme)
    demo.open()
    paper = demo.tab.eval_on_selector("body", COLOURS)[1]
    assert (contrast([paper, "0, 0, 0"]) > 10) == (scheme == "light")
    demo.answer(predictions=[made_up(["ja"], ["yes"])])
    demo.send()
    demo.tab.hover("#weights td")
    parts = "h1 label button summary input data #pair #translation th.pointed"
    for part in parts.split():
        colours = demo.tab.eval_on_selector(part, COLOURS)
        assert contrast(colours) >= 4.5, part
    placeholder = demo.tab.eval_on_selector("#text", COLOURS, "::placeholder")
    assert contrast(placeholder) >= 4.5
    demo.answer(400, error="no")
    demo.send()
    demo.shows("#status", re.compile("no$"))
    assert contrast(demo.tab.eval_on_selector("#status", COLOURS)) >= 4.5
