"""Which form does a report have, and how does it reach the disk?"""

from __future__ import annotations

from pathlib import Path

from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.names import printable
from chunkwise_lab.report.markdown import markdown
from chunkwise_lab.report.model import Report
from chunkwise_lab.report.page import page


def save(report: Report, path: Path) -> None:
    """Write a report in the form that its name asks for."""
    kind = path.suffix.lower()
    if kind in (".html", ".htm"):
        text = page(report)
    elif kind in (".md", ".markdown"):
        text = markdown(report)
    else:
        raise UsageError(
            f"{printable(str(path))}: name a report .html for a page, or .md for Markdown"
        )
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CannotWriteError(
            f"{printable(str(path))}: cannot be written: {error.strerror or error}; name another "
            "place"
        ) from None
