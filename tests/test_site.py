"""Documentation site: build, accessibility, search and offline use."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from luong_keras.config.values import LEAVES
from tests.browser_pages import (  # noqa: F401
    IN_BROWSER,
    browser,
)

pytest.importorskip("sphinx")

ROOT = Path(__file__).parents[1]
PAGES = [
    "index.html",
    "which_attention.html",
    "reproduction.html",
    "generated/settings.html",
    "generated/api/luong_keras.layers.LocalAttention.html",
    "notebooks/attention_by_hand.html",
]

pytestmark = [*IN_BROWSER, pytest.mark.tensorflow]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site without running notebooks; return its folder."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning"]
    command += ["--keep-going", "-D", "nb_execution_mode=off"]
    done = subprocess.run(
        [*command, str(ROOT / "docs"), str(folder)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1300])
def test_pages_are_accessible_and_fit_the_width(site, browser, width, scheme):  # noqa: F811
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme
    )
    tab, requests = context.new_page(), []
    tab.on("request", lambda request: requests.append(request.url))
    for page in PAGES:
        tab.goto((site / page).as_uri())
        found = axe.Axe().run(tab)
        assert found.violations_count == 0, page + found.generate_report()
        wide = tab.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, page
    context.close()
    # Fonts, styles and search need no network.
    assert all(url.startswith("file:") for url in requests)


def test_search_finds_classes_and_pages(site, browser):  # noqa: F811
    tab = browser.new_page()
    tab.goto((site / "search.html").as_uri() + "?q=LocalAttention")
    tab.wait_for_selector("#search-results li")
    found = tab.inner_text("#search-results")
    assert "luong_keras.layers.LocalAttention" in found
    assert "Choosing an attention" in found
    tab.close()


def test_linked_source_files_have_pages(site):
    page = site / "generated/source/examples/quickstart.py.html"
    assert "LocalAttention" in page.read_text(encoding="utf-8")


def test_settings_page_lists_every_setting(site):
    page = (site / "generated/settings.html").read_text(encoding="utf-8")
    for name in LEAVES:
        assert f">{name.rpartition('.')[2]}<" in page
    # Also the values of a choice, and the comment beside a setting.
    assert "truncate_source_left" in page and "Wu et al. 2016" in page
