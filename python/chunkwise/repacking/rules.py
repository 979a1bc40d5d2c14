"""Which datasets does a rule mean, and which rule applies if there are several?

The last one that means a dataset applies: ``--filter zstd:3 --filter 'mask:none'``.  A name that
cannot take the setting is an error; a pattern skips such datasets, and the plan says so.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from chunkwise.errors import DatasetNotFoundError, UsageError
from chunkwise.files.opening import hint
from chunkwise.grammar import Pipeline, Shape, ShapeWord, parse_shape
from chunkwise.grammar.codecs import ALIASES, CODECS
from chunkwise.names import printable
from chunkwise.patterns.around import WHOLE


@dataclass(frozen=True)
class Named:
    """A chunk by names of dimensions, as in ``time=365,lat=20``."""

    text: str

    def __str__(self) -> str:
        return self.text


ChunkSetting: TypeAlias = Shape | ShapeWord | Named
FilterSetting: TypeAlias = Pipeline | Literal["stored"]
Setting = TypeVar("Setting")

# The API takes one for all, or one by pattern.
ChunkRules: TypeAlias = (
    str | Sequence[int] | Sequence[str] | Mapping[str, str | int | Sequence[int]] | None
)
FilterRules: TypeAlias = str | Pipeline | Sequence[str] | Mapping[str, str | Pipeline] | None

_EVERYTHING = "**"
_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Rule(Generic[Setting]):
    """A setting of the datasets that a pattern means."""

    pattern: str  # A path (``/a/t2m``), the last part of one (``t2m``), or a pattern of either
    setting: Setting  # What they should have
    text: str  # The rule as it was given, for messages

    def means(self, names: Iterable[str]) -> bool:
        """Return whether a dataset with these absolute paths is meant."""
        return any(matches(self.pattern, name) for name in names)

    def names_any(self, names: Iterable[str]) -> bool:
        """Return whether it means this dataset by name, rather than by a pattern."""
        wanted = self.pattern.strip("/")
        if not _MAGIC.search(self.pattern):
            return self.means(names)
        return any(name.strip("/") == wanted for name in names)


@dataclass(frozen=True)
class Rules:
    """The settings of a file's datasets."""

    # Rules in the order given; the last that means a dataset holds.
    chunks: tuple[Rule[ChunkSetting], ...] = ()
    filters: tuple[Rule[FilterSetting], ...] = ()
    # Smaller datasets (before filters) are left, unless a rule names them.
    min_nbytes: int = 0

    @classmethod
    def of(cls, chunk: ChunkRules, filters: FilterRules, min_nbytes: int = 0) -> Rules:
        """Read rules as the API takes them."""
        return cls(tuple(_chunk_rules(chunk)), tuple(_filter_rules(filters)), min_nbytes)

    @property
    def all(self) -> tuple[Rule[Any], ...]:
        """Rules of either kind."""
        return (*self.chunks, *self.filters)


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern means a dataset of this absolute path."""
    # A pattern with a slash is for the whole path, and its ``*`` stays within one group; ``**``
    # stands for any number of groups.  One without a slash is for the last part of a path, in
    # whatever group.  ``?`` is any character, ``[ab]`` one of several.
    if pattern.strip("/") == path.strip("/"):
        return True
    if "/" not in pattern and pattern != _EVERYTHING:
        name = path.rpartition("/")[2]
        return pattern == name or _regex(pattern).fullmatch(name) is not None
    return _regex(pattern.strip("/")).fullmatch(path.strip("/")) is not None


@lru_cache(maxsize=256)
def _regex(pattern: str) -> re.Pattern[str]:
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]/]+\])", pattern)
    found = []
    for part in parts:
        if len(part) > 2 and part.startswith("[") and part.endswith("]"):
            inner = part[1:-1].replace("\\", "\\\\").replace("[", "\\[")
            inner = "^" + inner[1:] if inner.startswith("!") else inner
            found.append(f"[{inner}]")
        else:
            found.append(words.get(part) or re.escape(part))
    try:
        return re.compile("".join(found), re.DOTALL)
    except re.error as wrong:
        raise UsageError(f"pattern {pattern!r} is not understood: {wrong}") from None


def holding(rules: Sequence[Rule[Setting]], names: Sequence[str]) -> Rule[Setting] | None:
    """Give the rule that holds for a dataset with these paths: the last that means it."""
    return next((rule for rule in reversed(rules) if rule.means(names)), None)


def require_matches(
    rules: Sequence[Rule[Setting]], paths: Mapping[str, Sequence[str]], groups: Iterable[str]
) -> None:
    """Raise for a rule that means no dataset at all."""
    for rule in rules:
        if any(rule.means(names) for names in paths.values()):
            continue
        if rule.pattern == _EVERYTHING:
            raise DatasetNotFoundError(f"rule {rule.text!r}: the file holds no dataset")
        if any(rule.pattern.strip("/") == group.strip("/") for group in groups):
            inside = f"/{rule.pattern.strip('/')}/**"
            raise DatasetNotFoundError(
                f"rule {rule.text!r}: '{printable(rule.pattern)}' is a group; for all datasets "
                f"below it write {inside}"
            )
        known = [name for names in paths.values() for name in names]
        raise DatasetNotFoundError(
            f"rule {rule.text!r}: no dataset is called '{printable(rule.pattern)}'"
            + hint("/" + rule.pattern.strip("/"), known)
        )


# --- texts -----------------------------------------------------------------------------


def parse_chunk_rule(text: str) -> Rule[ChunkSetting]:
    """Parse ``[PATTERN:]SHAPE``; a pattern may hold colons, a shape cannot."""
    # A shape may name dimensions: ``t2m:time=365,lat=20,lon=20``.
    pattern, colon, shape = text.rpartition(":")
    if colon and not pattern:
        raise UsageError(f"chunk rule {text!r}: a pattern is missing before ':'")
    return Rule(pattern or _EVERYTHING, _chunk_setting(shape, text), text)


def parse_filter_rule(text: str) -> Rule[FilterSetting]:
    """Parse ``[PATTERN:]PIPELINE``."""
    # Both may hold colons: a whole pipeline, or what follows the first colon that fits.
    pieces = text.split(":")
    wrongs: list[UsageError] = []
    for i in range(len(pieces)):
        try:
            setting = _filter_setting(":".join(pieces[i:]))
        except UsageError as wrong:
            wrongs.append(wrong)
            continue
        pattern = ":".join(pieces[:i])
        if i and not pattern:
            raise UsageError(f"filter rule {text!r}: a pattern is missing before ':'")
        return Rule(pattern or _EVERYTHING, setting, text)
    # The error is about the part that was most likely meant as the pipeline.
    likely = (wrongs[i] for i, piece in enumerate(pieces) if _is_like_filter(piece))
    raise UsageError(f"filter rule {text!r}: {next(likely, wrongs[min(1, len(wrongs) - 1)])}")


def _is_like_filter(piece: str) -> bool:
    first = piece.partition("+")[0].strip().lower()
    return bool(difflib.get_close_matches(first, ["none", *CODECS, *ALIASES], 1))


def _chunk_rules(chunk: ChunkRules) -> Iterable[Rule[ChunkSetting]]:
    if chunk is None:
        return
    if isinstance(chunk, str):
        yield parse_chunk_rule(chunk)
    elif isinstance(chunk, Mapping):
        for pattern, shape in chunk.items():
            said = "x".join(map(str, shape)) if isinstance(shape, Sequence) else str(shape)
            said = shape if isinstance(shape, str) else said
            yield Rule(pattern, _chunk_setting(said, said), f"{pattern}:{said}")
    elif all(isinstance(one, str) for one in chunk):
        yield from (parse_chunk_rule(str(one)) for one in chunk)
    else:
        said = "x".join(str(one) for one in chunk)
        yield Rule(_EVERYTHING, _chunk_setting(said, said), said)


def _filter_rules(filters: FilterRules) -> Iterable[Rule[FilterSetting]]:
    if filters is None:
        return
    if isinstance(filters, Pipeline):
        yield Rule(_EVERYTHING, filters, str(filters))
    elif isinstance(filters, str):
        yield parse_filter_rule(filters)
    elif isinstance(filters, Mapping):
        for pattern, pipeline in filters.items():
            setting = pipeline if isinstance(pipeline, Pipeline) else _filter_setting(pipeline)
            yield Rule(pattern, setting, f"{pattern}:{pipeline}")
    else:
        yield from (parse_filter_rule(text) for text in filters)


def _chunk_setting(shape: str, text: str) -> ChunkSetting:
    if "=" in shape or shape in WHOLE:
        return Named(shape)
    setting = parse_shape(shape)
    if setting == ():
        raise UsageError(f"chunk rule {text!r}: a chunk has at least one dimension")
    return setting


def _filter_setting(text: str) -> FilterSetting:
    return "stored" if text.strip().lower() == "stored" else Pipeline.parse(text)
