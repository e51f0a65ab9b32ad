"""Script for docs/demo_page.png: the page as the proxy serves it.

LUONG_KERAS_TOKEN=… python -m docs.take_screenshot
"""

import argparse
import os
from io import BytesIO

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.browser_pages import CHROMIUM, FLAGS

SENTENCE = "Today the old teacher has shown the sister a key."
# Selects the largest weight of the last word before the full stop.
SELECT_CELL = """() => {
    const row = Math.max(matrix.rows.length - 2, 0);
    const weights = matrix.weights[row];
    matrix.read([row, weights.indexOf(Math.max(...weights))]); }"""


def take(tab, url, sentence):
    """Take a picture of a translation, its alignment and a selected cell."""
    tab.goto(url)
    tab.click("#server_details > summary")
    tab.fill("#token", os.environ.get("LUONG_KERAS_TOKEN", ""))
    tab.click("#server_details > summary")
    tab.fill("#text", sentence)
    tab.press("#text", "Enter")
    tab.wait_for_selector("#ranks li")
    tab.click("#alignment > summary")
    tab.wait_for_selector("#matrix")
    tab.evaluate(SELECT_CELL)
    return tab.screenshot(full_page=True)


def write(picture, path):
    """Write a picture with a palette, in less than half of the bytes."""
    colours = Image.open(BytesIO(picture)).convert("RGB")
    colours.quantize(
        method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    ).save(path, optimize=True)


def main() -> None:
    """Take the picture of the command line."""
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
        picture = take(tab, arguments.url, arguments.sentence)
        browser.close()
    write(picture, arguments.output)


if __name__ == "__main__":
    main()
