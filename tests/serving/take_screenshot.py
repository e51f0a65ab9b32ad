"""Takes docs/demo_page.png, by hand, of a model that is being served.

python -m tests.serving.take_screenshot --server http://localhost:8501

The server must let pages of other origins ask it.
"""

import argparse
from io import BytesIO
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.serving.demo_tab import CHROMIUM, FLAGS, PAGE

SENTENCE = "Today the old teacher has shown the sister a key."
# The heaviest weight of the row of the last word before the full stop.
POINTED = """() => {
    const row = Math.max(matrix.rows.length - 2, 0);
    const weights = matrix.weights[row];
    matrix.read([row, weights.indexOf(Math.max(...weights))]); }"""


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--server", default="http://localhost:8501")
    parser.add_argument("--model", default="translator")
    parser.add_argument("--sentence", default=SENTENCE)
    parser.add_argument("--width", type=int, default=800)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--output", default="docs/demo_page.png")
    arguments = parser.parse_args()
    query = urlencode({"server": arguments.server, "model": arguments.model})
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS
        )
        tab = browser.new_page(
            viewport={"width": arguments.width, "height": 640},
            color_scheme="dark" if arguments.dark else "light",
            reduced_motion="reduce",
            device_scale_factor=2,
        )
        tab.goto(f"{(PAGE / 'index.html').as_uri()}?{query}")
        tab.fill("#text", arguments.sentence)
        tab.press("#text", "Enter")
        tab.wait_for_selector("#ranks li")
        tab.click("#alignment > summary")
        tab.wait_for_selector("#matrix")
        tab.evaluate(POINTED)
        picture = tab.screenshot(full_page=True)
        browser.close()
    # A palette takes less than half the room, and nothing that can be seen.
    colours = Image.open(BytesIO(picture)).convert("RGB")
    colours.quantize(
        method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    ).save(arguments.output, optimize=True)


if __name__ == "__main__":
    main()
