"""The page in a browser as the proxy serves it, from one origin."""

import json

import pytest

from tests.browser_pages import IN_BROWSER
from tests.serving.demo_tab import Demo, aligned, sync_api, translated
from tests.serving.proxy_process import (
    NEEDS_PROXY,
    TOKEN,
    ProxyProcess,
    proxy_of,
)
from tests.serving.stub_server import StubHandler, StubServer, running

pytestmark = [*IN_BROWSER, *NEEDS_PROXY]


class Contract(StubHandler):
    """A stub that answers two signatures of the contract."""

    def do_POST(self):
        request = json.loads(self.read_body())
        rows = {
            "translate_with_options": translated("eine Katze"),
            "align": aligned(["eine", "Katze"], ["a", "cat"]),
        }
        row = rows[request["signature_name"]]
        self.respond(200, json.dumps({"predictions": [row]}).encode())


@pytest.fixture
def upstream():
    with running(StubServer(Contract)) as server:
        yield server.port


@pytest.fixture
def open_page(browser):
    context = browser.new_context(ignore_https_errors=True)

    def opened(proxy, query=""):
        demo = Demo(context.new_page(), proxy.url)
        demo.tab.set_default_timeout(30_000)
        demo.tab.goto(f"{proxy.url}/{query}")
        return demo

    yield opened
    context.close()


def translate_and_align(demo):
    """Send a sentence without and with a token; open its alignment."""
    demo.send("a cat")
    sync_api.expect(demo.tab.locator("#token")).to_be_focused()
    demo.tab.fill("#token", TOKEN)
    demo.send("a cat")
    sync_api.expect(demo.tab.locator("#ranks li").first).to_be_visible()
    demo.open_alignment()
    sync_api.expect(demo.tab.locator("#matrix")).to_be_visible()
    demo.tab.focus("#cell")
    assert " attends to " in demo.tab.inner_text("#pair")


def test_page_works_with_strict_headers(tmp_path, upstream, open_page):
    with ProxyProcess(tmp_path, upstream) as proxy:
        demo = open_page(proxy)
        translate_and_align(demo)
        demo.shows("#translation", "eine Katze")
        demo.shows("#address", proxy.url)
        assert demo.shown_weight() == pytest.approx(0.5, abs=0.02)
        assert demo.errors == []
        # Only the refusal without a token is in the console.
        assert [line for line in demo.console if "401" not in line] == []
        # Another server is forbidden by the headers.
        demo = open_page(proxy, "?server=https://elsewhere.example")
        demo.send("a secret")
        sync_api.expect(demo.tab.locator("#status")).to_contain_text(
            "may ask only its own server"
        )
        assert any("Content Security" in line for line in demo.console)
        away = [r for r in demo.requests if r.url.startswith("https://else")]
        assert not any(request.response() for request in away)


def test_page_works_with_the_server(tmp_path, server, open_page):
    name = server.rest_url.rpartition("/")[2]
    with proxy_of(server, tmp_path) as proxy:
        if '"align"' not in proxy.get(f"/v1/models/{name}/metadata").text:
            pytest.skip("the export is of an older contract")
        translate_and_align(open_page(proxy, f"?model={name}"))
