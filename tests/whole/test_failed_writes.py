"""What becomes of each writer's run when one of its calls goes wrong, at any point?

It ends with an error, never by a signal, and the source is as it was; or its result is right.
"""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.sabotage import WITH_DATA, Done, Plan, Server, some
from tests.support.writers import IN_PLACE, REPACKING, WRITERS, contents, is_right, prepare

REFUSED = ("enospc", "enospc...", "short,eio...")
# What the system does not tell, or tells late: the proof finds it.
SILENT = ("flip", "drop", "late")
PROVED = ("repack", "repack_in_place", "fix")
CASES = [(name, fault) for name in WRITERS for fault in REFUSED]
CASES += [(name, fault) for name in PROVED for fault in SILENT]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("failed")


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Server]:
    with Server("tests.support.writers", root) as made:
        yield made


@pytest.fixture(scope="module")
def clean() -> dict[str, Done]:
    """Runs of which nothing went wrong, by their writers."""
    return {}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fault"), CASES)
def test_at_every_point(
    name: str, fault: str, server: Server, root: Path, clean: dict[str, Done]
) -> None:
    if name == "to_netcdf":
        pytest.importorskip("xarray", reason="xarray is not installed")
    if name in ("to_netcdf", "to_hdf5"):
        pytest.importorskip("dask.array", reason="Dask is not installed")
    run = partial(_run, name, server, root)
    done = clean.get(name) or clean.setdefault(name, run(Plan()))
    assert done.code == 0, done.err
    assert len(done.calls) > 10
    if name in REPACKING:
        assert {"pwrite", "fsync"} <= {call.name for call in done.calls}
    wrong, struck = [], 0
    for call in some([one for one in done.calls if fault != "flip" or one.name in WITH_DATA]):
        done = run(Plan(call.number, fault))
        struck += bool(done.struck)
        said = f"{call.name} {call.number}: {done.code} {done.err.strip()[-200:]}"
        if done.crashed:
            wrong.append(f"crashed: {said}")
        elif done.code and not done.err.strip():
            wrong.append(f"without a word: {said}")
        elif done.code == 2 and "Traceback" in done.err:
            wrong.append(f"traceback: {said}")
    assert not wrong, "\n".join(wrong)
    assert struck > 3


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
        if name in REPACKING:
            intact = there.read_bytes() == before
            assert intact or (right and name in IN_PLACE), f"{plan}: the source is lost"
            if name not in IN_PLACE:
                assert right or not (folder / "out.h5").exists(), f"{plan}: the result is wrong"
        return done
    finally:
        shutil.rmtree(folder)
