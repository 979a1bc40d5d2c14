"""Set the version everywhere that states it: `python scripts/version.py 0.2.0`.

The crates, and through them the package, have it from `Cargo.toml`; `CITATION.cff` and the conda
recipe repeat it.  `tests/whole/test_release.py` compares them.  CHANGELOG.md is written by hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# A file, and what stands around the version in it.
PLACES = {
    "Cargo.toml": r'(\[workspace\.package\]\nversion = ")[^"]+(")',
    "Cargo.lock": r'(name = "chunkwise-[^"]+"\nversion = ")[^"]+(")',
    "CITATION.cff": r"(\nversion: )\S+()",
    "packaging/conda/recipe.yaml": r'(\n  version: ")[^"]+(")',
}


def main() -> None:
    """Write the version that the command line names."""
    if len(sys.argv) != 2 or not re.fullmatch(r"\d+\.\d+\.\d+", sys.argv[1]):
        sys.exit("name a version, as in: python scripts/version.py 0.2.0")
    for name, pattern in PLACES.items():
        path = ROOT / name
        text, count = re.subn(pattern, rf"\g<1>{sys.argv[1]}\g<2>", path.read_text("utf-8"))
        if not count:
            sys.exit(f"{name}: no version was found; nothing more was written")
        path.write_text(text, "utf-8")
        print(f"{name}: {count}")


if __name__ == "__main__":
    main()
