"""Takes a picture of a page of HTML, for docs/gallery.md.

python docs/take_pictures.py build/site/index.html site.png --dark
"""

import argparse
import shutil
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("page", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--width", type=int, default=1000)
    parser.add_argument("--height", type=int, default=700)
    parser.add_argument("--from", dest="start", help="a CSS selector: the top")
    parser.add_argument("--dark", action="store_true")
    arguments = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_page(
            viewport={"width": arguments.width, "height": arguments.height},
            color_scheme="dark" if arguments.dark else "light",
            reduced_motion="reduce",
        )
        page.goto(arguments.page.resolve().as_uri())
        if arguments.start:
            page.evaluate(
                "s => document.querySelector(s)"
                ".scrollIntoView({behavior: 'instant'})",
                arguments.start,
            )
        picture = page.screenshot()
        browser.close()
    # With a palette it is less than half, and looks the same.
    Image.open(BytesIO(picture)).convert("RGB").quantize(
        dither=Image.Dither.NONE
    ).save(arguments.picture, optimize=True)


if __name__ == "__main__":
    main()
