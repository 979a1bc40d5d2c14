"""Are wheels, versions and licences fit to be published?  `make release-check`.

Each check prints one line: ok, failed, or not done with the reason.  Only a failure ends with 1.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import platform
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from email import message_from_string
from pathlib import Path

from wheels import DIST, MOST_NBYTES, PLATFORMS, ROOT, Platform

BIN = Path(sys.executable).parent
# The system's libraries, by which alone a wheel may be loaded.  What else Linux allows is known to
# auditwheel.
OF_MACOS = tuple(f"/usr/lib/lib{one}.dylib" for one in ("System.B", "iconv.2", "charset.1"))
OLDEST_MACOS = {"arm64": (11, 0), "x86_64": (10, 12)}
BENCH = ("bench", "a.h5", "--access", "row=1x1x50", "--repeat", "1", "--budget", "5min")
PYTHON = "python"
# One use of each command; some start the Python that has chunkwise.
SMOKE = (
    ("sample", "cube", "a.h5", "--shape", "20x50x50"),
    ("inspect", "a.h5", "--json"),
    (*BENCH, "--json"),
    (*BENCH, "--save", "runs.jsonl"),
    ("compare", "runs.jsonl", "runs.jsonl"),
    ("advise", "a.h5", "t2m", "--access", "20x1x1", "--budget", "30s"),
    ("hstest", "a.h5", "--count", "2", "--budget", "30s"),
    ("fix", "a.h5", "-o", "fixed.h5", "--access", "20x1x1"),
    ("repack", "a.h5", "b.h5", "--chunk", "10x25x25"),
    ("verify", "b.h5"),
    ("index", "b.h5", "-o", "b.json"),
    ("run", "--", PYTHON, "-c", "print(1)"),
    ("trace", "-o", "trace.json", "--", PYTHON, "-c", "print(1)"),
    ("view", "a.h5", "-o", "view.html"),
    ("study", "cris", "--only", "slots", "--repeat", "1", "-o", "study"),
    ("report", "study", "-o", "report.md"),
    ("mpi-check",),
    ("mpi-model",),
)


# What ends with 3 where it is not supported.
NOT_EVERYWHERE = {"run", "trace", "mpi-check"}


class NotDoneError(Exception):
    """A check that cannot be made here."""


def _stated(name: str, pattern: str) -> str:
    found = re.search(pattern, (ROOT / name).read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{name}: states no version")
    return found[1]


def version() -> str:
    """The version that Cargo.toml states."""
    return _stated("Cargo.toml", r'^\[workspace\.package\]\nversion = "([^"]+)"')


def versions() -> Iterator[str]:
    """Compare what states the version."""
    now = version()
    places = {
        "CITATION.cff": r"^version: (\S+)",
        "packaging/conda/recipe.yaml": r'^  version: "([^"]+)"',
        "CHANGELOG.md": r"^## (\d\S*)",
    }
    for name, pattern in places.items():
        stated = _stated(name, pattern)
        if stated != now:
            yield f"{name} states {stated}, Cargo.toml {now}"
    tags = subprocess.run(
        ["git", "tag", "--points-at", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    if not tags:
        return
    if f"v{now}" not in tags:
        yield f"this commit has the tag {', '.join(tags)}, not v{now}"
    if re.search(r"^## Unreleased", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE):
        yield "CHANGELOG.md has changes under Unreleased: name them by the version"


def licences() -> Iterator[str]:
    """Compare what is linked with what is listed."""
    done = _run(sys.executable, ROOT / "scripts/build/licences.py", "--check")
    yield from done.stdout.splitlines()
    if done.returncode and not done.stdout:
        yield _last(done)


def wheel(path: Path, platform: Platform) -> Iterator[str]:
    """Look at a wheel's name, size and contents."""
    if path.stat().st_size > MOST_NBYTES:
        yield f"takes {path.stat().st_size:,} bytes, more than {MOST_NBYTES:,}"
    name, stated, *_ = path.name.split("-")
    if stated != version():
        yield f"has the version {stated}"
    info = f"{name}-{stated}.dist-info"
    with zipfile.ZipFile(path) as held:
        names = set(held.namelist())
        for row in csv.reader(io.StringIO(held.read(f"{info}/RECORD").decode())):
            if row[1]:
                digest = hashlib.sha256(held.read(row[0])).digest()
                if row[1] != "sha256=" + base64.urlsafe_b64encode(digest).decode().rstrip("="):
                    yield f"{row[0]}: is not as RECORD says"
            names.discard(row[0])
        yield from (f"{one}: RECORD lacks it" for one in sorted(names))
        tags = message_from_string(held.read(f"{info}/WHEEL").decode()).get_all("Tag") or []
        python, abi, systems = path.stem.split("-")[2:]
        if {f"{python}-{abi}-{one}" for one in systems.split(".")} != set(tags):
            yield f"WHEEL states {tags}"
        yield from _licences_in(held, info)
        for one in held.namelist():
            if one.endswith((".so", ".pyd", ".dylib")):
                yield from (f"{one}: {said}" for said in library(held.read(one), platform))
        libraries = {one for one in held.namelist() if "preload" in one and one.endswith(".so")}
        if platform.preload != bool(libraries):
            yield f"libraries for programs: {libraries or 'none'}"


def _licences_in(held: zipfile.ZipFile, info: str) -> Iterator[str]:
    for one in ("LICENSE-MIT", "LICENSE-APACHE", "LICENSE-THIRD-PARTY"):
        try:
            if held.read(f"{info}/licenses/{one}") != (ROOT / one).read_bytes():
                yield f"{one} is not that of the sources"
        except KeyError:
            yield f"lacks {one}"
    named = set()
    for one in held.namelist():
        if one.startswith(f"{info}/sboms/"):
            parts = json.loads(held.read(one)).get("components", [])
            named |= {part["name"] for part in parts if part.get("licenses")}
    ours = json.loads((ROOT / "packaging/c-code.cyclonedx.json").read_text())["components"]
    missing = {one["name"] for one in ours} - named
    if missing:
        yield f"no SBOM states the licences of {', '.join(sorted(missing))}"


def sdist() -> Iterator[str]:
    """Does the source archive have all that a build reads?"""
    made = [*DIST.glob("*.tar.gz")]
    if len(made) != 1:
        yield f"there are {len(made)} in dist/ (make sdist)"
        return
    with tarfile.open(made[0]) as held:
        names = {one.partition("/")[2] for one in held.getnames()}
    listed = _run("git", "ls-files", "crates", "python", "scripts", "packaging", "LICENSE-*")
    missing = sorted({*listed.stdout.splitlines(), "PKG-INFO"} - names)
    if missing:
        yield f"lacks {len(missing)} files, such as {missing[0]}"


def library(code: bytes, platform: Platform) -> Iterator[str]:
    """Is this machine code that of the platform, and what does it need?"""
    arm = platform.triple.startswith("aarch64")
    if "linux" in platform.triple:
        machine = struct.unpack_from("<H", code, 18)[0]
        if code[:4] != b"\x7fELF" or machine != (183 if arm else 62):
            yield "is not for this platform"
        # musl has one library, by this name; of glibc there are `libc.so.6` and others.
        if "musl" in platform.triple and (b"\0libc.so\0" not in code or b"\0libc.so.6\0" in code):
            yield "needs another C library than musl"
        return
    if "windows" in platform.triple:
        at = struct.unpack_from("<I", code, 60)[0]
        if code[:2] != b"MZ" or struct.unpack_from("<H", code, at + 4)[0] != 0x8664:
            yield "is not for this platform"
        return
    magic, processor, _, _, count = struct.unpack_from("<5I", code)
    if magic != 0xFEEDFACF or processor != (0x0100000C if arm else 0x01000007):
        yield "is not for this platform"
        return
    at = 32
    for _ in range(count):
        command, nbytes = struct.unpack_from("<2I", code, at)
        if command in (0xC, 0x80000018):  # LC_LOAD_DYLIB, and weak
            begin = at + struct.unpack_from("<I", code, at + 8)[0]
            needed = code[begin : at + nbytes].split(b"\0")[0].decode()
            if not needed.startswith((*OF_MACOS, "@rpath/")):
                yield f"needs {needed}"
        if command == 0x32:  # LC_BUILD_VERSION
            oldest = struct.unpack_from("<I", code, at + 12)[0]
            if (oldest >> 16, oldest >> 8 & 0xFF) > OLDEST_MACOS["arm64" if arm else "x86_64"]:
                yield f"needs macOS {oldest >> 16}.{oldest >> 8 & 0xFF}"
        at += nbytes


def abi3(path: Path) -> Iterator[str]:
    """Does a wheel call only what each Python has?"""
    done = _tool("abi3audit", "--strict", path)
    if done.returncode:
        yield _last(done)


def auditwheel(path: Path) -> Iterator[str]:
    """Does a wheel for Linux keep to what its tag promises?  It knows glibc here, not musl."""
    promised = path.stem.rsplit("-", 1)[1].split(".")
    done = _tool("auditwheel", "show", path)
    if done.returncode or not any(f'"{one}"' in done.stdout for one in promised):
        yield _last(done)


def twine(paths: Sequence[Path]) -> Iterator[str]:
    """Would an index take the descriptions?"""
    done = _tool("twine", "check", "--strict", *paths)
    if done.returncode:
        yield _last(done)


def smoke(path: Path, installed: list[str]) -> Iterator[str]:
    """Install a wheel into an empty environment, and use each command once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _run(sys.executable, "-m", "venv", folder / "venv", check=True)
        programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        constraints = ROOT / "constraints.txt"
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        done = _run(programs / "python", *pip, "-c", constraints, "--only-binary", ":all:", path)
        if done.returncode:
            yield _last(done)
            return
        yield from each_command((programs / "chunkwise",), programs / "python", folder)
        frozen = _run(programs / "python", *pip[:2], "freeze", "--exclude", "chunkwise")
        installed += frozen.stdout.splitlines()


def each_command(chunkwise: Sequence[object], python: object, folder: Path) -> Iterator[str]:
    """Use each command once."""
    # Of that Python, which an emulator may run.
    linux = "linux" in _run(python, "-c", "import sys; print(sys.platform)").stdout
    helped = _run(*chunkwise, "--help").stdout.partition("Commands:")[2]
    commands = set(re.findall(r"^  ([a-z][a-z-]*)  ", helped, re.MULTILINE))
    unused = commands - {words[0] for words in SMOKE}
    if not commands or unused:
        yield f"no smoke of {', '.join(sorted(unused)) or 'any command'}"
    for words in SMOKE:
        done = _run(*chunkwise, *(python if one == PYTHON else one for one in words), cwd=folder)
        # 1: something was found, such as a chunk that is too large; 3: not on this system.
        fine = (0, 1, 3) if words[0] in NOT_EVERYWHERE and not linux else (0, 1)
        if done.returncode not in fine or "Traceback" in done.stderr:
            yield f"chunkwise {' '.join(words)}: {_last(done)}"


def known_faults_of_crates() -> Iterator[str]:
    """Ask for known faults of the crates; the list is the newest, or the one fetched last."""
    done = _tool("cargo-audit", "audit", "--quiet")
    if "fetch" in done.stderr:
        done = _tool("cargo-audit", "audit", "--quiet", "--no-fetch", "--stale")
    if "database" in done.stderr:
        raise NotDoneError("the list could not be fetched, and none is in ~/.cargo/advisory-db")
    if done.returncode:
        yield done.stdout + done.stderr


def known_faults_of_packages(installed: Sequence[str]) -> Iterator[str]:
    """Ask for known faults of what a wheel needs."""
    if not installed:
        raise NotDoneError("no wheel was installed")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(installed))
        file.flush()
        done = _tool("pip-audit", "--disable-pip", "--no-deps", "--timeout", "10", "-r", file.name)
    if "No known vulnerabilities" in done.stdout + done.stderr:
        return
    if "Found" in done.stderr:
        yield done.stdout + done.stderr
        return
    raise NotDoneError(_last(done))


def _run(
    *words: object, cwd: Path = ROOT, check: bool = False
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words], cwd=cwd, check=check, capture_output=True, text=True,
        # Windows writes by its code page.
        errors="replace", stdin=subprocess.DEVNULL,
    )  # fmt: skip


def _tool(name: str, *words: object) -> subprocess.CompletedProcess[str]:
    there = BIN / name
    if not there.exists():
        raise NotDoneError(f"{name} is not installed")
    return _run(there, *words)


def _last(done: subprocess.CompletedProcess[str]) -> str:
    """Give the last line of what a program said."""
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return said[-1] if said else f"ended with {done.returncode}"


def found_of(name: str) -> list[Path]:
    """The wheels of a platform in dist/."""
    return sorted(DIST.glob(PLATFORMS[name].pattern))


def can_run(platform_name: str) -> bool:
    """Whether a platform's wheel can be installed here."""
    this = {"aarch64": "arm64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    libc = "linux" if platform.libc_ver()[0] == "glibc" else "musl"
    system = {"Darwin": "macos", "Linux": libc, "Windows": "windows"}.get(platform.system())
    return platform_name == f"{system}-{this}"


def main() -> int:
    """Check all."""
    failed = 0
    installed: list[str] = []

    def say(what: str, found: Iterator[str]) -> None:
        nonlocal failed
        try:
            problems = list(found)
        except NotDoneError as error:
            print(f"not done  {what}: {error}", flush=True)
            return
        failed += bool(problems)
        print(f"{'failed' if problems else 'ok':8}  {what}", flush=True)
        for one in problems:
            print(f"          {one}", flush=True)

    if "--with" in sys.argv:
        with tempfile.TemporaryDirectory() as name:
            # Python of another platform, which this machine can run.
            python = sys.argv[-1]
            used = each_command((python, "-m", "chunkwise"), python, Path(name))
            say(f"{python}: each command", used)
        return int(bool(failed))
    if "--try" in sys.argv:
        tried = [path for name in PLATFORMS if can_run(name) for path in found_of(name)]
        for path in tried:
            say(f"{path.name}: installed, each command", smoke(path, installed))
        return int(bool(failed or not tried))
    say("versions agree", versions())
    say("each licence of what is linked is listed", licences())
    say("the source archive", sdist())
    made = {name: found_of(name) for name in PLATFORMS}
    for name, paths in made.items():
        if len(paths) != 1:
            say(f"{name}: one wheel", iter([f"there are {len(paths)} in dist/ (make wheels)"]))
            continue
        path = paths[0]
        say(f"{name}: name, size, contents", wheel(path, PLATFORMS[name]))
        say(f"{name}: the stable interface of Python", abi3(path))
        if "linux-gnu" in PLATFORMS[name].triple:
            say(f"{name}: auditwheel", auditwheel(path))
        if can_run(name):
            say(
                f"{name}: installed into an empty environment, each command",
                smoke(path, installed),
            )
        else:
            print(f"not done  {name}: it cannot be run here", flush=True)
    paths = [path for some in made.values() for path in some] + [*DIST.glob("*.tar.gz")]
    if paths:
        say("twine check", twine(paths))
    say("known faults of crates", known_faults_of_crates())
    say("known faults of packages", known_faults_of_packages(installed))
    print("make release-check: " + (f"{failed} failed" if failed else "nothing failed"))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
