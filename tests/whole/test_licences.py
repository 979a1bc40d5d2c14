"""Does a wheel have the licence of everything that is linked in, and its SBOM the C code?"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Another way to know: the libraries that docs/filters.md says decode and encode.
LINKED = ("libdeflate", "isa-l", "zstd", "lz4", "zlib", "libbz2-rs-sys", "twox-hash", "pyo3")


def test_what_is_linked_is_listed() -> None:
    if shutil.which("cargo") is None:
        pytest.skip("there is no cargo")
    done = subprocess.run(
        [sys.executable, "scripts/build/licences.py", "--check"],
        cwd=ROOT, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_has_its_text() -> None:
    text = (ROOT / "LICENSE-THIRD-PARTY").read_text("utf-8")
    listed, *texts = text.split("-" * 80)
    for name in LINKED:
        assert f"\n{name} " in listed, name
    for line in listed.split("\n\n")[1].splitlines():
        name, _, licence = line.partition(": ")
        name = re.sub(r" \d\S*$", "", name)
        of = [one for one in texts if name in one.splitlines()[1].rpartition(" (")[0].split(", ")]
        assert len(of) == 1, name
        assert f"({licence})" in of[0].splitlines()[1]
        assert len(of[0]) > 500, name


def test_the_sbom_names_c_code_by_its_own_licence() -> None:
    record = json.loads((ROOT / "packaging" / "c-code.cyclonedx.json").read_text("utf-8"))
    licences = {one["name"]: one["licenses"][0]["license"]["id"] for one in record["components"]}
    assert licences == {
        "libdeflate": "MIT",
        "isa-l": "BSD-3-Clause",
        "zstd": "BSD-3-Clause",
        "lz4": "BSD-2-Clause",
        "zlib": "Zlib",
    }
