"""Do crates know only what they may, and do no two files of a crate need each other?

Read are the sources alone: `use` statements and paths, without comments and tests.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve()
while not (ROOT / "Cargo.toml").exists():
    ROOT = ROOT.parent
CRATES = sorted(path.parent for path in ROOT.glob("crates/*/Cargo.toml"))

PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")
REEXPORT = re.compile(r"\bpub(?:\([^)]*\))?\s+use\s+([^;]+);")
USE = re.compile(r"(?<!pub )(?<!\) )\buse\s+([^;]+);")
MODULE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+);", re.MULTILINE)
# Which file a module is, where systems have one each.
PLACED = re.compile(r'#\[path = "([^"]+)"\]\s*mod\s+(\w+);')
TEST_MODULE = re.compile(
    r"#\[cfg\(test\)\]\s*(?:#\[[^]]*\]\s*)*(?:pub\([^)]*\)\s+)?mod\s+(\w+)\s*(;|\{)"
)


def code(text: str) -> str:
    """Source without comments, strings and tests (which are last in a file)."""
    text = re.sub(r'b?"(?:[^"\\]|\\.)*"', '""', text)
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    for found in TEST_MODULE.finditer(text):
        if found.group(2) == "{":
            return text[: found.start()]
    return TEST_MODULE.sub("", text)


def leaves(tree: str) -> Iterator[tuple[str, str]]:
    """Full paths of a `use`, each with the name that it has here."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        path, _, renamed = tree.partition(" as ")
        path = path.strip()
        if path.endswith("::self"):
            path = path[: -len("::self")]
        yield path, renamed.strip() or path.rsplit("::", 1)[-1]
        return
    prefix, inside = tree[:brace], tree[brace + 1 : tree.rindex("}")]
    depth, start = 0, 0
    for at, character in enumerate(inside + ","):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            if inside[start:at].strip():
                yield from leaves(prefix + inside[start:at].strip())
            start = at + 1


class Crate:
    """The modules of a crate, by path; the root is ()."""

    def __init__(self, root: Path) -> None:
        self.text: dict[tuple[str, ...], str] = {}
        self._read(root / "src", root / "src" / "lib.rs", ())
        self.reexports = {
            module: {name: path for tree in REEXPORT.findall(text) for path, name in leaves(tree)}
            for module, text in self.text.items()
        }

    def _read(self, folder: Path, file: Path, module: tuple[str, ...]) -> None:
        whole = file.read_text()
        text = self.text[module] = self.text.get(module, "") + code(whole)
        placed = PLACED.findall(whole)
        for name, child in placed:
            self._read(folder / child, file.parent / name, (*module, child))
        for child in set(MODULE.findall(text)) - {child for _, child in placed}:
            inside = folder / child
            single = folder / f"{child}.rs"
            self._read(inside, single if single.exists() else inside / "mod.rs", (*module, child))

    def absolute(self, path: str, module: tuple[str, ...]) -> tuple[str, ...] | None:
        """A path as seen from a module; None for one of another crate."""
        first, *rest = path.split("::")
        if first == "crate":
            return tuple(rest)
        if first == "self":
            return (*module, *rest)
        if first == "super":
            base = module
            names = [first, *rest]
            while names and names[0] == "super":
                base, names = base[:-1], names[1:]
            return (*base, *names)
        return (*module, first, *rest) if (*module, first) in self.text else None

    def home(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """The module whose file defines what a path leads to."""
        module: tuple[str, ...] = ()
        for at, name in enumerate(path):
            if (*module, name) in self.text:
                module = (*module, name)
                continue
            given = self.reexports[module].get(name)
            leads = None if given is None else self.absolute(given, module)
            return module if leads is None else self.home((*leads, *path[at + 1 :]))
        return module

    def needs(self, module: tuple[str, ...]) -> set[tuple[str, ...]]:
        """The modules whose files this one names something of."""
        text = REEXPORT.sub("", self.text[module])
        paths = {path for tree in USE.findall(text) for path, _ in leaves(tree)}
        rest = USE.sub("", text)
        paths |= set(PATH.findall(rest))
        children = "|".join(key[-1] for key in self.text if key and key[:-1] == module)
        if children:
            paths |= set(re.findall(rf"(?<![\w:])(?:{children})(?:::\w+)+", rest))
        found = (self.absolute(path, module) for path in paths)
        return {self.home(path) for path in found if path is not None} - {module}


def circles(arrows: dict[tuple[str, ...], set[tuple[str, ...]]]) -> list[list[str]]:
    """Groups of modules that all lead to each other."""

    def reached(start: tuple[str, ...]) -> set[tuple[str, ...]]:
        seen: set[tuple[str, ...]] = set()
        waiting = [start]
        while waiting:
            for other in arrows[waiting.pop()] - seen:
                seen.add(other)
                waiting.append(other)
        return seen

    all_reached = {module: reached(module) for module in arrows}
    groups = {
        tuple(sorted(other for other in seen if module in all_reached[other]))
        for module, seen in all_reached.items()
        if module in seen
    }
    return sorted(["::".join(module) or "lib" for module in group] for group in groups)


@pytest.mark.parametrize("root", CRATES, ids=lambda root: root.name)
def test_no_two_files_of_a_crate_need_each_other(root: Path) -> None:
    crate = Crate(root)
    assert len(crate.text) > 1 or root.name in {"chunkwise-isal", "chunkwise-loader"}
    assert circles({module: crate.needs(module) for module in crate.text}) == []


def allowed() -> dict[str, set[str]]:
    """Of each crate those that it may use, as `docs/architecture.md` says."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `chunkwise-(\w+)` \|(.*)\|$", text, re.MULTILINE)
    return {crate: set(re.findall(r"`(\w+)`", uses)) for crate, uses in rows}


def test_each_crate_uses_what_it_may() -> None:
    uses = {}
    for root in CRATES:
        manifest = (root / "Cargo.toml").read_text()
        section = manifest.partition("\n[dependencies]\n")[2].partition("\n[")[0]
        named = re.findall(r"^chunkwise-(\w+)\b", section, re.MULTILINE)
        uses[root.name.removeprefix("chunkwise-")] = set(named)
    assert uses == allowed()


# What asks which system it is compiled for, or calls it.  Processors may be asked for anywhere.
SYSTEM = re.compile(
    r"cfg\w*!?\([^\]]*\b(?:unix|windows|target_(?:os|env|family|vendor))\b|\bstd::os::"
)


def test_only_one_place_asks_which_system_it_is_on() -> None:
    asking = {
        (root.name, *module[:1])
        for root in CRATES
        # All of what stands between programs and their HDF5 is for Linux.
        if root.name not in ("chunkwise-loader", "chunkwise-preload")
        for module, text in Crate(root).text.items()
        if SYSTEM.search(text)
    }
    assert asking == {("chunkwise-engine", "platform")}


def test_a_circle_is_found_wherever_its_names_come_from(tmp_path: Path) -> None:
    sources = {
        "lib.rs": "mod a;\nmod b;\nmod c;\npub use b::{B, C as D};\n",
        "a.rs": "use crate::{D, c};\npub struct A; // crate::lonely\n",
        "b.rs": "mod inner;\npub use self::inner::C;\npub struct B;\n",
        "b/inner.rs": 'pub struct C(super::B, "crate::c::E");\n',
        "c.rs": "fn f() { crate::a::g() }\n#[cfg(test)]\nmod tests { use crate::B; }\n",
    }
    for name, text in sources.items():
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_text(text)
    crate = Crate(tmp_path)
    assert crate.needs(("a",)) == {("b", "inner"), ("c",)}
    assert crate.needs(("b", "inner")) == {("b",)}
    assert circles({module: crate.needs(module) for module in crate.text}) == [["a", "c"]]
