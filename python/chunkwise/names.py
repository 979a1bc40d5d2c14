"""How are names and messages of HDF5 turned into text, and back?

A name may hold bytes that are not UTF-8, control sequences, or marks that turn the reading
direction; a URL a password.  For a person: `printable`, of a URL alone `shown_url`; in a line to
paste: `shell_word` or `python_text`.
"""

from __future__ import annotations

import os
import re
import reprlib
from typing import Any

# What h5py's low-level calls raise on a damaged or unsupported object.
HDF5_ERRORS = (KeyError, OSError, RuntimeError, TypeError, ValueError, NotImplementedError)

# What HDF5 2.0 says of lengths of chunks that take more bytes than they need.
WIDE_LENGTHS = "stored chunk dimension encoding length does not match"


def said_wide(error: BaseException) -> BaseException:
    """The same error, which says what to do."""
    said = str(error.args[0]) if error.args else ""
    return type(error)(
        f"{said}: this HDF5 refuses lengths of chunks in more bytes than they need, which the "
        "format allows; open the file with chunkwise.open, or make a copy that all open: "
        "chunkwise repack"
    )


_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*(://|::)")
# Between the parts of a chain, and not within an address such as ``[::1]``.
_BETWEEN = re.compile(r"::(?=[A-Za-z][A-Za-z0-9+.\-]*(?:://|::))")
# Within a text: also percent-encoded in another URL, in JSON, and as a path, which has one slash.
_STORES = r"(?:https?|s3a?|gc?s|abfss?|az|ftps?|sftp|hdfs|webhdfs)"
_AUTHORITY = re.compile(r"://|%3[Aa]%2[Ff]%2[Ff]|:\\/\\/|(?<=[a-z3]):/(?!/)")
_IN_TEXT = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.\-]*(?:://|%3[Aa]%2[Ff]%2[Ff]|:\\/\\/)"
    rf"|\b{_STORES}:/(?!/))\S*"
)
_QUICK = re.compile(r":\\?/|%3[Aa]%2[Ff]")
_ASKS = re.compile(r"[?#]|%3[Ff]|%23")
_PATH = re.compile(r"/|%2[Ff]|\\/")
_AT = ("@", "%40")
_LAST_AT = re.compile(r".*(?:@|%40)")
_AFTER = "\"'`),;:]}>\\"
# A colon that no port number follows: it belongs to a password with a slash.
_NO_PORT = re.compile(r"^[^\[\]]*:(?!\d*$)")
_SPACE = re.compile(r"\s")
_SHELL_SPECIAL = "'\\"
_SYSTEM_MESSAGE = re.compile(r"error message = '([^']*)'")
# What HDF5's own descriptions begin with; h5py's and NumPy's messages hold other parentheses.
_H5PY_MESSAGE = re.compile(
    r"(?:\[Errno -?\d+\] )?"
    r"(?:Unable to|Can't|Cannot|Unspecified error|Not an?|Invalid|Inappropriate)\b[^(]* "
    r"\((?P<reason>.*[a-z]{2}.*)\)",
    re.DOTALL,
)


def decode_name(name: bytes) -> str:
    """Decode a link's name; bytes that are not UTF-8 survive a round trip."""
    return name.decode("utf-8", "surrogateescape")


def encode_name(name: str) -> bytes:
    """Undo `decode_name`."""
    return name.encode("utf-8", "surrogateescape")


def printable(text: str) -> str:
    r"""Escape what would break a line, disturb a terminal or hide from the reader.

    These are, by Unicode's categories, controls (C0, C1, DEL), marks of format (reading
    direction, zero width), separators other than the space, surrogates, and what is of
    private use or unassigned.  Letters of all scripts, accents and emoji stay.  What is
    escaped already stays as it is.  URLs are `without_secrets`.

    >>> printable("température 温度"), printable("a\x9b31m\u202eb")
    ('température 温度', 'a\\x9b31m\\u202eb')
    >>> printable("'https://me:secret@host/a.nc?signature=secret': no such object")
    "'https://host/a.nc?...': no such object"
    """
    text = without_secrets(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def printable_lines(text: str) -> str:
    """Escape as `printable` does, and keep the ends of lines."""
    return "\n".join(map(printable, text.split("\n")))


def is_url(name: object) -> bool:
    """Whether a name is a URL for fsspec, and no file here."""
    return (
        isinstance(name, str)
        and ":" in name
        and _URL.match(name) is not None
        and not os.path.lexists(name)
    )


def parts_of_url(url: str) -> list[str]:
    """The parts of a chained URL; of another one, itself."""
    return _BETWEEN.split(url)


def shown_url(url: str) -> str:
    """A URL without what must not get into messages: passwords, signatures.

    >>> shown_url("simplecache::https://me:secret@host/a.nc?signature=a secret")
    'simplecache::https://host/a.nc?...'
    """
    # In a text, a space would end it.
    return printable(_SPACE.sub("%20", url))


def without_secrets(text: str) -> str:
    """A text in which URLs have no passwords, and nothing behind ``?`` or ``#``."""
    if not _QUICK.search(text):
        return text
    return _IN_TEXT.sub(lambda found: _without_secrets(found[0]), text)


def _without_secrets(url: str) -> str:
    end = _ASKS.search(url)
    known, query = (url[: end.start()], url[end.start() :]) if end else (url, "")
    *others, last = parts_of_url(known)
    found = [_without_owner(part) for part in others]
    # What looks like a question may be a part of a password.
    mark = _AUTHORITY.search(last)
    in_host = mark is not None and not _PATH.search(last[mark.end() :])
    owned = in_host and any(one in query for one in _AT)
    found.append(f"{last[: mark.end()]}..." if mark and owned else _without_owner(last))
    behind = f"{end[0]}...{_after(query[len(end[0]) :])}" if end else ""
    return "::".join(found) + behind


def _without_owner(part: str) -> str:
    mark = _AUTHORITY.search(part)
    if mark is None:
        return part
    head, rest = part[: mark.end()], part[mark.end() :]
    path = _PATH.search(rest)
    host, rest = (rest[: path.start()], rest[path.start() :]) if path else (rest, "")
    after = "" if rest else _after(host)
    host = _LAST_AT.sub("", host.removesuffix(after))
    if _NO_PORT.search(host):
        return f"{head}...{after}"
    # Another URL may be in it.
    return f"{head}{host}{after}{_without_owner(rest)}"


def _after(url: str) -> str:
    """Return what ends a URL in a sentence, a list or a call."""
    return url[len(url.rstrip(_AFTER)) :]


def hidden(value: Any) -> Any:
    """Plain data for JSON, whose texts are `without_secrets`."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, dict):
        return {hidden(name): hidden(one) for name, one in value.items()}
    return [hidden(one) for one in value] if isinstance(value, list | tuple) else value


def shell_word(word: str) -> str:
    r"""Quote a word for bash, so that it prints, and is exactly this word when pasted.

    >>> shell_word("a b.h5"), shell_word("a\x9bb")
    ("'a b.h5'", "$'a\\302\\233b'")
    """
    if word.isprintable():
        import shlex

        return shlex.quote(word)
    return f"$'{octal(word, _SHELL_SPECIAL)}'"


def shell_line(*words: str) -> str:
    """Quote words for bash, and join them to a line."""
    return " ".join(map(shell_word, words))


def octal(text: str, special: str) -> str:
    """Escape bytes that do not print, and `special` characters, as bash and C read them."""
    return "".join(
        c if c.isprintable() and c not in special else "".join(f"\\{b:03o}" for b in _raw(c))
        for c in text
    )


def _raw(character: str) -> bytes:
    try:
        return encode_name(character)
    except UnicodeEncodeError:  # half a pair, which no name of a file can hold
        return character.encode("utf-8", "surrogatepass")


def python_text(text: str) -> str:
    r"""Write a string of Python's that prints, in double quotes.

    >>> python_text('t"\x9b')
    '"t\\"\\x9b"'
    """
    inner = "".join(f"\\{c}" if c in '"\\' else printable(c) for c in text)
    return f'"{inner}"'


def json_text(value: Any, indent: int | None = None) -> str:
    """Write a value as JSON, in ASCII that prints: Python escapes all controls but DEL."""
    import json

    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")


def hdf5_reason(error: BaseException) -> str:
    """Reduce an error of h5py's to the one line that says what is wrong."""
    # HDF5's innermost message in h5py: ``Unable to ... open file (file signature not found)``.
    text = str(error.args[-1]) if error.args else type(error).__name__
    match = _H5PY_MESSAGE.fullmatch(text)
    reduced = match is not None and _is_closed(match["reason"])
    return printable(" ".join((match["reason"] if match and reduced else text).split()))


def _is_closed(text: str) -> bool:
    """Return whether each parenthesis of a text that closes was opened in it."""
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return True


def system_reason(error: BaseException) -> str | None:
    """Say what the system said, without HDF5's words around it; None if it said nothing."""
    number = getattr(error, "errno", None)
    if number:
        return os.strerror(number)
    found = _SYSTEM_MESSAGE.search(str(error))
    return found[1] if found else None


# Even a list of a million numbers gets one line.
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def shown(value: Any) -> str:
    """Spell a value that was given, however large it is, within a message."""
    return printable(" ".join(_SHORT.repr(value).split()))
