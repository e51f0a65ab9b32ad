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
def demo(browser, page_url, request):
    """The page, which may send requests only to its server."""
    context = browser.new_context(**getattr(request, "param", {}))
    found = Demo(context.new_page(), page_url)
    yield found
    for request in found.requests:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(request.url))
        assert origin in found.servers or request.url.startswith("data:")
    assert found.errors == []
    found.tab.unroute_all(behavior="ignoreErrors")
    context.close()


PAIR = "“{}” attends to “{}” with weight {}".format


def test_enter_sends_a_request_of_the_contract(demo):
    demo.open()
    demo.answer(translated("die Katze", "eine Katze"))
    demo.send("the cat sees a dog .")
    demo.shows("#ranks bdi", ["die Katze", "eine Katze"])
    demo.shows("#ranks data", ["−0.250", "−0.500"])
    demo.shows("#translation", "die Katze")
    assert demo.sent_rows() == [
        {
            "text": "the cat sees a dog .",
            "beam_size": 0,
            "n_best": 0,
            "length_penalty": -1,
            "prefix": "",
            "replace_unknown": -1,
        }
    ]
    assert demo.sent_rows("align") == []
    assert demo.console == []


def test_options_are_sent(demo):
    demo.open()
    demo.answer(translated("das Hund"), [aligned(["das", "Hund"], ["a"])])
    demo.tab.click("text=Search")
    demo.tab.fill("#beam_size", "2")
    demo.tab.fill("#n_best", "1")
    demo.tab.fill("#prefix", "das Hund")
    demo.send()
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
    demo.open()
    found = aligned(["ein", "Hund", "</s>"], ["a", "dog"])
    demo.answer(translated("kein Hund", "ein Hund"), [found])
    demo.tab.click("text=Search")
    demo.tab.fill("#required", " Hund ;; ein  Hund;")
    demo.tab.fill("#forbidden", "Katze")
    demo.tab.fill("#temperature", "0.7")
    demo.send("a dog")
    demo.shows("#ranks bdi", ["kein Hund", "ein Hund"])
    assert demo.sent_rows() == []
    (row,) = demo.sent_rows("search")
    assert row.keys() == {"text", *SEARCH_OPTIONS}
    assert row["required"] == "Hund\tein  Hund"
    assert row["forbidden"] == "Katze"
    assert row["temperature"] == 0.7
    for name in "coverage_penalty", "no_repeat_ngram", "top_k", "top_p", "seed":
        assert row[name] == SEARCH_OPTIONS[name].unset
    demo.tab.locator("#ranks input").last.check()
    demo.see_alignment()
    demo.tab.focus("#cell")
    demo.shows("#pair", PAIR("ein", "a", "0.500"))
    (requested,) = demo.sent_rows("align_pair")
    assert requested == {"source": "a dog", "target": "ein Hund"}
    assert demo.sent_rows("align") == []
    # `</s>` is not shown.
    assert demo.tab.get_attribute("#extent", "aria-rowcount") == "2"
    demo.tab.fill("#temperature", "")
    demo.tab.fill("#seed", "0")
    demo.send("a dog")
    demo.shows("#ranks bdi", ["kein Hund", "ein Hund"])
    last = demo.sent_rows("search")[-1]
    assert (last["temperature"], last["seed"]) == (-1, 0)


def test_alignments_are_requested_once_when_opened(demo):
    demo.open()
    alignments = [aligned(["ja"], ["yes"]), aligned(["ach"], ["oh"])]
    demo.answer(translated("ja", "ach"), alignments)
    demo.send("yes")
    demo.shows("#translation", "ja")
    demo.tab.locator("#ranks input").first.press("ArrowDown")
    demo.shows("#translation", "ach")
    assert demo.sent_rows("align") == []
    demo.see_alignment()
    demo.tab.focus("#cell")
    demo.shows("#pair", PAIR("ach", "oh", "0.500"))
    demo.tab.locator("#ranks input").last.press("ArrowUp")
    demo.shows("#pair", re.compile("^Each row"))
    demo.tab.focus("#cell")
    demo.shows("#pair", PAIR("ja", "yes", "0.500"))
    demo.tab.locator("#ranks input").first.press("ArrowDown")
    demo.tab.focus("#cell")
    demo.shows("#pair", PAIR("ach", "oh", "0.500"))
    assert [row["rank"] for row in demo.sent_rows("align")] == [1, 0]
    # The alignment of the next sentence is requested without another click.
    demo.send("no")
    demo.shows("#pair", re.compile("^Each row"))
    assert [row["text"] for row in demo.sent_rows("align")] == [
        "yes",
        "yes",
        "no",
    ]


def test_failed_alignment_keeps_the_translation(demo):
    demo.open()
    demo.answer(translated("ja"))
    demo.send()
    demo.shows("#translation", "ja")
    demo.answer(status=429, error="too many")
    demo.open_alignment()
    expected = r"The server refuses (429): too many Try again in 2 s."
    demo.shows("#pair", expected)
    demo.shows("#translation", "ja")
    sync_api.expect(demo.tab.locator("#matrix")).to_be_hidden()


def test_pointer_and_arrow_keys_select_a_pair(demo):
    demo.open()
    found = aligned(["▁ei", "n"], ["an", "old", "tea"])
    demo.answer(translated("ein"), [found])
    demo.send()
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
    demo.open()
    found = aligned(rows, columns, weights.tolist())
    demo.answer(translated("long"), [found])
    demo.send()
    demo.see_alignment()
    assert demo.tab.locator("#alignment *").count() < 20
    demo.tab.focus("#cell")
    steps = ["ArrowDown", "ArrowRight"] * 3 + ["End"] + ["PageDown"] * 31
    row = column = 0
    for key in [*steps, *["ArrowLeft"] * 30, *["PageUp"] * 6]:
        demo.tab.keyboard.press(key)
        down = {
            "ArrowDown": 1,
            "ArrowUp": -1,
            "PageDown": 10,
            "PageUp": -10,
        }.get(key, 0)
        row = min(row + down, 299)
        across = {"ArrowRight": 1, "ArrowLeft": -1, "End": 200}.get(key, 0)
        column = min(column + across, 199)
        weight = weights[row, column]
        demo.shows("#pair", PAIR(rows[row], columns[column], f"{weight:.3f}"))
        # The cell is visible, not below the headings.
        assert demo.shown_weight() == pytest.approx(weight, abs=0.02)
    assert (row, column) == (239, 169)


def test_padding_and_empty_ranks_are_hidden(demo):
    demo.open()
    demo.answer(
        translated("ja", "", scores=[-1.5, -1e30], truncated=True),
        [aligned(["ja"], ["oh", "yes"], padding=1)],
    )
    demo.send()
    demo.shows("#ranks li", ["ja−1.500"])
    sync_api.expect(demo.tab.locator("#truncated")).to_be_visible()
    demo.see_alignment()
    assert demo.tab.get_attribute("#extent", "aria-rowcount") == "1"
    assert demo.tab.get_attribute("#extent", "aria-colcount") == "2"
    demo.answer(translated(""), [aligned([], [])])
    demo.send(" ")
    demo.shows("#translation", "(no words)")
    demo.shows("#pair", "There is nothing to align.")
    sync_api.expect(demo.tab.locator("#matrix")).to_be_hidden()
    sync_api.expect(demo.tab.locator("#truncated")).to_be_hidden()


def test_status_other_than_ok_is_shown(demo):
    demo.open()
    for status, message in (
        ("TEXT_TOO_LONG", "longer than the server takes. Split it"),
        ("TOO_MANY_ROWS", "fewer sentences at once"),
        ("NEW", "Status NEW"),
        ("OK", "There is no translation"),
    ):
        demo.answer(translated("", scores=[-1e30], status=status))
        demo.send()
        demo.shows("#status", re.compile(re.escape(message)))
        sync_api.expect(demo.tab.locator("#answer")).to_be_hidden()


def test_markup_is_shown_as_text(demo):
    markup = "<img src=x onerror=alert(1)><script>alert(1)</script>"
    demo.open()
    demo.answer(translated(markup), [aligned([markup], [markup])])
    demo.send(markup)
    for selector in ("#translation", "#ranks bdi"):
        demo.shows(selector, markup)
    demo.see_alignment()
    demo.tab.focus("#cell")
    demo.shows("#pair", re.compile(re.escape(markup)))
    demo.answer(status=400, error=markup)
    demo.send()
    demo.shows("#status", f"The server refuses (400): {markup}")
    assert demo.tab.locator("main img, main script").count() == 0


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
        (
            200,
            {"predictions": [{"translations": [""], "scores": [0]}]},
            "contract 3",
        ),
    ],
)
def test_bad_responses_are_explained(demo, status, body, message):
    demo.open()
    demo.answer(translated("ja"))
    demo.send()
    demo.shows("#translation", "ja")
    demo.answer(status=status, **body)
    demo.send()
    demo.shows("#status", re.compile(message))
    sync_api.expect(demo.tab.locator("#answer")).to_be_hidden()
    demo.shows("#translation", "")


def test_token_is_requested_and_sent_only_to_its_server(demo):
    demo.open()
    demo.answer(status=401, error="no token")
    demo.send()
    demo.shows("#status", re.compile("asks for a token.*no token"))
    sync_api.expect(demo.tab.locator("#token")).to_be_focused()
    demo.tab.fill("#token", "secret")
    demo.answer(translated("ja"))
    demo.send()
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


def test_default_server_is_the_origin_of_the_page(demo):
    demo.tab.goto(demo.url)
    assert demo.tab.input_value("#server") == demo.url
    demo.shows("#address", demo.url)
    sync_api.expect(demo.tab.locator("#foreign")).to_be_hidden()
    demo.open()
    demo.shows("#address", STUB)
    sync_api.expect(demo.tab.locator("#foreign")).to_be_visible()
    demo.tab.goto(demo.url)  # the server of the query is not saved
    assert demo.tab.input_value("#server") == demo.url


def test_unreachable_servers_are_explained(demo, page_url):
    with socket.socket() as unused:  # bound, so that no other takes the port
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        demo.open(address)
        demo.send()
        expected = f"^No answer from {address}.*{CORS_FLAG}"
        demo.shows("#status", re.compile(expected))
    # Another origin without CORS headers: a server without the flag.
    silent = page_url.replace("127.0.0.1", "localhost")
    demo.open(silent)
    demo.send()
    expected = f"^{silent} answers, but does not let.*{CORS_FLAG}"
    demo.shows("#status", re.compile(expected))


def test_waiting_ends_when_cancelled_or_timed_out(demo):
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


def test_new_request_cancels_the_previous_one(demo):
    demo.open()
    demo.tab.route(STUB + "/**", lambda route: None)  # never answers
    demo.send("first")
    with demo.tab.expect_event("requestfailed", timeout=15_000) as ended:
        demo.send("second")
    assert "first" in ended.value.post_data
    demo.shows("#status", "Translating…")


def test_query_overrides_saved_settings(demo):
    demo.open()
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


def test_page_works_without_storage(demo):
    for name in ("localStorage", "sessionStorage"):
        demo.tab.add_init_script(
            f"Object.defineProperty(window, '{name}', "
            "{ get() { throw new DOMException('no', 'SecurityError'); } });"
        )
    demo.open()
    demo.tab.click("text=Server")
    demo.tab.fill("#limit", "5")
    demo.tab.fill("#token", "secret")
    demo.answer(translated("ja"))
    demo.send()
    demo.shows("#translation", "ja")
    assert demo.console == []


@pytest.mark.parametrize("demo", [PHONE], indirect=True)
def test_phone_scrolls_only_the_matrix(demo):
    demo.open()
    words = ["w" * 300, "שלום", *["word"] * 40]
    demo.answer(translated(" ".join(words)), [aligned(words, words)])
    demo.send(" ".join(words))
    demo.tab.click("text=Search")
    demo.tab.click("text=Server")
    demo.see_alignment()
    width = "element => element.scrollWidth"
    assert demo.tab.eval_on_selector("html", width) == 360
    assert demo.tab.eval_on_selector("#matrix", width) > 42 * 24
    demo.tab.focus("#cell")
    demo.shows("#pair", PAIR(words[0], words[0], "0.500"))
    demo.answer(status=400, error="e" * 300)
    demo.send()
    demo.shows("#status", re.compile("eee"))
    assert demo.tab.eval_on_selector("html", width) == 360


def contrast(colours):
    """Return the contrast ratio of two colours (WCAG 2)."""
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
    demo.answer(translated("ja"), [aligned(["ja"], ["yes"])])
    demo.send()
    demo.see_alignment()
    parts = "h1 label button summary input data #pair #translation #address"
    for part in (*parts.split(), "#foreign"):
        colours = demo.tab.eval_on_selector(part, COLOURS)
        assert contrast(colours) >= 4.5, part
    placeholder = demo.tab.eval_on_selector("#text", COLOURS, "::placeholder")
    assert contrast(placeholder) >= 4.5
    demo.answer(status=400, error="no")
    demo.send()
    demo.shows("#status", re.compile("no$"))
    assert contrast(demo.tab.eval_on_selector("#status", COLOURS)) >= 4.5
