"""Write docs/api.md: every public name of the package, from its docstring.

    python scripts/api.py            # write the page
    python scripts/api.py --check    # end with code 1 if it is not current

A name that is new in `chunkwise.__all__` gets its place by itself: classes of h5py's kind, errors
and selections are told by what they are, all else stands in the last group until `GROUPS` has it.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import h5py

import chunkwise
from chunkwise import errors, inspection, measure, parallel, repacking
from chunkwise.advice import answer
from chunkwise.fixing import records as fixing_records
from chunkwise.indexing import records as indexing_records
from chunkwise.verifying import records as verifying_records

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "api.md"
HEAD: Final = """\
# The Python interface

Every public name, with its signature and a line on what it does. `help(chunkwise.open)` says all
about parameters, units and errors. This page is made by `scripts/api.py` from the docstrings.

    import chunkwise

    with chunkwise.open("model.nc") as f:
        field = f["temperature"][0]               # as h5py, on all processors

    chunkwise.inspect("model.nc").findings        # what is wrong with the file
    chunkwise.bench("model.nc").advice            # what makes reading it slow
    chunkwise.advise("model.nc", "t").best        # how it should be stored, measured
    chunkwise.fix("model.nc", "fixed.nc").gains   # mended, and measured before and after
    chunkwise.repack("model.nc", "fast.nc")       # written anew, as you say
    chunkwise.verify("model.nc").damages          # what is not as it was written
"""
# Names in the order of the page; the last group has what no other names.
GROUPS: Final = {
    "Files, groups, datasets": ("open", "wrap", "File", "Group", "Dataset"),
    "Selections": ("hyperslab", "union", "points", "Selection", "Hyperslab", "Union", "Points"),
    "Programs that use h5py": ("patch_h5py", "unpatch_h5py", "patch_stats"),
    "Measure, explain, repair": (
        "inspect",
        "list_many",
        "view",
        "bench",
        "advise",
        "fix",
        "repack",
        "plan_repack",
        "verify",
        "index",
    ),
    "This process: threads and memory": (),
}
ABOUT: Final = {
    "Files, groups, datasets": "More: [writing.md](writing.md).",
    "Selections": "More: [selections.md](selections.md).",
    "Programs that use h5py": "More: [patching.md](patching.md).",
    "Measure, explain, repair": "What the commands print, as Python objects. More: "
    "[inspect.md](inspect.md), [bench.md](bench.md), [advise.md](advise.md), [fix.md](fix.md), "
    "[repack.md](repack.md), [verify.md](verify.md), [index-files.md](index-files.md).",
}
# What those functions return, and what is in it.
RECORDS: Final = {
    "Files that ranks of MPI write together": (parallel, tuple(sorted(parallel.__all__))),
    "What `inspect` returns": (
        inspection,
        ("FileFacts", "ObjectFacts", "DatasetFacts", "Finding", "Fix"),
    ),
    "What `list_many` gives": (inspection, ("FileListing", "ListedObject")),
    "What `bench` returns": (measure, ("Results", "Advice")),
    "What `advise` returns": (
        answer,
        ("Advice", "PatternAdvice", "Timing", "FrontPoint", "CacheAdvice", "Layout"),
    ),
    "What `fix` returns": (fixing_records, ("Fixed", "Gain", "Change")),
    "What `verify` returns": (verifying_records, ("Verified", "Damage", "Note")),
    "What `index` returns": (indexing_records, ("Indexed", "LeftOut")),
    "What `repack` and `plan_repack` return, and tell on the way": (
        repacking,
        tuple(name for name in repacking.__all__ if isinstance(getattr(repacking, name), type)),
    ),
}
WIDTH: Final = 92


def page() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *_groups(), *_records(), *_errors()]).rstrip() + "\n"


def members(kind: type) -> dict[str, str]:
    """Return the public members that chunkwise gives a class, each with its line."""
    found = dict(_attributes(kind))
    for base in kind.__mro__:
        if base.__module__.startswith("chunkwise"):
            for name in vars(base):
                if not name.startswith("_") and name not in found:
                    found[name] = _line(inspect.getattr_static(kind, name))
    return found


def _groups() -> Iterator[str]:
    placed = {name for names in GROUPS.values() for name in names}
    left = [name for name in chunkwise.__all__ if name not in placed]
    other = tuple(name for name in left if not _is_error(name) and name != "__version__")
    for title, names in GROUPS.items():
        yield f"## {title}\n"
        if title in ABOUT:
            yield f"{ABOUT[title]}\n"
        for name in names or other:
            yield from _entry(f"chunkwise.{name}", getattr(chunkwise, name))
    yield "`chunkwise.__version__` is the version, as text.\n"


def _records() -> Iterator[str]:
    for title, (package, names) in RECORDS.items():
        yield f"## {title}\n"
        for name in names:
            yield from _entry(f"{package.__name__}.{name}", getattr(package, name))


def _errors() -> Iterator[str]:
    yield "## Errors\n"
    yield "All are in `chunkwise.errors`; nearly all are of the kind that h5py raises, too.\n"
    yield "| error | is a | means |"
    yield "| --- | --- | --- |"
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, chunkwise.ChunkwiseError):
            bases = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
            yield f"| `{name}` | {bases} | {_cell(_line(kind))} |"


def _is_error(name: str) -> bool:
    value = getattr(chunkwise, name)
    return isinstance(value, type) and issubclass(value, Exception)


def _entry(name: str, value: Any) -> Iterator[str]:
    """Describe a function, or a class with its members."""
    yield f"### {name.rpartition('.')[2]}\n"
    if not isinstance(value, type):
        yield f"```python\n{_signature(name, value)}\n```\n"
        yield f"{_line(value)}\n"
        return
    yield f"`{name}`. {_line(value)}\n"
    theirs = [base for base in value.__mro__ if base in (h5py.File, h5py.Group, h5py.Dataset)]
    if theirs:
        yield f"It is an `h5py.{theirs[0].__name__}`, with all members of it, and these:\n"
    yield "| member | is |"
    yield "| --- | --- |"
    for member, line in members(value).items():
        found = inspect.getattr_static(value, member, None)
        found = found.__func__ if isinstance(found, classmethod | staticmethod) else found
        called = _parameters(found, bound=True) if callable(found) else ""
        yield f"| `{member}{called}` | {_cell(line)} |"
    yield ""


def _parameters(function: Any, *, bound: bool = False) -> str:
    """Return names and defaults of parameters; types are in the docstring."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    plain = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    plain = plain[1:] if bound else plain
    return str(inspect.Signature(plain))


def _signature(name: str, function: Any) -> str:
    lines = textwrap.wrap(
        f"{name}{_parameters(function)}", WIDTH, subsequent_indent="    ", break_long_words=False
    )
    return "\n".join(lines)


def _line(value: Any) -> str:
    """Return the first paragraph of a docstring as Markdown, on one line."""
    text = inspect.getdoc(value) or ""
    return _markdown(text.partition("\n\n")[0])


def _markdown(text: str) -> str:
    text = " ".join(text.split()).replace("``", "`")
    return text if not text or text.endswith((".", "?", ":")) else f"{text}."


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _attributes(kind: type) -> Iterator[tuple[str, str]]:
    """Yield what the docstring's section Attributes says of each."""
    _, _, section = (inspect.getdoc(kind) or "").partition("Attributes\n----------\n")
    section = re.split(r"\n\n\S[^\n]*\n-+\n", section)[0]
    for found in re.finditer(r"^(\S[^\n]*)\n?((?:(?: {4}[^\n]*)?(?:\n|$))*)", section, re.M):
        names, _, what = found[1].partition(" : ")
        text = _markdown(found[2]) or _markdown(what)
        for name in names.split(", "):
            yield name.strip(), text


def main() -> int:
    """Write the page, or check that it is current."""
    made = page()
    if "--check" in sys.argv[1:]:
        if PAGE.read_text(encoding="utf-8") == made:
            return 0
        print("docs/api.md is not current: run python scripts/api.py", file=sys.stderr)
        return 1
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
