import pytest

from luong_keras.report import page as page_module
from luong_keras.report.page import write_page
from tests.browser_pages import IN_BROWSER, check_at_all_sizes
from tests.report.made_up_run import BAD, GOOD, made_up_run

pytestmark = IN_BROWSER
NAME = "a-run-with-rather-a-long-name-that-has-no-space-in-it-at-all"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    made_up_run(folder / NAME, BAD)
    made_up_run(folder / "b", GOOD)

    def add_alignments(groups, runs):
        for translation in groups[0]["examples"][0]["translations"]:
            translation["alignment"] = {
                "source": ["قطة", "sees", "犬"],
                "target": ["Hund", "."],
                "percent": [[7, 93, 0], [1, 2, 97]],
            }

    runs = [folder / NAME, folder / "b"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_module, "add_alignments", add_alignments)
        write_page(runs[:1], folder / "one.html")
        write_page(runs, folder / "two.html", samples=20)
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1400])
@pytest.mark.parametrize("name", ["one.html", "two.html"])
def test_pages_pass_axe_and_no_text_is_cut(opened, name, width, scheme):
    check_at_all_sizes(opened, name, width, scheme)


def test_hovering_a_cell_shows_its_weight(opened):
    tab = opened("one.html")
    tab.locator(".example summary").first.click()
    tab.locator(".alignment tbody td").nth(1).hover()
    chosen = tab.locator(".chosen").first
    assert chosen.inner_text() == "“Hund” attends to “sees” with weight 93 %"
    assert chosen.get_attribute("aria-live") == "polite"


def test_arrow_keys_choose_a_cell(opened):
    tab = opened("one.html", 320)
    tab.locator(".example summary").first.press("Enter")
    tab.keyboard.press("Tab")
    chosen = tab.locator(".chosen").first
    weights = []
    for key in ("Down", "Right", "Right", "Right", "Down", "Left", "Up"):
        tab.keyboard.press(f"Arrow{key}")
        weights.append(chosen.inner_text().split()[-2])
    assert weights == ["7", "93", "0", "0", "97", "2", "93"]


def test_the_skip_link_is_the_first_tab_stop(opened):
    tab = opened("two.html")
    tab.keyboard.press("Tab")
    link = tab.locator(".skip")
    assert link.evaluate("each => each === document.activeElement")
    assert link.bounding_box()["x"] >= 0


def test_pages_work_without_javascript_and_in_print(opened):
    tab = opened("one.html", java_script_enabled=False)
    assert tab.locator(".chart").count() == 6
    tab.emulate_media(media="print")
    assert tab.locator(".alignment tbody td").first.is_visible()
