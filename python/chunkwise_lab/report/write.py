"""Which form does a report have, and how does it reach the disk?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.names import printable
from chunkwise_lab.report.markdown import markdown
from chunkwise_lab.report.model import Report
from chunkwise_lab.report.page import page
from chunkwise_lab.report.stills import FORMATS, still


def save(report: Report, path: Path, pictures: Mapping[str, Path]) -> None:
    """Write a report in the form that its name asks for."""
    kind = path.suffix.lower()
    if kind in (".html", ".htm"):
        text = page(report)
    elif kind in (".md", ".markdown"):
        links = {name: _relative(picture, path.parent) for name, picture in pictures.items()}
        text = markdown(report, links)
    else:
        raise UsageError(
            f"{printable(str(path))}: name a report .html for a page, or .md for Markdown"
        )
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _cannot_write(path, error) from None


def save_stills(report: Report, folder: Path, formats: Sequence[str]) -> dict[str, Path]:
    """Write each chart as a picture."""
    for kind in formats or ("",):
        if kind not in FORMATS:
            raise UsageError(
                f"'{kind}' is no format of pictures: choose from {', '.join(FORMATS)}"
            )
    first: dict[str, Path] = {}
    names: set[str] = set()
    for section in report.sections:
        for block in section.blocks:
            for n, (chart, _) in enumerate(block.pictures, 1):
                if chart is None:
                    continue
                name = _file_name(section.title, block.title, n, names)
                for kind in formats:
                    path = folder / f"{name}.{kind}"
                    content = still(chart, kind)
                    try:
                        folder.mkdir(parents=True, exist_ok=True)
                        path.write_bytes(content)
                    except OSError as error:
                        raise _cannot_write(path, error) from None
                    first.setdefault(chart.id, path)
    return first


def _file_name(section: str, block: str, number: int, taken: set[str]) -> str:
    """Name a picture by what it shows; once each."""
    text = f"{section}-{block}-{number}".lower()
    base = "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in text).split())[:80]
    name, again = base, 1
    while name in taken:
        again += 1
        name = f"{base}-{again}"
    taken.add(name)
    return name


def _relative(picture: Path, folder: Path) -> str:
    return Path(os.path.relpath(picture, folder)).as_posix()


def _cannot_write(path: Path, error: OSError) -> CannotWriteError:
    return CannotWriteError(
        f"{printable(str(path))}: cannot be written: {error.strerror or error}; name another place"
    )
