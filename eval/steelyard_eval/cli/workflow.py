"""The workflow that `steelyard init` writes, for GitHub or GitLab.

It installs this very package: by its origin and hash, and never by a name alone. Whoever owns a name in an index
decides what is installed by it, and nobody here owns one. Origins are those that pip records (direct_url.json,
PEP 610): a commit of a repository, or a file with its hash. A clone has that of its origin. What came from another
folder or from an index has none that another machine could use, so `--install` is asked for.
"""

import json
import re
import shlex
from contextlib import suppress
from hashlib import sha256
from importlib import metadata, resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from steelyard import __version__
from steelyard.base.errors import PATH_WIDTH, ConfigError, quote, visible
from steelyard.base.files import open_regular
from steelyard_eval.common.process import cloned
from steelyard_eval.recording.next_steps import shell_word

GITLAB = ".gitlab-ci.yml"  # what GitLab runs; the names of files that it includes end so, too
EXTRAS = {"minilm-int8": "[onnx]", "minilm": "[minilm]", "wordllama": "[wordllama]", "api": "[api]"}
_SAFE = r"[\w.~/:@%+-]+"
_ORIGIN = re.compile(
    rf"git\+https://{_SAFE}@[0-9a-f]{{40}}|https://{_SAFE}\.(?:whl|tar\.gz|zip)#sha256=[0-9a-f]{{64}}", re.ASCII
)
_PATH = re.compile(r"[\w./-]+", re.ASCII)  # paths that mean nothing else to a shell
RULE = (
    "write git+https://HOST/REPOSITORY@COMMIT with all 40 digits, https://HOST/FILE.whl#sha256=HASH, "
    "or a wheel or a folder in this repository"
)


def named(text: str) -> str:
    """What `--install` names, an origin or a path here; ConfigError for what is none that another machine has."""
    if _ORIGIN.fullmatch(text):
        if _holds_user(text):
            raise ConfigError("--install: the address holds a user or a key; leave it out")
        return text
    path = Path(text)
    inside = not path.is_absolute() and path.resolve().is_relative_to(Path.cwd().resolve())
    if not (_PATH.fullmatch(text) and inside and path.exists()):
        raise ConfigError(f"--install {quote(text, PATH_WIDTH)} is not a fixed origin; {RULE}")
    if not path.is_dir():
        if not text.endswith((".whl", ".tar.gz", ".zip")):
            raise ConfigError(f"--install {quote(text, PATH_WIDTH)} is not a package; {RULE}")
        open_regular(path).close()  # what cannot be read is told before anything is written
    return path.as_posix()


def installing(source: str, extra: str) -> list[str]:
    """The lines that install a source in a workflow, a file by its hash; `extra` is as in ``[onnx]``, or empty."""
    if _ORIGIN.fullmatch(source):
        return [f'pip install "steelyard{extra} @ {source}"']
    lines = [f'pip install "./{source}{extra}"']
    if not Path(source).is_dir():
        with open_regular(source) as stream:
            digest = sha256(stream.read()).hexdigest()
        lines.insert(0, f'echo "{digest}  {source}" | sha256sum --check --strict')
    return lines


def _holds_user(origin: str) -> bool:
    return "@" in urlsplit(origin.removeprefix("git+")).netloc


def _origin() -> Any:  # noqa: ANN401 -- whatever JSON the file held
    """What pip recorded of where this Steelyard came from; None where it recorded nothing."""
    with suppress(metadata.PackageNotFoundError, ValueError):
        return json.loads(metadata.distribution("steelyard").read_text("direct_url.json") or "null")


def recorded() -> str:
    """What is installed here, by its origin; empty where no other machine could install the same from there."""
    text = ""
    match _origin():
        case {"subdirectory": _}:
            return ""
        case {"url": url, "vcs_info": {"vcs": "git", "commit_id": commit}}:
            text = f"git+{url}@{commit}"
        case {"url": url, "archive_info": {"hashes": {"sha256": digest}}}:
            text = f"{url}#sha256={digest}"
        case {"url": url, "archive_info": {"hash": digest}}:
            text = f"{url}#{digest}"
        case {"url": str(url), "dir_info": _}:
            text = cloned(Path(unquote(urlsplit(url).path)))
    return text if _ORIGIN.fullmatch(text) and not _holds_user(text) else ""


def remedy(place: Path) -> str:
    """What to run where no origin is recorded: it makes a wheel of what is installed here."""
    url = urlsplit((_origin() or {}).get("url", ""))
    source = unquote(url.path) if url.scheme == "file" else "FOLDER"
    wheel = f"vendor/steelyard-{__version__}-py3-none-any.whl"
    build = shlex.join(["pip", "wheel", "--no-deps", "--wheel-dir", "vendor", visible(source)])
    again = shlex.join(["steelyard", "init", shell_word(place), "--install", wheel])
    return f"to get a workflow, run: {build} && {again}; a workflow installs Steelyard from a file or an address"


def usual_workflow(top: Path, name: str = "") -> Path:
    """Where a workflow belongs: GitLab's place if the repository has GitLab's file, or a remote at such a host."""
    config = top / ".git" / "config"
    remote = re.search(rb"^\s*url\s*=.*gitlab", config.read_bytes(), re.M | re.I) if config.is_file() else None
    if remote or (top / GITLAB).exists():
        return Path(f"{name}{GITLAB}")
    return Path(".github/workflows", f"{name or 'relevance'}.yml")


def workflow_text(
    workflow: Path, dataset: Path, baseline: Path, source: str, embedder: str = "auto", requested: str = ""
) -> str:
    """The workflow that gates every pull request: it installs `source` and asks the endpoint `requested`."""
    template = "gitlab-ci.yml.txt" if workflow.name.endswith(GITLAB) else "relevance.yml.txt"
    text = resources.files("steelyard_eval.cli").joinpath(template).read_text(encoding="utf-8")
    words = [*([requested] if requested else []), *(["--embedder", embedder] if embedder == "api" else [])]
    values = {
        "INSTALL": " && ".join(installing(source, EXTRAS.get("api" if requested else embedder, ""))),
        "DATASET": shlex.join([shell_word(dataset), *words]),
        "BASELINE": shlex.quote(shell_word(baseline)),
    }
    return re.sub(r"@(\w+)@", lambda match: values[match[1]], text)
