"""Which wheels are there?  `python scripts/build/wheels.py [PLATFORM ...]` builds them.

They go into dist/.  zig is the C compiler and the linker (for Windows, mingw-w64), so each can be
made on any Linux machine.  Each is made in a copy of the sources: the library for programs lies
in the package, and there it is that of this machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
MOST_NBYTES = 6 << 20
# What a wheel is made of.
SOURCES = (
    "*.toml", "Cargo.lock", "crates", "fuzz", "packaging", "python", "scripts/build",
    "README.md", "LICENSE-*",
)  # fmt: skip


@dataclass(frozen=True)
class Platform:
    """Where a wheel runs."""

    # What Rust calls it.
    triple: str
    # What a wheel's name says, without the processor.
    tag: str
    # What maturin calls that; None where the name follows from the target.
    compatible: str | None = None
    # A library that is put under programs needs `LD_PRELOAD`.
    preload: bool = True
    # Otherwise the C compiler and linker are those that are installed for it (mingw-w64).
    zig: bool = True

    @property
    def pattern(self) -> str:
        """The names of its wheels."""
        processor = self.triple.partition("-")[0]
        if "apple" in self.triple:
            processor = processor.replace("aarch64", "arm64")
        elif "windows" in self.triple:
            processor = "amd64"
        return f"chunkwise-*-cp310-abi3-{self.tag}*_{processor}.whl"


PLATFORMS = {
    "linux-x86_64": Platform("x86_64-unknown-linux-gnu", "manylinux", "manylinux2014"),
    "linux-arm64": Platform("aarch64-unknown-linux-gnu", "manylinux", "manylinux2014"),
    "musl-x86_64": Platform("x86_64-unknown-linux-musl", "musllinux_1_2", "musllinux_1_2"),
    "musl-arm64": Platform("aarch64-unknown-linux-musl", "musllinux_1_2", "musllinux_1_2"),
    "macos-arm64": Platform("aarch64-apple-darwin", "macosx", preload=False),
    "macos-x86_64": Platform("x86_64-apple-darwin", "macosx", preload=False),
    "windows-x86_64": Platform("x86_64-pc-windows-gnu", "win", preload=False, zig=False),
}


def _copied(platform: Platform) -> Path:
    """Copy the sources as they are in the work tree."""
    copy = ROOT / "target" / "sources" / platform.triple
    subprocess.run(["rm", "-rf", copy], check=True)
    copy.mkdir(parents=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *SOURCES],
        cwd=ROOT, check=True, stdout=subprocess.PIPE,
    ).stdout  # fmt: skip
    there = [name for name in listed.split(b"\0") if name and (ROOT / os.fsdecode(name)).exists()]
    packed = subprocess.run(
        ["tar", "--create", "--null", "--files-from", "-"],
        cwd=ROOT, check=True, input=b"\0".join(there), stdout=subprocess.PIPE,
    ).stdout  # fmt: skip
    subprocess.run(["tar", "--extract", "--directory", copy], check=True, input=packed)
    return copy


def build(name: str) -> Path:
    """Build the wheel of one platform."""
    platform = PLATFORMS[name]
    # A folder of its own, as another C compiler would rebuild everything each time.
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target" / "wheel"))
    env = {**os.environ, "CARGO_TARGET_DIR": target}
    subprocess.run(
        ["rustup", "target", "add", platform.triple], cwd=ROOT, check=True, stderr=subprocess.PIPE
    )
    copy = _copied(platform)
    if platform.preload:
        subprocess.run(
            [sys.executable, "scripts/build/backend.py", platform.triple],
            cwd=copy, check=True, env=env,
        )  # fmt: skip
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob(platform.pattern):
        old.unlink()
    compatible = () if platform.compatible is None else ("--compatibility", platform.compatible)
    subprocess.run(
        ["maturin", "build", "--quiet", "--release", "--locked", *(["--zig"] * platform.zig),
         "--target", platform.triple, *compatible, "--out", DIST],
        cwd=copy, check=True, env=env,
    )  # fmt: skip
    (made,) = DIST.glob(platform.pattern)
    print(f"{made.relative_to(ROOT)}: {made.stat().st_size / (1 << 20):.1f} MiB", flush=True)
    return made


def main() -> int:
    """Build what is named, or all; the others are built although one fails."""
    failed = []
    for name in sys.argv[1:] or PLATFORMS:
        if name not in PLATFORMS:
            sys.exit(f"{name}: no such platform; there are {', '.join(PLATFORMS)}")
        try:
            build(name)
        except subprocess.CalledProcessError as error:
            failed.append(name)
            print(f"{name}: {error}", file=sys.stderr, flush=True)
    if failed:
        print(f"make wheels: not built: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
