"""How do the studies' own results stand in the site?  A page for each, and one with all plots.

`chunkwise report` writes the same from the same files; nothing is measured.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from book.text import put
from chunkwise_lab.report.build import report, save
from chunkwise_lab.report.markdown import markdown


def write(results: Path, folder: Path) -> list[str]:
    """Write the pages of all saved results; return their names without ending, in order."""
    files = sorted(results.glob("*.json.gz"))
    stamp = folder / "made.json"
    made = _state(files)
    if stamp.is_file() and stamp.read_text("utf-8") == made:
        return [_name(file) for file in files]
    for file in files:
        drawn = report([file])
        folder.mkdir(parents=True, exist_ok=True)
        text = markdown(drawn)
        title = f"# {_name(file)}: {drawn.sections[0].source.rpartition(': ')[2]}"
        put(folder / f"{_name(file)}.md", title + text[text.index("\n") :])
    # All of them with what a pointer tells, in one file that stands alone.
    save(report(files), folder / "report.html")
    put(stamp, made)
    return [_name(file) for file in files]


def _name(file: Path) -> str:
    return file.name.removesuffix(".json.gz")


def _state(files: list[Path]) -> str:
    """Say which results and which code the pages come from."""
    import chunkwise_lab

    package = Path(os.fspath(chunkwise_lab.__file__)).parent
    code = [*sorted((package / "report").glob("*.py")), *sorted(package.glob("studies/**/*.*"))]
    code += sorted(Path(__file__).parent.glob("*.py"))
    return json.dumps([[str(one), one.stat().st_mtime_ns] for one in (*files, *code)])
