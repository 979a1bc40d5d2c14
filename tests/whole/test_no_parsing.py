"""Is text that chunkwise writes for people read again by chunkwise?

What a program decides follows from records.  Looked for are the usual ways to read text: whether
it begins with a word of ours, its parts, whether it contains something.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "python"
# Methods of text that look for a part of it, or take it apart.
READING = {
    *("startswith", "endswith", "removeprefix", "removesuffix", "split", "rsplit"),
    *("partition", "rpartition", "find", "index", "replace", "count"),
}
# How lines and sentences of ours begin, or what they have within.
OURS = re.compile(
    r"^(chunkwise\b|h5repack\b|nccopy\b|h5clear\b|h5py\.|netCDF4\.|hid_t\b|H5P|HDF5 \S*$"
    r"|line along|plane across|too short|shuffle\+|@random| ?--\w+|rdcc_|page_buf)"
)
# Runs a line that was advised, as a user who pastes it would.
PASTES = "chunkwise_lab/peers/programs.py"
# What holds text for people.
SAID = {"evidence", "summary", "why", "effect", "text", "fix"}
# What a text for people is called where it is a variable, and how its words begin.
NAMED = {"text", "said", "reason", "wrong"}
WORD = re.compile(r"^[A-Za-z]\w+")
# The one place that takes the file's name off a message.
TAKES_NAMES_OFF = "chunkwise/errors.py"


def written(node: ast.AST) -> Iterator[str]:
    """Give the text that an argument of such a method has."""
    yield from (
        one.value
        for one in ast.walk(node)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    )


def is_said(node: ast.AST) -> bool:
    """Whether it is a field with text for people, or a value of the evidence."""
    return any(isinstance(one, ast.Attribute) and one.attr in SAID for one in ast.walk(node))


def is_named(called: ast.Attribute, argument: ast.AST) -> bool:
    """Whether a text that is called one begins with a word, or a message with a name."""
    if called.attr == "startswith" and isinstance(called.value, ast.Name):
        return called.value.id in NAMED and any(map(WORD.match, written(argument)))
    parts = argument.values if isinstance(argument, ast.JoinedStr) else ()
    return called.attr.startswith("remove") and any(": " in written(one) for one in parts)


def readings(source: str) -> Iterator[tuple[int, str]]:
    """Find the lines that read text of ours."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            # Without an argument, a text is taken apart only to be wrapped.
            texts = [text for argument in node.args[:1] for text in written(argument)]
            reads = node.func.attr in READING and node.args
            if reads and (
                is_said(node.func.value)
                or any(map(OURS.match, texts))
                or is_named(node.func, node.args[0])
            ):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            left, (right, *_) = node.left, node.comparators
            said = isinstance(right, ast.Attribute) and right.attr in SAID - {"evidence"}
            if said and isinstance(left, ast.Constant):
                yield node.lineno, ast.unparse(node)


def test_no_text_of_ours_is_read_again() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted(ROOT.rglob("*.py"))
        if path not in (ROOT / PASTES, ROOT / TAKES_NAMES_OFF)
        for line, text in readings(path.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


def test_what_is_found() -> None:
    for line in (
        'fix.text.startswith("chunkwise repack ")',
        '(advice.fix or "").startswith(("chunkwise repack", "h5repack"))',
        'first.text.replace(first.options, " ".join(options), 1)',
        'str(strided.evidence["offered_chunks"]).split("x")',
        'text.removeprefix("HDF5 ")',
        'spec.endswith("@random")',
        'command.split(" --access ")',
        '"page_buf_size" not in fix.text',
        'said.startswith("it is ")',
        'text.startswith("mpi4py")',
        'text.startswith("io=")',
        'str(error).removeprefix(f"{printable(path)}: ")',
    ):
        assert list(readings(line)), line
    for line in (
        'path.startswith("/")',
        "fix.text.splitlines()",
        'name == "chunkwise"',
        'evidence["decode_s"] = 1',
    ):
        assert not list(readings(line)), line
