"""The workflow of a gate, which installs this very package: by its origin and hash, and never by a name alone.

Whoever owns a name in an index decides what is installed by it, and nobody here owns one. Origins are those that
pip records (direct_url.json, PEP 610): a commit of a repository, or a file with its hash. What came from a
folder or from an index has none that another machine could use, so `--install` is asked for.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata, resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from steelyard.base.errors import PATH_WIDTH, ConfigError, shown
from steelyard.base.inputs import open_regular
from steelyard_eval.recording.steps import word

DISTRIBUTION = "steelyard"
TEMPLATE = "relevance.yml.txt"
EXTRAS = {"minilm-int8": "[onnx]", "minilm": "[minilm]", "wordllama": "[wordllama]", "api": "[api]"}
_SAFE = r"[\w.~/:@%+-]+"
_COMMIT = re.compile(rf"git\+https://{_SAFE}@[0-9a-f]{{40}}", re.ASCII)
_FILE = re.compile(rf"https://{_SAFE}\.(?:whl|tar\.gz|zip)#sha256=[0-9a-f]{{64}}", re.ASCII)
_PATH = re.compile(r"[\w./-]+", re.ASCII)
RULE = (
    "write git+https://HOST/REPOSITORY@COMMIT with all 40 digits, https://HOST/FILE.whl#sha256=HASH, "
    "or a wheel or a folder in this repository"
)


@dataclass(frozen=True)
class InstallSource:
    """Where the package comes from: what pip is given without the extra, and the hash of a file here."""

    text: str
    sha256: str = ""

    def commands(self, extra: str) -> list[str]:
        """The lines of the workflow; `extra` is as in ``[onnx]``, or empty."""
        if _COMMIT.fullmatch(self.text) or _FILE.fullmatch(self.text):
            return [f'pip install "{DISTRIBUTION}{extra} @ {self.text}"']
        check = [f'echo "{self.sha256}  {self.text}" | sha256sum --check --strict'] if self.sha256 else []
        return [*check, f'pip install "./{self.text}{extra}"']


def named(text: str) -> InstallSource:
    """Read what `--install` names; ConfigError for what is no origin that another machine has."""
    if _COMMIT.fullmatch(text) or _FILE.fullmatch(text):
        if urlsplit(text.removeprefix("git+")).netloc.count("@"):
            raise ConfigError("--install: the address holds a user or a key; leave it out")
        return InstallSource(text)
    path = Path(text)
    inside = not path.is_absolute() and path.resolve().is_relative_to(Path.cwd().resolve())
    if not (_PATH.fullmatch(text) and inside and path.exists()):
        raise ConfigError(f"--install {shown(text, PATH_WIDTH)} names no fixed origin; {RULE}")
    if path.is_dir():
        return InstallSource(path.as_posix())
    if not text.endswith((".whl", ".tar.gz", ".zip")):
        raise ConfigError(f"--install {shown(text, PATH_WIDTH)} is no package; {RULE}")
    with open_regular(path) as stream:
        return InstallSource(path.as_posix(), sha256(stream.read()).hexdigest())


def recorded() -> InstallSource | None:
    """What is installed here, by its origin; None where no other machine could install the same from there."""
    try:
        origin: Any = json.loads(metadata.distribution(DISTRIBUTION).read_text("direct_url.json") or "null")
    except (metadata.PackageNotFoundError, ValueError):
        return None
    if not isinstance(origin, dict) or "subdirectory" in origin:
        return None
    url, commit, file = origin.get("url"), origin.get("vcs_info"), origin.get("archive_info")
    if isinstance(commit, dict) and commit.get("vcs") == "git":
        return _fixed(f"git+{url}@{commit.get('commit_id')}")
    if isinstance(file, dict):
        hashes = file.get("hashes")
        known = (
            hashes.get("sha256") if isinstance(hashes, dict) else str(file.get("hash", "")).removeprefix("sha256=")
        )
        return _fixed(f"{url}#sha256={known}")
    return None


def _fixed(text: str) -> InstallSource | None:
    known = _COMMIT.fullmatch(text) or _FILE.fullmatch(text)
    return InstallSource(text) if known and "@" not in urlsplit(text.removeprefix("git+")).netloc else None


def workflow_text(
    dataset: Path, baseline: Path, source: InstallSource, embedder: str = "auto", asked: str = ""
) -> str:
    """The workflow that gates every pull request; `source` is what it installs, `asked` an endpoint, or empty."""
    text = resources.files("steelyard_eval.cli").joinpath(TEMPLATE).read_text(encoding="utf-8")
    words = [*([asked] if asked else []), *(["--embedder", embedder] if embedder == "api" else [])]
    values = {
        "INSTALL": f"\n{' ' * 10}".join(source.commands(EXTRAS.get("api" if asked else embedder, ""))),
        "DATASET": shlex.join([word(dataset), *words]),
        "BASELINE": shlex.quote(word(baseline)),
    }
    return re.sub(r"@(\w+)@", lambda match: values[match[1]], text)
