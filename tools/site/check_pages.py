#!/usr/bin/env python3
"""Looks at a site in Chromium, as readers see it: python3 tools/site/check_pages.py FOLDER, after ./lab docs, where
FOLDER is build/docs/html. Says what is wrong with which page, and exits with 1; exits with 77 without Chromium.

Of every page, at a laptop's and a phone's width and in both themes: no error in the console, no text cut off, no
Markdown or comment shown as it was written, no table out of its frame, no picture missing, and contrasts of at least
those of WCAG AA. Every player loads and steps, every slider moves. Every drawing holds its texts, in the widest font
that readers may have. The search finds lessons first. Of the hundreds of pages that Doxygen makes of headers and files,
the layout on a phone and the contrast in one theme. check_page.js has the checks; check_links.py, which needs no
browser, checks links.

--pictures TO writes what is seen of some pages, at both widths and in both themes, into the folder TO.
"""

import argparse
import concurrent.futures
import pathlib
import shutil
import sys
import threading
import time

from finish import is_api

try:
    from selenium import webdriver
except ImportError:
    webdriver = None

SKIPPED = 77
CHROMIUM = shutil.which("chromium-headless-shell")  # Chromium without all that makes windows
SITE = pathlib.Path(__file__).resolve().parent
BROWSERS = 2
AT_A_TIME = 40  # generated pages
WIDE, NARROW = (1440, 900), (400, 800)
# What a student would look for, and that a lesson must be found for it.
QUERIES = ["bank conflict", "swizzle", "TMA", "halo", "wgmma"]
PICTURED = ["index", "chapters-03-tiled-1d", "chapters-09-register-2d", "chapters-32-implicit-gemm-hopper"]
BACKGROUND = {"light": "rgb(255, 255, 255)", "dark": "rgb(28, 29, 31)"}  # of doxygen-awesome's pages


def available():
    return bool(webdriver and CHROMIUM and shutil.which("chromedriver"))


def browser():
    """Chromium with the checks in each page that it opens."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "WARNING"})
    driver = webdriver.Chrome(options=options)
    resize(driver, WIDE)
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": (SITE / "check_page.js").read_text()})
    return driver


def resize(driver, size):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False})
    # What watches for new sizes is told after a frame.
    driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));")


def load(driver, path):
    """Opens a page, which has the checks in it."""
    driver.get(path.as_uri())
    driver.execute_async_script("checks.ready().then(arguments[0])")


LOOK = """
    checks.theme(false);
    const light = [...checks.player(), ...checks.sliders(), ...checks.literal(), ...checks.pictures(),
                   ...checks.contrast()];
    checks.theme(true);
    return [...light, ...checks.contrast().map((what) => `in the dark theme, ${what}`)];"""
LOOK_AT_LAYOUT = """
    checks.fresh();
    const found = [...checks.cutOff(), ...checks.frames(), ...checks.tables(arguments[0])];
    return arguments[0] ? found : found.map((what) => `${what}, on a phone`);"""
LOOK_SHOWN = """
    return arguments[0].flatMap(([name, source]) => {
        checks.show(source);
        return [...checks.cutOff(), ...checks.frames(), ...checks.tables(false),
                ...checks.contrast()].map((what) => `${name}: ${what}`);
    });"""


def wrong_with(driver, path):
    """Sentences on one page, which is loaded at the width that the browser has, and looked at again at the other."""
    load(driver, path)
    found = driver.execute_script(LOOK)
    width = driver.execute_script("return innerWidth")
    for size in (WIDE, NARROW) if width == WIDE[0] else (NARROW, WIDE):
        if size[0] != width:
            resize(driver, size)
        found += driver.execute_script(LOOK_AT_LAYOUT, size == WIDE)
    found += [f"console: {entry['message']}" for entry in driver.get_log("browser")]
    return [f"{path.name}: {what}" for what in found]


def wrong_with_generated(driver, paths):
    """Sentences on pages of Doxygen's own making, on a phone. They have the same scripts: one is loaded, and shows the
    others."""
    resize(driver, WIDE)
    found = wrong_with(driver, paths[0])
    return found + driver.execute_script(LOOK_SHOWN, [(path.name, path.read_text()) for path in paths[1:]])


def wrong_drawings(driver, folder):
    """Sentences on the drawings, in both themes."""
    resize(driver, WIDE)
    driver.get("about:blank")
    found = []
    for theme, back in BACKGROUND.items():
        drawings = [[path.name, path.read_text()] for path in sorted(folder.glob(f"*-{theme}.svg"))]
        found += driver.execute_script("return arguments[0].flatMap(([name, source]) => "
                                       "checks.drawing(name, source, arguments[1]))", drawings, back)
    return found


def wrong_searches(driver, folder):
    load(driver, folder / "index.html")
    wrong = []
    for query in QUERIES:
        found = driver.execute_async_script("checks.search(arguments[0]).then(arguments[1])", query)
        if not found or found[0][1] != "Lesson":
            wrong.append(f"the search for '{query}' finds no lesson first, but {found[:1]}")
    return wrong


def take_pictures(driver, folder, to):
    to.mkdir(parents=True, exist_ok=True)
    for page in PICTURED:
        path = folder / f"{page}.html"
        for width in (WIDE[0], NARROW[0]):
            resize(driver, (width, 2000))
            load(driver, path)
            driver.execute_script("for (const folded of document.querySelectorAll('details')) folded.open = false")
            for theme in BACKGROUND:
                driver.execute_script("checks.theme(arguments[0])", theme == "dark")
                driver.save_screenshot(str(to / f"{page}-{width}-{theme}.png"))
    resize(driver, WIDE)
    return []


def is_generated(path):
    """Whether a page is of a type or header, or shows a file: Doxygen makes hundreds of these alike."""
    name = path.stem
    return (is_api(name) or name.startswith(("file-", "dir_", "struct", "class", "namespace")) or
            name.endswith(("-members", "_source")))


def looks(folder, pictures=None):
    """All there is to look at, as functions of a browser that give sentences: what takes long first."""
    pages = sorted(folder.glob("*.html"), key=lambda path: -path.stat().st_size)
    if pictures:
        yield lambda driver: take_pictures(driver, folder, pictures)
    yield lambda driver: wrong_drawings(driver, folder)
    yield lambda driver: wrong_searches(driver, folder)
    generated = list(filter(is_generated, pages))
    for first in range(0, len(generated), AT_A_TIME):
        yield lambda driver, paths=generated[first:first + AT_A_TIME]: wrong_with_generated(driver, paths)
    for path in pages:
        if not is_generated(path):
            yield lambda driver, path=path: wrong_with(driver, path)


def wrong_with_site(folder, pictures=None):
    """Sentences on all of a site, by browsers beside each other."""
    all_looks, taken = looks(folder, pictures), threading.Lock()

    def some():
        driver, found = browser(), []
        try:
            while True:
                with taken:
                    look = next(all_looks, None)
                if look is None:
                    return found
                found += look(driver)
        finally:
            driver.quit()

    with concurrent.futures.ThreadPoolExecutor(BROWSERS) as pool:
        return sorted(sum((done.result() for done in [pool.submit(some) for _ in range(BROWSERS)]), []))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--pictures", metavar="TO", type=pathlib.Path)
    options = parser.parse_args()
    folder = options.folder.resolve()
    begin = time.monotonic()
    if not available():
        print("check_pages.py: skipped: it needs chromium-headless-shell, chromium-driver and python3-selenium",
              file=sys.stderr)
        sys.exit(SKIPPED)
    wrong = wrong_with_site(folder, options.pictures)
    for sentence in wrong:
        print(f"check_pages.py: {sentence}", file=sys.stderr)
    print(f"check_pages.py: looked at the site in {time.monotonic() - begin:.0f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
