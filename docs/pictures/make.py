"""Makes the pictures of the documentation from the real thing: `make pictures`, which needs Chromium."""

import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from steelyard_eval.cli.main import main as command

HERE = Path(__file__).parent
WIDTH = 1180


def main() -> None:
    """Write report.png, phone.png and query.png beside this file, of the report in reports/demo."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("make pictures needs chromium on the PATH")
    with sync_playwright() as driver:
        demo = Path("reports/demo")
        command(["demo", "--out", str(demo)], standalone_mode=False)  # as `make demo` does
        report = demo / "report.html"
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 1560}, color_scheme="light")
        page.goto(report.resolve().as_uri())
        page.locator(".open").first.wait_for(state="attached")
        page.screenshot(path=HERE / "report.png")
        phone = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
        phone.goto(report.resolve().as_uri() + "#differences")
        phone.wait_for_timeout(200)
        phone.screenshot(path=HERE / "phone.png")
        page.locator("nav").get_by_text("Queries", exact=True).click()
        page.get_by_label("search queries").fill("alarms too noisy")
        page.locator(".open").first.click()
        page.locator("#explorer").screenshot(path=HERE / "query.png")
        browser.close()
    for picture in HERE.glob("*.png"):
        Image.open(picture).convert("RGB").quantize(96).save(picture, optimize=True)


if __name__ == "__main__":
    main()
