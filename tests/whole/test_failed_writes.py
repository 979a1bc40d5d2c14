"""What becomes of each writer's run when the system refuses one of its calls, at any point?

It ends with an error, never by a signal, and the source is as it was; or its result is right.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sabotage import Done, Plan, Server, some
from tests.support.writers import REPACKING, WRITERS, contents, is_right, prepare

FAULTS = ("enospc", "enospc...", "short,eio...")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("failed")


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Server]:
    with Server("tests.support.writers", root) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", WRITERS)
def test_at_every_point(name: str, fault: str, server: Server, root: Path) -> None:
    if name == "to_netcdf":
        pytest.importorskip("xarray", reason="xarray is not installed")
    if name in ("to_netcdf", "to_hdf5"):
        pytest.importorskip("dask.array", reason="Dask is not installed")
    clean = _run(name, server, root, Plan())
    assert clean.code == 0, clean.err
    assert len(clean.calls) > 10
    wrong = []
    for call in some(clean.calls):
        done = _run(name, server, root, Plan(call.number, fault))
        said = f"{call.name} {call.number}: {done.code} {done.err.strip()[-200:]}"
        if done.crashed:
            wrong.append(f"crashed: {said}")
        elif done.code and not done.err.strip():
            wrong.append(f"without a word: {said}")
        elif done.code == 2 and "Traceback" in done.err:
            wrong.append(f"traceback: {said}")
    assert not wrong, "\n".join(wrong)


def _run(name: str, server: Server, root: Path, plan: Plan) -> Done:
    """Run a writer in a folder of its own, and look at what it has left."""
    folder = root / "run"
    folder.mkdir()
    try:
        prepare(name, folder)
        there = folder / "in.h5"
        before = there.read_bytes() if there.exists() else b""
        source = contents(there) if before else {}
        done = server.run(name, folder, plan)
        right = is_right(name, folder, source)
        if done.code == 0:
            assert right, f"{plan}: exit code 0, and the result is wrong"
        if WRITERS[name] in REPACKING:
            intact = there.read_bytes() == before
            assert intact or (right and name.endswith("in_place")), f"{plan}: the source is lost"
            if not name.endswith("in_place"):
                assert right or not (folder / "out.h5").exists(), f"{plan}: the result is wrong"
        return done
    finally:
        shutil.rmtree(folder)
