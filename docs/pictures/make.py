"""Makes the pictures of the documentation from the real thing: `make pictures`, which needs Chromium."""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import steelyard_eval as sy
from steelyard_eval.cli.main import main as data_main
from steelyard_eval.datasets.starter import starter

HERE = Path(__file__).parent
WIDTH = 1180


def main() -> None:
    """Write report.png, phone.png, query.png and runs.png beside this file, of the report in reports/demo."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("make pictures needs chromium on the PATH")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        demo = Path("reports/demo")
        data_main(["demo", "--out", str(demo)], standalone_mode=False)  # as `make demo` does
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
        page.set_viewport_size({"width": 800, "height": 900})
        page.goto(runs(Path(folder) / "runs").as_uri())
        page.locator("#trend").screenshot(path=HERE / "runs.png")
        browser.close()
    for picture in HERE.glob("*.png"):
        Image.open(picture).convert("RGB").quantize(96).save(picture, optimize=True)


def runs(folder: Path) -> Path:
    """The report of starter's fourth comparison with the trend of all; labels were added between them."""
    shutil.copytree(starter(), folder / "set")
    about, qrels = folder / "set" / "dataset.json", folder / "set" / "qrels.txt"
    facts = json.loads(about.read_text("utf-8"))
    del facts["files"]  # hashes, which labels that are added would break
    about.write_text(json.dumps(facts), "utf-8")
    lines = qrels.read_text("utf-8").splitlines(keepends=True)
    for at, contenders in enumerate(("bm25, fts", "bm25, fts, vector", "bm25, moltnet", "bm25, moltnet"), 1):
        qrels.write_text("".join(lines[: (at + 2) * len(lines) // 6]), "utf-8")
        data = sy.load(folder / "set")
        found = data.compare(contenders, current="bm25", timed=False)
    return found.report(folder, data.runs())[0]


if __name__ == "__main__":
    main()
