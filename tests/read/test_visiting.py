"""Do visits and members give the names, order and objects of h5py, opened or not?"""

from __future__ import annotations

import gc
import itertools
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5o
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise.errors import CannotJudgeError
from tests.support.wide import widen

KINDS = ("group", "dataset", "chunked", "type", "hard", "loop", "soft", "dangling", "external")
NAMES = st.one_of(
    st.sampled_from([b"a", b"b", b"c", b"B", b"a b", b"..", b"\xc3\xa4", b"\xff\xfe", b"a.b"]),
    st.binary(min_size=1, max_size=5).filter(lambda name: name != b"." and not {0, 47} & {*name}),
)
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), NAMES, st.integers(0, 50)), max_size=30)


def make(path: Path, steps: Any, **options: Any) -> None:
    """A file of any links and objects; what cannot be made is left out."""
    with h5py.File(path, "w", **options) as file:
        groups: list[Any] = [file]
        others: list[Any] = []
        for kind, name, number in steps:
            group = groups[number % len(groups)]
            if group.id.links.exists(name):
                continue
            target = [*groups, *others][number % (len(groups) + len(others))]
            if kind == "group":
                groups.append(group.create_group(name, track_order=bool(number % 2)))
            elif kind == "dataset":
                others.append(group.create_dataset(name, data=np.arange(number)))
            elif kind == "chunked":
                others.append(group.create_dataset(name, (9, number), "f4", chunks=True))
            elif kind == "type":
                group[name] = np.dtype([("x", "i4"), ("y", "f8")])
            elif kind in ("hard", "loop"):
                chosen = groups[number % len(groups)] if kind == "loop" else target
                h5o.link(chosen.id, group.id, name)
            elif kind == "external":
                group[name] = h5py.ExternalLink(path.name, "/a")
            else:
                group[name] = h5py.SoftLink("/a" if kind == "soft" else "/nowhere")


def said(one: Any) -> Any:
    """What there is to see of an object."""
    if one is None:
        return None
    if isinstance(one, h5py.Dataset):
        return (
            "dataset", one.shape, one.dtype, one.chunks, one.name, one.compression, one[()].sum(),
        )  # fmt: skip
    if isinstance(one, h5py.Group):
        return "group", sorted(map(str, one)), one.name
    return "type", one.dtype


def outcome(what: Callable[..., Any], *given: Any) -> Any:
    try:
        return what(*given)
    except Exception as error:
        return next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")


def visited(group: Any) -> list[Any]:
    found: list[Any] = []
    group.visititems(lambda name, one: found.append((name, said(one))))
    return found


def names(group: Any) -> list[Any]:
    found: list[Any] = []
    group.visit(found.append)
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=[*HealthCheck])
@given(STEPS, st.sampled_from([{}, {"libver": "latest"}, {"track_order": True}]))
def test_any_tree(tmp_path: Path, steps: Any, options: dict[str, Any]) -> None:
    path = tmp_path / "any.h5"
    make(path, steps, **options)
    with h5py.File(path) as theirs, chunkwise.open(path) as ours:
        inner: list[Any] = []
        theirs.visititems(
            lambda name, one: inner.append(name) if isinstance(one, h5py.Group) else None
        )
        for name in [None, *inner[:5]]:
            their, our = (file if name is None else file[name] for file in (theirs, ours))
            for what in (names, visited, values, items, list):
                assert outcome(what, our) == outcome(what, their)
            for asked in paths(steps):
                for look in (by_name, got):
                    assert outcome(look, our, asked) == outcome(look, their, asked)


def paths(steps: Any) -> set[bytes]:
    """Names of a group and from its top, some in other forms, and some of nothing."""
    found = {name for _, name, _ in steps}
    found |= {one + b"/" + other for one in found for other in sorted(found)[:3]}
    forms = (b"%s/", b"./%s", b"%s/.", b"//%s", b"%s//a", b"../%s", b"a/%s/b")
    others = {form % name for form in forms for name in sorted(found)[:4]}
    return found | {b"/" + name for name in found} | others | {b"", b"/", b".", b"no"}


def by_name(group: Any, name: bytes) -> Any:
    found = group[name]
    if not isinstance(found, h5py.Datatype):
        # Before it is opened, and again.
        assert isinstance(found, h5py.Dataset) is hasattr(found, "chunks")
        assert group[name] == found
    return said(found), found.name


def got(group: Any, name: bytes) -> Any:
    return said(group.get(name)), group.get(name, getclass=True) is None


def values(group: Any) -> list[Any]:
    return [said(one) for one in group.values()]


def items(group: Any) -> list[Any]:
    return [(name, said(one)) for name, one in group.items()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "a.h5"
    with h5py.File(made, "w") as file:
        for number in range(40):
            group = file.create_group(f"g{number:02d}")
            group["x"] = np.arange(number)
            group.create_dataset("y", data=np.ones((8, 8)), chunks=(4, 4), compression=3)
        file["twice"] = file["g07/x"]
    return made


def test_a_visit_ends_with_the_first_result(path: Path) -> None:
    with h5py.File(path) as theirs, chunkwise.open(path) as ours:
        for stop in ("g00", "g13/y", "g39/x"):
            for value in (0, False, "", stop):
                their = partial(until, stop, value, [])
                our = partial(until, stop, value, [])
                assert theirs.visit(their) is ours.visit(our) is value
                assert theirs.visititems(their) is ours.visititems(our) is value
                assert their.args == our.args


def until(stop: str, value: Any, seen: list[str], name: str, _: Any = None) -> Any:
    """A callable that ends a visit."""
    seen.append(name)
    return value if name == stop else None


def test_exceptions_come_through(path: Path) -> None:
    class OurError(Exception):
        pass

    def func(*_: Any) -> None:
        raise OurError

    with chunkwise.open(path) as file:
        for visit in (file.visit, file.visititems):
            with pytest.raises(OurError):
                visit(func)


def test_objects_by_name_are_opened_when_they_are_used(path: Path) -> None:
    with chunkwise.open(path) as file, h5py.File(path) as theirs:
        group = file["g07"]
        for found in (group["y"], file["g07/y"], file.get("/g07/y")):
            assert found is group["y"]
            assert found[2, 3] == 1
            assert (found[()] == theirs["g07/y"][()]).all()
            assert found._oid is None
        assert [each.upper() for each in group] == ["X", "Y"]
        assert group._oid is None
        # Two names of one dataset share what is known of it.
        assert file["twice"][3] == file["g07/x"][3] == 3
        assert file["twice"]._binding is file["g07/x"]._binding
        assert file["twice"]._oid is None
        assert file["twice"].name == "/twice"
        opened = chunkwise.Dataset(file["twice"].id)
        assert opened[3] == 3
        assert opened._bound() is file["twice"]._binding
        kept = file["g09/x"]
        assert kept[2] == 2
    assert not kept
    with pytest.raises(Exception, match="closed"):
        kept[2]


def test_a_large_group_is_searched(tmp_path: Path) -> None:
    for number, libver in enumerate(("earliest", "latest")):
        path = tmp_path / f"{number}.h5"
        names = [f"name {number * 7919 % 5000}" for number in range(5000)]
        with h5py.File(path, "w", libver=libver) as made:
            for place, name in enumerate(names):
                group = made.create_group(name)
                if place % 37 == 0:
                    group.attrs["place"] = place
            made["x"] = np.arange(200_000)
        with chunkwise.open(path) as file:
            for place in range(0, 5000, 37):
                group = file[names[place]]
                # libhdf5 keeps the names of an old group, which would be read each time.
                assert (group._oid is None) is (libver == "latest")
                assert group.attrs["place"] == place
            for name in ("name", "name 5000", "name 00", "a", "z", "name 1/x"):
                assert name not in file
                with pytest.raises(KeyError):
                    file[name]
            assert list(file) == sorted([*names, "x"])


def test_a_name_ends_with_a_zero(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as made:
        made["g/s/d"] = [5]
        made["g"].attrs["me"], made["g/s"].attrs["me"] = "g", "s"
    with chunkwise.open(path) as file, h5py.File(path) as theirs:
        for name in ("g\0zz", "g/s\0"):
            our, their = file[name], theirs[name]
            assert our.attrs["me"] == their.attrs["me"]
            assert list(our) == list(their)
            assert [said(one) for one in our.values()] == [said(one) for one in their.values()]
        assert file["g\0zz"]["s"].attrs["me"] == "s"
        assert file["g\0zz"]["s/d"].shape == (1,)


def test_a_file_closed_past_us_ends_what_was_not_opened(path: Path) -> None:
    file, theirs = chunkwise.open(path), h5py.File(path)
    x, their = file["g05/x"], theirs["g05/x"]
    for one in (file, theirs):
        h5py.File(one.id).close()
    looks: list[Callable[[Any], Any]] = [
        lambda one: one.name,
        lambda one: one.shape,
        lambda one: one.id.valid,
        lambda one: bool(one),
        hash,
    ]
    for look in looks:
        assert outcome(look, x) == outcome(look, their)
    with pytest.raises(RuntimeError, match="closed"):
        x[()]


def test_an_object_of_a_parked_file_has_the_address_of_the_file_opened_again(path: Path) -> None:
    with chunkwise.open(path) as file:
        x = file["g05/x"]
        file._home.park()
        address = x._address()
        assert address[:2] == file._home.number
        assert address == file["g05/x"]._address()


def test_a_node_with_one_bad_entry_is_left_to_libhdf5(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as made:
        made["a"] = made["b"] = np.arange(3)
    content = bytearray(path.read_bytes())
    second = content.index(b"SNOD") + 8 + 40
    content[second + 16] = 7
    path.write_bytes(content)
    with chunkwise.open(path) as file, h5py.File(path) as theirs:
        assert file.get("a") is theirs.get("a") is None
        with pytest.raises(CannotJudgeError, match=r"'/a': HDF5 .* cannot open it"):
            _ = file["a"]


def test_objects_are_opened_when_they_are_used(path: Path) -> None:
    with chunkwise.open(path) as file:
        found: dict[str, Any] = {}
        file.visititems(found.__setitem__)
        assert all(one._oid is None for one in found.values())
        x, group = found["g05/x"], found["g05"]
        assert x is file["g05/x"]
        assert group == file["g05"] != found["g06"]
        assert x == group["x"] != found["g05/y"]
        assert hash(x) == hash(file.h5py["g05/x"])
        assert found["g05/y"].compression_opts == 3
        assert found["g06/y"]._dxpl is not None
        assert x.attrs.keys() == set()
        assert pickle.loads(pickle.dumps(found["g07/y"]))[0, 0] == 1
        assert found["g08"].parent == file
        assert found["g08/x"].file == file
        assert repr(found["g09/x"]) == repr(file["g09/x"])
        with pytest.raises(AttributeError, match="_local_of_nobody"):
            _ = x._local_of_nobody
        other = found["g10/x"]
        assert other
    assert not other
    assert not found["g11"]
    with pytest.raises(Exception, match=r"[Nn]ot a|[Ii]nvalid|closed"):
        found["g12/y"][0, 0]


def test_members_are_the_same_objects(path: Path) -> None:
    with chunkwise.open(path) as file:
        group = file["g03"]
        assert [one is group[name] for name, one in group.items()] == [True, True]
        assert group["y"] in group.values()
        assert ("y", group["y"]) in group.items()
        assert list(reversed(group.values())) == [group["y"], group["x"]]
        assert len(group.values()) == 2


def test_what_is_written_is_visited(path: Path) -> None:
    with chunkwise.open(path, "r+") as file:
        file["new/deep"] = np.arange(3)
        found = names(file)
        assert "new/deep" in found
        assert dict(file.items())["new"]["deep"][2] == 2


def test_a_visit_of_a_closed_file(path: Path) -> None:
    with h5py.File(path) as theirs, chunkwise.open(path) as ours:
        pass
    assert outcome(ours.visit, print) == outcome(theirs.visit, print)
    assert outcome(ours.visititems, print) == outcome(theirs.visititems, print)


def test_a_file_that_is_closed_meanwhile(path: Path) -> None:
    with chunkwise.open(path) as file:
        seen = itertools.count()

        def func(*_: Any) -> None:
            if next(seen) == 3:
                file.close()

        assert outcome(file.visititems, func) in (KeyError, ValueError, RuntimeError)


def test_objects_outlive_a_parked_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chunkwise.handles.handle.most_open", lambda: 1)
    with chunkwise.open(path) as file:
        found: dict[str, Any] = {}
        file.visititems(found.__setitem__)
        with chunkwise.open(path):
            gc.collect()
        assert found["g20/x"][()].sum() == np.arange(20).sum()


def test_what_this_hdf5_refuses(tmp_path: Path) -> None:
    wide = tmp_path / "wide.h5"
    with h5py.File(wide, "w", libver="latest") as stream:
        for name in "abc":
            made = stream.create_dataset(f"g/{name}", data=np.arange(30), chunks=(7,))
            made.attrs["room"] = "x" * 90
            del made.attrs["room"]
    assert widen(wide) == 3
    with chunkwise.open(wide) as file:
        found: dict[str, Any] = {}
        file.visititems(found.__setitem__)
        assert found
        assert all(said(one) for one in found.values())
