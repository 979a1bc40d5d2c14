"""Which command makes a copy of a file as wished: by chunkwise, and by other tools if they can?

nccopy and h5repack are left out where they would lose something.  With ``-l`` or ``-f``, h5repack
leaves out every dataset whose filters it lacks, says so in a warning, and ends with exit code 0
(seen with 1.10.8).  A copy without options takes stored chunks as they are.  nccopy writes nothing
at all and says so.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Sequence
from typing import Final

from chunkwise.grammar import Pipeline
from chunkwise.model.layout import FileLayout
from chunkwise.names import shell_word
from chunkwise.remedy import tools
from chunkwise.remedy.fix import Fix, Tool
from chunkwise.remedy.records import CONTIGUOUS, Anew, Copy

# nccopy reads -F differently for other names unless they are escaped.
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
# Without it nccopy ignores chunks of less than 8 KiB.
_ANY_CHUNK: Final = "-M 0"


def commands(copy: Copy) -> Iterator[Fix]:
    """Give the commands that make a copy, that of chunkwise first."""
    layout = copy.ours
    if layout is not None:
        options = layout.options()
        text = _line("chunkwise", f"repack {options}".rstrip(), copy)
        joined = options if layout.datasets and not copy.exact else ""
        yield Fix("chunkwise", text, rechunks=copy.rechunks, options=joined, layout=layout)
    rest, of_file = copy.rest, _of_file(copy.rest)
    if copy.by_us or rest.merge or rest.low or not all(map(tools.can_repack, copy.pipelines)):
        return
    if copy.datasets and not of_file:
        found = [_nccopy(copy, one) for one in copy.datasets]
        common = "" if found[0] is None else found[0][0]
        yield from _by("nccopy", copy, common, [own and own[1] for own in found])
    yield from _by("h5repack", copy, of_file, list(map(_h5repack, copy.datasets)))


def copy_name(copy: Copy) -> str:
    """Return the name of the copy: it says whether there are but other chunks."""
    first = copy.datasets[0] if copy.datasets else None
    rechunked = first is not None and first.filters is None and not copy.exact
    return tools.beside(copy.file, "rechunked" if rechunked else "repacked")


def _by(tool: Tool, copy: Copy, common: str, options: Sequence[str | None]) -> Iterator[Fix]:
    """Give the command of a tool for all datasets for which it has words."""
    if (options and options[0] is None) or (copy.exact and None in options):
        return
    # Options without a dataset are for all of them.
    own = " ".join(dict.fromkeys(filter(None, options))) if options and options[0] else ""
    words = " ".join(filter(None, (common, own)))
    kept = "" if copy.exact else own
    yield Fix(tool, _line(tool, words, copy), rechunks=copy.rechunks, options=kept)


def _line(tool: Tool, options: str, copy: Copy) -> str:
    words = (tool, options, tools.shell_file(copy.file), tools.shell_file(copy_name(copy)))
    return " ".join(filter(None, words))


def _nccopy(copy: Copy, one: Anew) -> tuple[str, str] | None:
    """Give nccopy's options for all variables and for one; None if it cannot make that."""
    path, chunks = tools.absolute(one.path), one.chunks
    if (
        not tools.is_in_netcdf_root(copy.file, path)
        or not tools.names(one.now.filters) <= tools.NCCOPY_FILTERS
    ):
        return None
    # nccopy refuses chunks that are longer than the data.
    longer = map(operator.gt, chunks or (), one.now.shape or ())
    if chunks == CONTIGUOUS or any(longer):
        return None
    common: str | None = ""
    if one.filters is not None:
        pipeline = Pipeline.parse(one.filters)
        plain = _PLAIN_NAME.fullmatch(path[1:])
        none = f"-F {path[1:]},none" if plain else None
        common = pipeline.nccopy() if pipeline.filters else none
    if common is None or (copy.exact and one.filters is not None):
        return None
    if chunks is None:
        return (common, "") if common else None
    # Without lengths nccopy would choose chunks itself, which may outgrow a cache.
    lengths = f"{path[1:]}:{','.join(map(str, chunks))}"
    return f"{_ANY_CHUNK} {common}".rstrip(), f"-c {shell_word(lengths)}"


def _of_file(layout: FileLayout) -> str:
    """Write what concerns the file as a whole as options of h5repack."""
    words = []
    if layout.metadata_block_nbytes is not None:
        words.append(f"-M {layout.metadata_block_nbytes}")
    if layout.page_nbytes is not None:
        words.append(f"-S PAGE -G {layout.page_nbytes}")
    return " ".join(words)


def _h5repack(one: Anew) -> str | None:
    """Give h5repack's options for one dataset; None if it has no words for it."""
    path, filters = tools.absolute(one.path), one.filters
    if set(path) & set(":,") or not tools.can_repack(one.now.filters):
        return None
    words = []
    if one.chunks == CONTIGUOUS:
        words.append(f"-l {shell_word(f'{path}:CONTI')}")
        filters = None if one.now.filters == "none" else "none"
    elif one.chunks is not None:
        spelled = "x".join(map(str, one.chunks))
        words.append(f"-l {shell_word(f'{path}:CHUNK={spelled}')}")
    if filters is not None:
        arguments = Pipeline.parse(filters).h5repack(path)
        if arguments is None or not tools.can_repack(filters):
            return None
        words += map(shell_word, arguments)
    return " ".join(words)
