"""The pinned versions beside the newest ones, with their ages: `make versions`.

    python tests/faults/versions.py [requirements/base.txt]

What `make` installs is asked for twice, as it is pinned and without a pin, through uv, which writes into its lock
when each file was uploaded. The table goes to reports/campaigns/versions.md; it names no address. An old pin
is no fault and a new one no proof; it tells what to look at where no database of weaknesses can be reached.
"""

import datetime
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "reports" / "campaigns" / "versions.md"
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def locked(lines, python):
    """(version, day of the first file's upload) of each package that uv finds for these requirements."""
    asked = [
        *os.environ.get("UV", "uv").split(),
        *["pip", "compile", "--quiet", "--no-deps", "--format", "pylock.toml"],
    ]
    with tempfile.TemporaryDirectory() as made:
        names = Path(made, "names.txt")
        names.write_text("\n".join(lines))
        done = subprocess.run(
            [*asked, "--python-version", python, names], capture_output=True, text=True, check=False
        )
    if done.returncode:
        sys.exit(f"uv could not look them up (make versions UV=... names another uv): {done.stderr.strip()}")
    return {found["name"]: (found["version"], uploaded(found)) for found in tomllib.loads(done.stdout)["packages"]}


def uploaded(package):
    files = [*package.get("wheels", ()), *filter(None, [package.get("sdist")])]
    return min((file["upload-time"].date() for file in files if "upload-time" in file), default=None)


def days(earlier, later):
    return f"{(later - earlier).days:,}" if earlier and later else "?"


def table(pins, today):
    """The lines of the table, those that are furthest behind first."""
    own = locked([f"{name}=={version}" for name, version in pins.items()], "3.11")
    newest = locked(pins, "3.11")
    anywhere = locked(pins, "3.14")
    rows = []
    for name, (version, day) in own.items():
        new, its_day = newest[name]
        other = anywhere[name][0]
        note = "" if other == new else f"{other} needs a newer Python than 3.11"
        rows.append((-(its_day - day).days if its_day and day else 0, name, version, day, new, its_day, note))
    for _, name, version, day, new, its_day, note in sorted(rows):
        behind = "newest" if version == new else days(day, its_day)
        yield f"| {name} | {version} | {day} | {days(day, today)} | {new} | {its_day} | {behind} | {note} |"


def main():
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "requirements" / "base.txt"
    pins = dict(PIN.findall(source.read_text()))
    today = datetime.datetime.now(datetime.UTC).date()
    rows = list(table(pins, today))
    current = sum(" | newest | " in row for row in rows)
    head = f"{current} of {len(rows)} packages of `{source.name}` are the newest for Python 3.11, on {today}."
    columns = (
        "| package | pinned | of | days old | newest | of | days behind | |\n|---|---|---|---|---|---|---|---|\n"
    )
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    TABLE.write_text(f"# Pinned versions beside the newest\n\n{head}\n\n{columns}" + "\n".join(rows) + "\n")
    print(head)


if __name__ == "__main__":
    main()
