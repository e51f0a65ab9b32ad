"""Fixtures and checks for tests of pages in a real browser."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
)
IN_BROWSER = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="needs a browser: apt-get install chromium"
    ),
]


@pytest.fixture(scope="module")
def browser():
    """Start headless Chromium."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="needs a browser: pip install playwright"
    )
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS
        )
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, pages):
    """Open pages, which may request no other files and log no errors."""
    contexts = []

    def open_page(name, width=1400, **options):
        contexts.append(
            browser.new_context(
                viewport={"width": width, "height": 800}, **options
            )
        )
        tab = contexts[-1].new_page()
        tab.requests, tab.errors = [], []
        tab.on("request", lambda request: tab.requests.append(request.url))
        tab.on("pageerror", lambda error: tab.errors.append(str(error)))
        tab.on("console", lambda line: tab.errors.append(line.text))
        tab.goto((pages / name).as_uri())
        return tab

    yield open_page
    for context in contexts:
        for tab in context.pages:
            assert len(tab.requests) == 1 and tab.errors == []
        context.close()


def check_at_all_sizes(opened, name, width, scheme):
    """Check accessibility and width, with details closed and open."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="pip install axe-playwright-python",
    )
    # axe is an added script, which the policy of the page forbids.
    tab = opened(name, width, color_scheme=scheme, bypass_csp=True)
    for is_open in (False, True):
        tab.evaluate(
            "isOpen => document.querySelectorAll('details')"
            ".forEach(details => { details.open = isOpen; })",
            is_open,
        )
        found = axe.Axe().run(tab)
        assert found.violations_count == 0, found.generate_report()
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
