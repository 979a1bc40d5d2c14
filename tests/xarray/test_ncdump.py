"""Is a netCDF-4 file what ``ncdump -h`` says: its names, dimensions, types and attributes?"""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.netcdf_cases import CASES
from tests.support.tools import require_tool

pytest.importorskip("netCDF4", reason="netCDF4 is not installed")
pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")

import netCDF4

from chunkwise.xarray.native import NativeFile
from chunkwise.xarray.opened import SharedFile
from tests.xarray.test_native import OPTIONS, fill_netcdf, read_natively

# Types by what ncdump calls them, and those of numbers by what follows them.
TYPES = {
    **{"byte": "i1", "ubyte": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"},
    **{"int64": "i8", "uint64": "u8", "float": "f4", "double": "f8", "char": "S1"},
}
SUFFIXES = {"b": "i1", "ub": "u1", "s": "i2", "us": "u2", "": "i4", "u": "u4"} | {
    **{"ll": "i8", "ull": "u8", "f": "f4"}
}
TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|//[^\n]*|group: *(?P<group>\S+) *\{|\}|;|'
    r"(?P<part>dimensions|variables|types):(?=\s*\n)|"
    r"""(?:[^\s;"}/\\]|\\.|/(?!/))+""",
    re.DOTALL,
)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "b": "\b", "a": "\a"}
# Neither spaces nor control characters, of which ncdump makes what cannot be told from others.
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=8)

Said = dict[str, Any]


def text_of(quoted: str) -> str:
    return re.sub(r"\\(.)", lambda one: ESCAPES.get(one[1], one[1]), quoted[1:-1])


def value_of(words: list[str]) -> Any:
    """An attribute: a text, or its numbers in one array."""
    if not words or words[0].startswith('"'):
        return "".join(text_of(one) for one in words if one.startswith('"'))
    found = []
    for word in "".join(words).split(","):
        number = re.fullmatch(r"(-?(?:\d[\d.]*(?:e[-+]?\d+)?|Infinity|NaN))([a-z]*)", word, re.I)
        assert number is not None, word
        kind = SUFFIXES[number[2].lower()]
        if kind == "i4" and not number[1].lstrip("-").isdigit():
            kind = "f8"
        found.append(np.dtype(kind).type(number[1]))
    return np.array(found)


def of_ncdump(path: Path) -> dict[str, Said]:
    """What it says of each group."""
    done = subprocess.run([require_tool("ncdump"), "-h", path], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    text = done.stdout.partition("{\n")[2]
    where, part, words = ["/"], "", list[str]()
    said: dict[str, Said] = {}

    def here() -> Said:
        return said.setdefault(where[-1], {"dimensions": {}, "variables": {}, "attributes": {}})

    here()
    for token in TOKEN.finditer(text):
        word = token[0]
        if token["group"]:
            where.append(f"{where[-1].rstrip('/')}/{plain(token['group'])}")
            here()
        elif token["part"]:
            part = token["part"]
        elif word == "}":
            where.pop()
        elif word.startswith("//"):
            continue
        elif word == ";":
            statement(here(), part, words)
            words = []
        else:
            words.append(word)
    return said


def plain(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def statement(said: Said, part: str, words: list[str]) -> None:
    if "=" in words and (":" in words[0] or ":" in words[1]):
        # Of text, it says the type first where that is of variable length.
        owner, _, name = next(one for one in words[:2] if ":" in one).rpartition(":")
        holder = said["variables"][plain(owner)]["attributes"] if owner else said["attributes"]
        holder[plain(name)] = value_of(words[words.index("=") + 1 :])
    elif part == "dimensions":
        said["dimensions"][plain(words[0])] = None if words[2] == "UNLIMITED" else int(words[2])
    else:
        kind, *rest = words
        found = re.fullmatch(r"((?:[^\\(]|\\.)+)(?:\((.*)\))?", " ".join(rest))
        assert found is not None, rest
        name, dimensions = found[1], found[2] or ""
        names = tuple(plain(one.strip()) for one in dimensions.split(",") if one.strip())
        said["variables"][plain(name)] = {"kind": kind, "dimensions": names, "attributes": {}}


def of_ours(native: NativeFile) -> dict[str, Said]:
    said: dict[str, Said] = {}

    def below(path: str) -> None:
        group = native.group(path)
        variables = {
            name: {
                "kind": kind_of(one.dtype),
                "dimensions": one.dimensions,
                "attributes": {key: plain_value(value) for key, value in one.attributes.items()},
            }
            for name, one in group.variables.items()
        }
        said[path] = {
            "dimensions": {
                name: None if one.is_unlimited else one.size
                for name, one in group.dimensions.items()
            },
            "variables": variables,
            "attributes": {key: plain_value(value) for key, value in group.attributes.items()},
        }
        for name in group.groups:
            below(f"{path.rstrip('/')}/{name}")

    below("/")
    return said


def kind_of(dtype: np.dtype[Any]) -> str:
    names = {kind: name for name, kind in TYPES.items()}
    return "string" if dtype.kind == "O" else names[dtype.newbyteorder("=").str[1:]]


def plain_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    found = np.asarray(value)
    if found.dtype.kind in "OUS":
        return "".join(one.decode() if isinstance(one, bytes) else str(one) for one in found.flat)
    # Nothing says of which type an empty one is.
    return np.atleast_1d(found) if found.size else ""


def require_same(ours: Any, theirs: Any, where: str = "") -> None:
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), where
        for key, value in theirs.items():
            require_same(ours[key], value, f"{where} {key}")
    elif isinstance(theirs, np.ndarray):
        assert isinstance(ours, np.ndarray), where
        assert ours.dtype.newbyteorder("=") == theirs.dtype, where
        # Some digits are all that it says.
        close = 1e-6 if theirs.dtype == "f4" else 1e-14
        assert np.allclose(ours, theirs, rtol=close, atol=0, equal_nan=True), where
    else:
        assert ours == theirs, where


def compare(path: Path) -> None:
    theirs = of_ncdump(path)
    source = SharedFile(str(path), OPTIONS, {})
    try:
        require_same(of_ours(read_natively(source)), theirs)
    finally:
        source.close()


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_file_of_netcdf(data: st.DataObject) -> None:
    require_tool("ncdump")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.nc"
        with netCDF4.Dataset(path, "w") as file:
            fill_netcdf(data.draw, file, TEXT)
        compare(path)


@pytest.mark.parametrize("name", CASES)
def test_what_xarray_writes(name: str, tmp_path: Path) -> None:
    make, options = CASES[name]
    if "netcdf4" not in options.get("engines", ["netcdf4"]):
        pytest.skip("netCDF-C does not write it")
    path = tmp_path / "a.nc"
    make().to_netcdf(path, engine="netcdf4", encoding=options.get("encoding", {}))
    compare(path)
