"""Takes docs/demo_page.png, by hand, of the page as the proxy serves it.

LUONG_KERAS_TOKEN=… python -m tests.serving.take_screenshot
"""

import argparse
import os
from io import BytesIO

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.serving.demo_tab import CHROMIUM, FLAGS

SENTENCE = "Today the old teacher has shown the sister a key."
# The heaviest weight of the row of the last word before the full stop.
POINTED = """() => {
    const row = Math.max(matrix.rows.length - 2, 0);
    const weights = matrix.weights[row];
    matrix.read([row, weights.indexOf(Math.max(...weights))]); }"""


def taken(tab, url, sentence):
    """The picture of an answer, with its alignment and a cell of it."""
    tab.goto(url)
    tab.click("#server_details > summary")
    tab.fill("#token", os.environ.get("LUONG_KERAS_TOKEN", ""))
    tab.click("#server_details > summary")
    tab.fill("#text", sentence)
    tab.press("#text", "Enter")
    tab.wait_for_selector("#ranks li")
    tab.click("#alignment > summary")
    tab.wait_for_selector("#matrix")
    tab.evaluate(POINTED)
    return tab.screenshot(full_page=True)


def written(picture, path):
    """Writes it with a palette: less than half, and nothing that is seen."""
    colours = Image.open(BytesIO(picture)).convert("RGB")
    colours.quantize(
        method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    ).save(path, optimize=True)


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--url", default="https://localhost:8443")
    parser.add_argument("--sentence", default=SENTENCE)
    parser.add_argument("--width", type=int, default=800)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--output", default="docs/demo_page.png")
    arguments = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS
        )
        tab = browser.new_page(
            viewport={"width": arguments.width, "height": 640},
            color_scheme="dark" if arguments.dark else "light",
            reduced_motion="reduce",
            device_scale_factor=2,
            ignore_https_errors=True,
        )
        picture = taken(tab, arguments.url, arguments.sentence)
        browser.close()
    written(picture, arguments.output)


if __name__ == "__main__":
    main()
