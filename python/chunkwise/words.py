"""How are times and ratios written, so that a tired reader cannot misread them?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def format_seconds(seconds: float) -> str:
    """Write a duration with three digits and the unit that suits it.

    >>> format_seconds(0.0096), format_seconds(3.5), format_seconds(7200)
    ('9.60 ms', '3.50 s', '2.00 h')
    """
    for limit, unit, scale in (
        (1e-3, "µs", 1e6),
        (1.0, "ms", 1e3),
        (180.0, "s", 1.0),
        (7200.0, "min", 1 / 60),
        (172800.0, "h", 1 / 3600),
    ):
        if seconds < limit:
            return f"{three_digits(seconds * scale)} {unit}"
    return f"{three_digits(seconds / 86400)} d"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Write a number of things: ``1 chunk``, ``1,024 chunks``; `plural` if it has no s."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def format_ratio(ratio: float) -> str:
    """Write a ratio: ``4.3 times``, ``1,080 times``."""
    return f"{three_digits(ratio) if ratio < 10 else f'{ratio:,.0f}'} times"


def format_speed(speed: float) -> str:
    """Write how many times as fast: ``1,080x``, ``0.95x``, and ``1/1,080`` below 0.1."""
    if speed >= 0.1:
        return f"{three_digits(speed)}x"
    return f"1/{1 / speed:,.0f}" if speed > 0 else "0x"


def installing(extra: str) -> str:
    """Say how to install what a part needs: an extra of pyproject.toml."""
    # Unless chunkwise came from an index, its needs are named.  Imported here, for a rare hint.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = distribution("chunkwise")
    except PackageNotFoundError:
        found = None
    if found is None or found.read_text("direct_url.json") is None:
        return f"pip install 'chunkwise[{extra}]'"
    needs = [one.partition(";") for one in found.requires or ()]
    wanted = [need.strip() for need, _, only in needs if f"'{extra}'" in only.replace('"', "'")]
    return "pip install " + " ".join(f"'{need}'" for need in wanted)


LAYOUTS = {
    "contiguous": "contiguous",
    "compact": "compact (in the object header)",
    "virtual": "virtual (made of other datasets)",
    "external": "stored in external files",
}


def three_digits(value: float) -> str:
    """Write a number with three significant digits, and no exponent."""
    if value >= 99.95:
        return f"{value:,.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"


def nearest(text: str, known: Iterable[str]) -> str:
    """Return a question after the known name that is most like another; or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(text, list(known), 1)
    return f" (did you mean '{near[0]}'?)" if near else ""


def offered(text: str, known: Iterable[str]) -> str:
    """Return what follows a name that is not known: the nearest, and all there are."""
    names = list(known)
    return f"{nearest(text, names)}: there are {', '.join(names)}"


def joined(texts: Sequence[str], last: str = "and") -> str:
    """Enumerate: ``a, b and c``."""
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} {last} {texts[-1]}"


def wrapped(text: str, indent: str = "", hanging: str = "    ", width: int = 80) -> list[str]:
    """Break a sentence into lines; `hanging` is how much further those after the first begin."""
    import textwrap

    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
