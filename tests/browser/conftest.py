"""A real JupyterLab and a real Chromium, both on loopback and without a way out."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/extensionmanager-extension:plugin": {"enabled": False},
}


class Lab:
    """JupyterLab over a folder, and the pages opened in it."""

    def __init__(self, folder, address, context):
        self.folder = folder
        self.address = address
        self.context = context
        self.foreign = []
        self.requests = 0

    def write(self, name, code):
        """A notebook of one cell; its name."""
        source = f"import steelyard_eval as sy\n{code}"
        cell = {"cell_type": "code", "id": "one", "metadata": {}, "outputs": [], "execution_count": None}
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}}
        document = {"cells": [cell | {"source": source}], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
        (self.folder / name).write_text(json.dumps(document))
        return name

    def open(self, notebook):
        """A page with the notebook open and every cell run."""
        page = self.context.new_page()
        page.on("request", self._note)
        page.set_default_timeout(120_000)
        page.goto(f"{self.address}/lab/tree/{notebook}?reset")
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        return page

    def paint(self, page, theme):
        page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
        page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=theme)

    def _note(self, request):
        self.requests += 1
        local = ("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:")
        if not request.url.startswith(local):
            self.foreign.append(request.url)

    def sessions(self):
        with urllib.request.urlopen(f"{self.address}/api/sessions") as answer:  # noqa: S310 -- loopback
            return json.load(answer)

    def process_of(self, kernel):
        """The process of a kernel: the one whose connection file has its id."""
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if f"kernel-{kernel}.json".encode() in words:
                return int(folder.name)
        raise LookupError(kernel)


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium; while its driver runs, tests of other modules could not use asyncio in this process."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("needs chromium on the PATH")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory, browser):
    """JupyterLab with the notebooks of the checkout, seen by a headless Chromium."""
    pytest.importorskip("jupyterlab", reason="the extra notebooks is not installed")
    pytest.importorskip("anywidget", reason="the extra notebooks is not installed")
    home = tmp_path_factory.mktemp("lab")
    (home / "work" / "notebooks").mkdir(parents=True)
    for path in (ROOT / "notebooks").glob("*.ipynb"):  # without their pairs, whose dates jupytext would compare
        shutil.copy(path, home / "work" / "notebooks")
    (home / "overrides").mkdir()
    (home / "overrides" / "overrides.json").write_text(json.dumps(SETTINGS))
    server, address = _serve(home)
    try:
        context = browser.new_context(viewport={"width": 1500, "height": 1100})
        yield Lab(home / "work", address, context)
        context.close()
    finally:
        server.terminate()
        with suppress(subprocess.TimeoutExpired):  # on a busy machine it waits long for its kernels
            server.wait(20)
        server.kill()
        server.wait()


def _serve(home):
    """Start JupyterLab on a port of its own choice; the process, and where it listens."""
    # Jupyter's files lie in a folder of the test, the packages where they are.
    folders = {"JUPYTER_RUNTIME_DIR": "runtime", "JUPYTER_CONFIG_DIR": "config", "IPYTHONDIR": "ipython"}
    environ = os.environ | {name: str(home / folder) for name, folder in folders.items()}
    if "PYTHONPATH" in environ:
        paths = environ["PYTHONPATH"].split(os.pathsep)
        environ["PYTHONPATH"] = os.pathsep.join(str(Path(path).resolve()) for path in paths)
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0",
        "--IdentityProvider.token=", f"--ServerApp.root_dir={home / 'work'}",
        f"--LabApp.app_settings_dir={home / 'overrides'}", f"--LabApp.user_settings_dir={home / 'settings'}",
        f"--LabApp.workspaces_dir={home / 'workspaces'}", "--LabApp.news_url=",
        "--LabApp.expose_app_in_browser=True",
    ]  # fmt: skip
    with (home / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=home, env=environ, stdout=subprocess.DEVNULL, stderr=log)
    for _ in range(400):
        for found in (home / "runtime").glob("jpserver-*.json"):
            about = json.loads(found.read_text() or "{}")
            with suppress(KeyError, OSError), socket.create_connection(("127.0.0.1", about["port"])):
                return server, f"http://127.0.0.1:{about['port']}"  # the file may be there before it listens
        time.sleep(0.1)
    server.kill()
    raise RuntimeError((home / "log").read_text()[-2000:])
