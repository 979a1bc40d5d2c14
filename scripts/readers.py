"""Write docs/readers.md: which programs read what, from the table that the commands use.

python scripts/readers.py            # write the page
python scripts/readers.py --check    # end with code 1 if it is not current
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from chunkwise.model.readability import FORMATS, PROGRAMS, Program

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "readers.md"
FILTERS: Final = (
    *("deflate", "shuffle", "fletcher32", "szip", "nbit", "scaleoffset"),
    *("lzf", "lz4", "zstd", "bitshuffle", "blosc", "blosc2", "bzip2"),
)
SAID: Final = {"yes": "yes", "with a plugin": "plugin", "no": "no", "not known": "?"}
HEAD: Final = """\
# Who can read it

Before a file is written with another filter, format or kind of file space, `chunkwise repack` and
`chunkwise fix` say which programs read less of the new file than of the old one:

    readers: it is read only with a plugin by libhdf5 1.8, without plugins, ... and
        MATLAB (h5read): the filter zstd

`--for PROGRAM`, which may be repeated, makes sure of a reader: `repack` refuses what it could not
read as it reads the source, and `fix` leaves it out.

    chunkwise repack in.nc out.nc --filter shuffle+deflate:4 --for netcdf-java
    chunkwise fix in.nc out.nc --for matlab --for h5wasm

`yes`: it reads it as it comes. `plugin`: where HDF5's plugin for the filter is installed, and
found (`HDF5_PLUGIN_PATH`; for h5py `import hdf5plugin`). `?`: nobody documents it, and then it is
not taken for a yes. This page is made by `scripts/readers.py` from the table that the commands use
(`chunkwise.model.readability`).
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *_filters(), *_formats(), *_sources()]).rstrip() + "\n"


def _filters() -> Iterator[str]:
    yield "## Filters\n"
    yield f"| `--for` | {' | '.join(FILTERS)} | others |"
    yield f"| --- |{' --- |' * (len(FILTERS) + 1)}"
    for one in PROGRAMS:
        cells = [SAID[one.reads_filter(name)] for name in FILTERS]
        yield f"| `{one.name}` | {' | '.join(cells)} | {SAID[one.others]} |"
    yield ""


def _formats() -> Iterator[str]:
    yield "## Formats and kinds of files\n"
    yield "The format is named by the oldest libhdf5 that knows it, as `inspect` tells it"
    yield "(`--low`, `--high` of repack).\n"
    formats = FORMATS[2:]
    yield f"| `--for` | {' | '.join(formats)} | virtual datasets | paged file space |"
    yield f"| --- |{' --- |' * (len(formats) + 2)}"
    for one in PROGRAMS:
        cells = [SAID[one.reads_format(name)] for name in formats]
        yield f"| `{one.name}` | {' | '.join(cells)} | {SAID[one.virtual]} | {SAID[one.paged]} |"
    yield ""


def _sources() -> Iterator[str]:
    yield "## What this rests on\n"
    for one in PROGRAMS:
        yield f"- `{one.name}`: {one.title}. {_rests_on(one)}"


def _rests_on(one: Program) -> str:
    return ", ".join(f"<{one}>" if one.startswith("https:") else one for one in one.sources)


def main() -> None:
    """Write the page, or compare it."""
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PAGE.read_text("utf-8") == page() else 1)
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
