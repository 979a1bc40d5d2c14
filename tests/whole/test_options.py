"""Do options that several commands have mean the same in each, and are former spellings taken?"""

import sys
from pathlib import Path

import click
import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.cli.main import COMMANDS, OF_THE_LAB, cli
from chunkwise.cli.values import shapes_listed
from chunkwise.errors import ChunkwiseError
from chunkwise.model.readability import PROGRAM_NAMES
from chunkwise.model.readers import reader
from chunkwise.viewing.costs import Tried
from chunkwise.viewing.session import Session
from tests.support.patience import patient_trials

__all__ = ["patient_trials"]
SHAPE = 40, 100, 100


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        d = file.create_dataset(
            "t", data=np.arange(400_000, dtype="i4").reshape(SHAPE), chunks=(1, 10, 10)
        )
        for axis, name in enumerate(("time", "lat", "lon")):
            file[name] = np.arange(SHAPE[axis])
            file[name].make_scale(name)
            d.dims[axis].attach_scale(file[name])
    return path


def run(*words: object) -> Result:
    result = CliRunner().invoke(cli, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def chunks(path: Path, name: str = "t") -> tuple[int, ...]:
    with h5py.File(path) as file:
        found: tuple[int, ...] = file[name].chunks
        return found


@pytest.mark.parametrize("command", ["repack", "fix"])
@pytest.mark.parametrize("way", ["{}", "-o {}", "--output {}", "--output={}", "--out {}"])
def test_a_result_is_named_in_each_way(source: Path, command: str, way: str) -> None:
    out = source.with_name("out.h5")
    more = (
        ["--chunk", "t:5x5x5"] if command == "repack" else ["--no-measure", "--access", "line:0"]
    )
    result = run(command, source, *way.format(out).split(), *more)
    assert out.exists()
    assert chunks(out) != chunks(source)
    assert ("--out is now --output" in result.stderr) == ("--out " in way)
    # Given twice, it is no name of a second file.
    with pytest.raises(ChunkwiseError, match="exists already"):
        run(command, source, *way.format(out).split(), *more)


@pytest.mark.parametrize("command", ["repack", "fix"])
def test_results_of_folders_and_several_files_go_into_a_folder(
    source: Path, tmp_path: Path, command: str
) -> None:
    folder, packed = tmp_path / "a", tmp_path / "packed"
    folder.mkdir()
    source.rename(folder / "x.h5")
    more = (
        ["--chunk", "t:5x5x5"] if command == "repack" else ["--no-measure", "--access", "line:0"]
    )
    run(command, folder, packed, *more)
    assert chunks(packed / "x.h5") != chunks(folder / "x.h5")
    run(command, folder / "x.h5", "-o", f"{tmp_path}/new/", *more)
    assert chunks(tmp_path / "new" / "x.h5") == chunks(packed / "x.h5")


def test_former_spellings_say_the_new_one(source: Path, tmp_path: Path) -> None:
    result = run("bench", source, "t", "--access", "all", "--seconds", "1s", "--json")
    assert "--seconds is now --budget" in result.stderr
    for former in ("--cache", "--memory"):
        result = run("run", "--env", former, "3MiB")
        assert f"{former} is now --keep" in result.stderr
        assert "CHUNKWISE_CACHE_NBYTES=3145728" in result.stdout
    result = run("bench", source, "t", "--access", "all", "--budget", "1s", "--library", "default")
    assert "--library is now --libhdf5" in result.stderr
    result = run("inspect", source, "t", "--fixes", "NetCDF4", "--no-sample")
    assert "--fixes is now --tool" in result.stderr
    for words in (("view", source, "--save", "x.txt"), ("inspect", source, "--html", "x.txt")):
        refused = CliRunner().invoke(cli, [str(word) for word in words])
        assert f"{words[2]} is now --output" in refused.stderr
    result = run("run", "--env", "--cache", "3MiB", "--keep", "4MiB")
    assert "CHUNKWISE_CACHE_NBYTES=4194304" in result.stdout
    program = [sys.executable, "-c", "import sys; assert sys.argv[1:] == ['--out', 'x']"]
    # What a program is given is not ours.
    result = run("trace", "-o", tmp_path / "t.json", "--", *program, "--out", "x")
    assert result.exit_code == 0
    assert "is now" not in result.stderr


@pytest.mark.parametrize(
    ("typed", "offered"), [("--sav", "'--output'"), ("--colou", "'--colour'")]
)
def test_a_wrong_option_is_answered_by_present_spellings(typed: str, offered: str) -> None:
    refused = CliRunner().invoke(cli, ["view", typed, "x"])
    assert refused.exit_code == 2
    assert offered in refused.stderr
    assert "'--save'" not in refused.stderr


def test_each_option_has_one_meaning_in_all_commands() -> None:
    spelled: dict[str, set[str | None]] = {}
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        for param in command.params:
            for word in param.opts if isinstance(param, click.Option) else ():
                spelled.setdefault(word, set()).add(name)
    of_product = {name for name in COMMANDS if name not in OF_THE_LAB}
    assert not spelled.get("--out")
    assert not spelled.get("--library")
    assert not spelled.get("--seconds", set()) & of_product
    writers = {"repack", "fix", "trace", "index", "view", "inspect", "sample"}
    assert spelled["-o"] == spelled["--output"] >= writers
    # libhdf5's chunk cache, the memory of this process, and decoded chunks are three things.
    assert spelled["--cache"] == {"bench", "view"}
    assert spelled["--memory"] == {"repack", "fix"}
    assert spelled["--keep"] == {"run"}
    assert spelled["--tool"] == {"inspect", "advise"}
    assert spelled["--for"] >= {"inspect", "advise", "fix", "repack"}


def test_each_program_is_a_reader() -> None:
    for name in PROGRAM_NAMES:
        found = reader(name)
        assert found.name == name
        assert found.cache_nbytes > 0
    assert reader("libhdf5-1.14").cache_nbytes == 1 << 20
    assert "with the chunk cache of" in reader("jhdf").title


@pytest.mark.parametrize("command", ["inspect", "advise", "fix", "repack"])
def test_an_unknown_program_is_refused_with_the_list(source: Path, command: str) -> None:
    with pytest.raises(ChunkwiseError) as wrong:
        run(command, source, "--for", "excel")
    assert "\n" not in str(wrong.value)
    assert all(name in str(wrong.value) for name in PROGRAM_NAMES)


@pytest.mark.parametrize("program", ["libhdf5-1.12", "matlab", "chunkwise"])
def test_inspect_judges_for_any_program(source: Path, program: str) -> None:
    assert run("inspect", source, "t", "--for", program).exit_code == 0


# --- names of dimensions ----------------------------------------------------------------


def test_a_chunk_may_name_dimensions(source: Path, tmp_path: Path) -> None:
    for number, (text, expected) in enumerate(
        {
            "t:time=10,lat=5": (10, 5, 100),
            "lat=all,lon=4,time=2": (2, 100, 4),
            "t:lon=20": (40, 100, 20),
            "t:all": (40, 100, 100),
        }.items()
    ):
        out = tmp_path / f"{number}.h5"
        run("repack", source, out, "--chunk", text)
        assert chunks(out) == expected
        with h5py.File(out) as new, h5py.File(source) as old:
            np.testing.assert_array_equal(new["t"][...], old["t"][...])
            assert new["lat"].chunks is None
    for text, said in {
        "t:tim=3": "there are time, lat and lon",
        "t:time=3,time=4": "is named twice",
        "t:time=0": "write NAME=LENGTH",
        "t:time=41": "cannot be larger",
        "t:time=x": "write NAME=LENGTH",
        "lat:time=3": "no dimension",
    }.items():
        with pytest.raises(ChunkwiseError, match=said):
            run("repack", source, tmp_path / "no.h5", "--chunk", text)


def test_bench_takes_the_same_names_for_chunks_and_access(source: Path) -> None:
    result = run(
        "bench", source, "t", "--access", "lat=1,lon=1", "--chunk", "all,time=all,lat=2,time=5",
        "--reader", "h5py", "--budget", "3s",
    )  # fmt: skip
    assert "chunks 40x100x100" in result.output
    assert "chunks 40x2x100" in result.output
    assert "chunks 5x100x100" in result.output


def test_view_takes_the_same_names_for_the_chunk_that_it_tries(source: Path) -> None:
    session = Session.of(str(source), "t", tried=Tried(chunk="time=10,lat=5"))
    assert session.tried.chunk == "10x5x100"
    for text, said in {"tim=3": "there are time, lat and lon", "time=0": "at least 1"}.items():
        with pytest.raises(ChunkwiseError, match=said):
            Session.of(str(source), "t", tried=Tried(chunk=text))


@given(
    st.lists(
        st.sampled_from(["stored", "auto", "1x2x3"])
        | st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True).map(
            lambda names: ",".join(f"{name}={ord(name)}" for name in names)
        ),
        min_size=1,
        max_size=5,
    )
)
def test_shapes_in_a_list_are_told_apart(shapes: list[str]) -> None:
    """Two neighbours that name different dimensions are one shape: there a list is ambiguous."""
    named = [shape for shape in shapes if "=" in shape]
    found = shapes_listed(",".join(shapes))
    assert ",".join(found) == ",".join(shapes)
    for one in found:
        names = [part.partition("=")[0] for part in one.split(",") if "=" in part]
        assert len(set(names)) == len(names)
        assert not names or len(names) == one.count(",") + 1
    if len(named) < 2:
        assert list(found) == shapes
