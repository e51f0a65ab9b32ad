from pathlib import Path

import pytest

from reproduction.page import write_pages
from tests.browser_pages import IN_BROWSER, check_at_all_sizes
from tests.reproduction.made_up_records import (
    TABLE_1,
    builtin_plan,
    record,
    write_rows,
)

pytestmark = IN_BROWSER

COMMITTED = Path(__file__).parents[2] / "docs" / "reproduction"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Write a page of table 1 with a missing row."""
    folder = tmp_path_factory.mktemp("pages")
    for place, name in enumerate(TABLE_1):
        aer = 0.4 if place > 2 else None
        write_rows(folder / "rows", record(name, 1, 0.3 + 0.1 * place, 2, aer))
    write_pages(builtin_plan(), folder / "rows", folder)
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1400])
def test_page_is_accessible_and_not_cut_off(opened, width, scheme):
    check_at_all_sizes(opened, "index.html", width, scheme)


def test_hovering_a_cell_shows_its_weight(opened):
    tab = opened("index.html")
    tab.locator("#samples summary").first.click()
    tab.locator(".alignment tbody td").first.hover()
    chosen = tab.locator(".chosen").first.inner_text()
    assert chosen == "“a” attends to “a” with weight 90 %"


class TestCommittedPages:
    """The committed pages of real training runs."""

    @pytest.fixture(scope="class")
    def pages(self):
        return COMMITTED

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize(
        "page", sorted(path.parent.name for path in COMMITTED.glob("*/*.html"))
    )
    def test_page_is_accessible_and_not_cut_off(self, opened, page, scheme):
        for width in (320, 1400):
            check_at_all_sizes(opened, f"{page}/index.html", width, scheme)
