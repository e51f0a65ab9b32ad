"""The page of `export/demo` in a real browser."""

import functools
import re
import socket
from http.server import SimpleHTTPRequestHandler
from urllib.parse import urlsplit

import numpy as np
import pytest

from luong_keras.inference.search_options import SEARCH_OPTIONS
from tests.browser_pages import IN_BROWSER
from tests.serving.demo_tab import (
    PAGE,
    PAIR,
    STUB,
    Demo,
    aligned,
    sync_api,
    translated,
)
from tests.serving.stub_server import StubServer, running

pytestmark = IN_BROWSER
CORS_FLAG = "--rest_api_enable_cors_support=true"
PHONE = {"viewport": {"width": 360, "height": 640}, "is_mobile": True}
# Computed [colour, background] of an element.
COLOURS = """(element, pseudo) => {
    let behind = element, colour = "";
    const transparent = "rgba(0, 0, 0, 0)";
    do colour = getComputedStyle(behind).backgroundColor;
    while (colour === transparent && (behind = behind.parentElement));
    return [getComputedStyle(element, pseudo).color, colour];
}"""


@pytest.fixture(scope="module")
def page_url():
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    files = functools.partial(Quiet, directory=PAGE)
    with running(StubServer(files)) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture
def page(browser, page_url, request):
    """The page, not yet opened, which may ask only its server."""
    context = browser.new_context(**getattr(request, "param", {}))
    found = Demo(context.new_page(), page_url)
    yield found
    for request in found.requests:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(request.url))
        assert origin in found.servers or request.url.startswith("data:")
    assert found.errors == []
    found.tab.unroute_all(behavior="ignoreErrors")
    context.close()


@pytest.fixture
def demo(page):
    page.open()
    return page


def test_enter_sends_a_request_of_the_contract(demo):
    answer = translated("die Katze", "eine Katze")
    demo.ask("the cat sees a dog .", answer)
    demo.shows("#ranks bdi", ["die Katze", "eine Katze"])
    demo.shows("#ranks data", ["−0.250", "−0.500"])
    demo.shows("#translation", "die Katze")
    unset = {
        "beam_size": 0,
        "n_best": 0,
        "length_penalty": -1,
        "prefix": "",
        "replace_unknown": -1,
    }
    assert demo.sent_rows() == [{"text": "the cat sees a dog .", **unset}]
    assert demo.sent_rows("align") == []
    assert demo.console == []


def test_options_are_sent(demo):
    demo.tab.click("text=Search")
    demo.fill(beam_size="2", n_best="1", prefix="das Hund")
    alignment = aligned(["das", "Hund"], ["a"])
    demo.ask("a cat", translated("das Hund"), [alignment])
    demo.shows("#translation", "das Hund")
    (row,) = demo.sent_rows()
    assert (row["beam_size"], row["n_best"]) == (2, 1)
    assert row["prefix"] == "das Hund"
    demo.see_alignment()
    (requested,) = demo.sent_rows("align")
    assert requested.pop("rank") == 0
    del row["n_best"]  # which `align` does not take
    assert requested == row


def test_search_options_use_search_and_align_pair(demo):
    demo.tab.click("text=Search")
    demo.fill(required=" Hund ;; ein  Hund;", forbidden="Katze")
    demo.fill(temperature="0.7")
    found = aligned(["ein", "Hund", "</s>"], ["a", "dog"])
    demo.ask("a dog", translated("kein Hund", "ein Hund"), [found])
    demo.shows("#ranks bdi", ["kein Hund", "ein Hund"])
    assert demo.sent_rows() == []
    row = {name: option.unset for name, option in SEARCH_OPTIONS.items()}
    row |= {"text": "a dog", "required": "Hund\tein  Hund"}
    row |= {"forbidden": "Katze", "temperature": 0.7}
    assert demo.sent_rows("search") == [row]
    demo.tab.locator("#ranks input").last.check()
    demo.see_alignment()
    demo.see_pair("ein", "a")
    (requested,) = demo.sent_rows("align_pair")
    assert requested == {"source": "a dog", "target": "ein Hund"}
    assert demo.sent_rows("align") == []
    # `</s>` is not shown.
    assert demo.tab.get_attribute("#extent", "aria-rowcount") == "2"
    demo.fill(temperature="", seed="0")
    demo.send("a dog")
    demo.shows("#ranks bdi", ["kein Hund", "ein Hund"])
    last = demo.sent_rows("search")[-1]
    assert (last["temperature"], last["seed"]) == (-1, 0)


def test_alignments_are_requested_once_when_opened(demo):
    alignments = [aligned(["ja"], ["yes"]), aligned(["ach"], ["oh"])]
    demo.ask("yes", translated("ja", "ach"), alignments)
    demo.shows("#translation", "ja")
    demo.tab.locator("#ranks input").first.press("ArrowDown")
    demo.shows("#translation", "ach")
    assert demo.sent_rows("align") == []
    demo.see_alignment()
    demo.see_pair("ach", "oh")
    demo.tab.locator("#ranks input").last.press("ArrowUp")
    demo.shows("#pair", re.compile("^Each row"))
    demo.see_pair("ja", "yes")
    demo.tab.locator("#ranks input").first.press("ArrowDown")
    demo.see_pair("ach", "oh")
    assert [row["rank"] for row in demo.sent_rows("align")] == [1, 0]
    # The alignment of the next sentence is requested without another click.
    demo.send("no")
    demo.shows("#pair", re.compile("^Each row"))
    texts = [row["text"] for row in demo.sent_rows("align")]
    assert texts == ["yes", "yes", "no"]


def test_failed_alignment_keeps_the_translation(demo):
    demo.ask("a cat", translated("ja"))
    demo.shows("#translation", "ja")
    demo.answer(status=429, error="too many")
    demo.open_alignment()
    expected = "The server refuses (429): too many Try again in 2 s."
    demo.shows("#pair", expected)
    demo.shows("#translation", "ja")
    sync_api.expect(demo.tab.locator("#matrix")).to_be_hidden()


def test_pointer_and_arrow_keys_select_a_pair(demo):
    found = aligned(["▁ei", "n"], ["an", "old", "tea"])
    demo.ask("a cat", translated("ein"), [found])
    demo.see_alignment()
    demo.tab.focus("#alignment > summary")
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
        demo.shows("#pair", PAIR(target, source, weight))
        demo.shows("#cell", weight)
        assert demo.shown_weight() == pytest.approx(float(weight), abs=0.02)
    assert demo.tab.get_attribute("#extent", "aria-rowcount") == "2"
    assert demo.tab.get_attribute("#extent", "aria-colcount") == "3"
    demo.tab.keyboard.press("End")
    assert demo.tab.get_attribute("#row", "aria-rowindex") == "1"
    assert demo.tab.get_attribute("#cell", "aria-colindex") == "3"
    # The pointer selects a cell, whichever the keyboard had selected.
    box = demo.tab.locator("#cell").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    demo.tab.mouse.move(x - box["width"], y + box["height"])
    demo.shows("#pair", PAIR("n", "old", "0.250"))
    demo.tab.mouse.move(x + box["width"], y)  # outside the matrix
    demo.shows("#pair", PAIR("n", "old", "0.250"))


def test_large_matrix_is_one_canvas(demo):
    rows, columns = [f"t{r}" for r in range(300)], [f"s{c}" for c in range(200)]
    weights = np.random.default_rng(3).random((300, 200)).round(2)
    found = aligned(rows, columns, weights.tolist())
    demo.ask("a cat", translated("long"), [found])
    demo.see_alignment()
    assert demo.tab.locator("#alignment *").count() < 20
    demo.tab.focus("#cell")
    steps = ["ArrowDown", "ArrowRight"] * 3 + ["End"] + ["PageDown"] * 31
    row = column = 0
    for key in [*steps, *["ArrowLeft"] * 30, *["PageUp"] * 6]:
        demo.tab.keyboard.press(key)
        down = {"ArrowDown": 1, "PageDown": 10, "PageUp": -10}.get(key, 0)
        row = min(row + down, 299)
        across = {"ArrowRight": 1, "ArrowLeft": -1, "End": 200}.get(key, 0)
        column = min(column + across, 199)
        weight = weights[row, column]
        demo.shows("#pair", PAIR(rows[row], columns[column], f"{weight:.3f}"))
        # The cell is visible, not below the headings.
        assert demo.shown_weight() == pytest.approx(weight, abs=0.02)
    assert (row, column) == (239, 169)


def test_padding_and_empty_ranks_are_hidden(demo):
    found = translated("ja", "", scores=[-1.5, -1e30], truncated=True)
    demo.ask("a cat", found, [aligned(["ja"], ["oh", "yes"], padding=1)])
    demo.shows("#ranks li", ["ja−1.500"])
    sync_api.expect(demo.tab.locator("#truncated")).to_be_visible()
    demo.see_alignment()
    assert demo.tab.get_attribute("#extent", "aria-rowcount") == "1"
    assert demo.tab.get_attribute("#extent", "aria-colcount") == "2"
    demo.ask(" ", translated(""), [aligned([], [])])
    demo.shows("#translation", "(no words)")
    demo.shows("#pair", "There is nothing to align.")
    sync_api.expect(demo.tab.locator("#matrix")).to_be_hidden()
    sync_api.expect(demo.tab.locator("#truncated")).to_be_hidden()


def test_markup_is_shown_as_text(demo):
    markup = "<img src=x onerror=alert(1)><script>alert(1)</script>"
    demo.ask(markup, translated(markup), [aligned([markup], [markup])])
    for selector in ("#translation", "#ranks bdi"):
        demo.shows(selector, markup)
    demo.see_alignment()
    demo.tab.focus("#cell")
    demo.shows("#pair", re.compile(re.escape(markup)))
    demo.ask("a cat", status=400, error=markup)
    demo.shows("#status", f"The server refuses (400): {markup}")
    assert demo.tab.locator("main img, main script").count() == 0


def row(status):
    return {"found": translated("", scores=[-1e30], status=status)}


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (404, {"error": "Servable not found"}, "no model “tiny”.*Servable not"),
        (400, {"error": "beam_size is -1"}, r"\(400\): beam_size is -1"),
        (503, {"text": "<p>Overloaded"}, r"\(503\): <p>Overloaded"),
        (429, {"error": "busy"}, r"\(429\): busy Try again in 2 s"),
        (200, {"text": "a home page"}, "no answer of a tr.*: a home page"),
        (200, {"predictions": [0.5]}, 'no answer of a tr.*"predictions"'),
        # Contract 1 had no status.
        (200, {"found": {"translations": [""], "scores": [0]}}, "contract 3"),
        (200, row("TEXT_TOO_LONG"), r"longer than the server takes\. Split it"),
        (200, row("TOO_MANY_ROWS"), "fewer sentences at once"),
        (200, row("NEW"), "Status NEW"),
        (200, row("OK"), "There is no translation"),
    ],
)
def test_bad_responses_are_explained(demo, status, body, message):
    demo.ask("a cat", translated("ja"))
    demo.shows("#translation", "ja")
    demo.ask("a cat", status=status, **body)
    demo.shows("#status", re.compile(message))
    sync_api.expect(demo.tab.locator("#answer")).to_be_hidden()
    demo.shows("#translation", "")


def test_token_is_requested_and_sent_only_to_its_server(demo):
    demo.ask("a cat", status=401, error="no token")
    demo.shows("#status", re.compile("asks for a token.*no token"))
    sync_api.expect(demo.tab.locator("#token")).to_be_focused()
    demo.tab.fill("#token", "secret")
    demo.ask("a cat", translated("ja"))
    demo.shows("#translation", "ja")
    posts = [each for each in demo.requests if each.method == "POST"]
    assert "authorization" not in posts[0].headers
    assert posts[-1].headers["authorization"] == "Bearer secret"
    # The token is kept for the tab, but not for another server.
    demo.open()
    assert demo.tab.input_value("#token") == "secret"
    demo.open("http://127.0.0.1:7")
    assert demo.tab.input_value("#token") == ""
    demo.open()
    demo.tab.click("text=Server")
    demo.tab.fill("#server", "http://127.0.0.1:7")
    demo.tab.press("#server", "Tab")
    assert demo.tab.input_value("#token") == ""
    everywhere = "() => JSON.stringify(localStorage) + location.href"
    assert "secret" not in demo.tab.evaluate(everywhere)


def test_default_server_is_the_origin_of_the_page(page):
    page.tab.goto(page.url)
    assert page.tab.input_value("#server") == page.url
    page.shows("#address", page.url)
    sync_api.expect(page.tab.locator("#foreign")).to_be_hidden()
    page.open()
    page.shows("#address", STUB)
    sync_api.expect(page.tab.locator("#foreign")).to_be_visible()
    page.tab.goto(page.url)  # the server of the query is not saved
    assert page.tab.input_value("#server") == page.url


def test_unreachable_servers_are_explained(page, page_url):
    with socket.socket() as unused:  # bound, so that no other takes the port
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        page.open(address)
        page.send()
        expected = f"^No answer from {address}.*{CORS_FLAG}"
        page.shows("#status", re.compile(expected))
    # Another origin without CORS headers: a server without the flag.
    silent = page_url.replace("127.0.0.1", "localhost")
    page.open(silent)
    page.send()
    expected = f"^{silent} answers, but does not let.*{CORS_FLAG}"
    page.shows("#status", re.compile(expected))


def test_waiting_ends_when_cancelled_or_timed_out(page):
    page.tab.clock.install(time=0)
    page.open()
    page.tab.clock.pause_at(3_600_000)
    page.tab.route(STUB + "/**", lambda route: None)  # never answers
    page.send()
    page.shows("#status", "Translating…")
    page.tab.click("text=Cancel")
    page.shows("#status", "Cancelled.")
    sync_api.expect(page.tab.locator("#text")).to_be_focused()
    page.send()
    page.tab.clock.fast_forward(29_999)
    page.shows("#status", "Translating…")
    page.tab.clock.fast_forward(1)
    page.shows("#status", re.compile("^No answer within 30 seconds"))
    sync_api.expect(page.tab.locator("#cancel")).to_be_hidden()


def test_new_request_cancels_the_previous_one(demo):
    demo.tab.route(STUB + "/**", lambda route: None)  # never answers
    demo.send("first")
    with demo.tab.expect_event("requestfailed", timeout=15_000) as ended:
        demo.send("second")
    assert "first" in ended.value.post_data
    demo.shows("#status", "Translating…")


def test_query_overrides_saved_settings(demo):
    demo.tab.click("text=Server")
    demo.tab.fill("#model", "other")
    demo.tab.press("#model", "Tab")
    demo.tab.goto(demo.url)
    assert demo.tab.input_value("#model") == "other"
    demo.open(model="tiny")
    assert demo.tab.input_value("#model") == "tiny"
    # An invalid field is shown, although its section was closed.
    demo.tab.eval_on_selector("#server", "field => field.value = 'localhost'")
    demo.send()
    sync_api.expect(demo.tab.locator("#server")).to_be_focused()
    assert demo.sent_rows() == []


def test_page_works_without_storage(page):
    for name in ("localStorage", "sessionStorage"):
        page.tab.add_init_script(
            f"Object.defineProperty(window, '{name}', "
            "{ get() { throw new DOMException('no', 'SecurityError'); } });"
        )
    page.open()
    page.tab.click("text=Server")
    page.fill(limit="5", token="secret")
    page.ask("a cat", translated("ja"))
    page.shows("#translation", "ja")
    assert page.console == []


@pytest.mark.parametrize("page", [PHONE], indirect=True)
def test_phone_scrolls_only_the_matrix(demo):
    words = ["w" * 300, "שלום", *["word"] * 40]
    text = " ".join(words)
    demo.ask(text, translated(text), [aligned(words, words)])
    demo.tab.click("text=Search")
    demo.tab.click("text=Server")
    demo.see_alignment()
    width = "element => element.scrollWidth"
    assert demo.tab.eval_on_selector("html", width) == 360
    assert demo.tab.eval_on_selector("#matrix", width) > 42 * 24
    demo.see_pair(words[0], words[0])
    demo.ask("a cat", status=400, error="e" * 300)
    demo.shows("#status", re.compile("eee"))
    assert demo.tab.eval_on_selector("html", width) == 360


def contrast(colours):
    """Return the contrast ratio of two colours (WCAG 2)."""
    light = []
    for colour in colours:
        channels = np.array(re.findall(r"[\d.]+", colour)[:3], float) / 255
        curve = ((channels + 0.055) / 1.055) ** 2.4
        linear = np.where(channels > 0.04045, curve, channels / 12.92)
        light.append(linear @ [0.2126, 0.7152, 0.0722] + 0.05)
    return max(light) / min(light)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_enough_contrast(demo, scheme):
    demo.tab.emulate_media(color_scheme=scheme)
    demo.open()
    paper = demo.tab.eval_on_selector("body", COLOURS)[1]
    assert (contrast([paper, "0, 0, 0"]) > 10) == (scheme == "light")
    demo.ask("a cat", translated("ja"), [aligned(["ja"], ["yes"])])
    demo.see_alignment()
    parts = "h1 label button summary input data #pair #translation #address"
    for part in (*parts.split(), "#foreign"):
        colours = demo.tab.eval_on_selector(part, COLOURS)
        assert contrast(colours) >= 4.5, part
    placeholder = demo.tab.eval_on_selector("#text", COLOURS, "::placeholder")
    assert contrast(placeholder) >= 4.5
    demo.ask("a cat", status=400, error="no")
    demo.shows("#status", re.compile("no$"))
    assert contrast(demo.tab.eval_on_selector("#status", COLOURS)) >= 4.5
