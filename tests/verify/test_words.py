"""Do all commands say the same of a file, with the same exit code?"""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import hdf5plugin
import numpy as np
import pytest

import chunkwise
import chunkwise.errors
from chunkwise.errors import BusyError, CannotJudgeError, CorruptDataError, OtherFlagsError
from chunkwise.files.causes import cause_of
from chunkwise.files.filters import IN_HDF5PLUGIN, lacking
from chunkwise.verdicts import FileVerdict
from tests.support.checksums import state_end
from tests.support.commands import run
from tests.support.filtered import Case, create

SOUND, LOOSE = "sound", "sound, with loose ends"
UNJUDGED, DAMAGED = "cannot be judged here", "damaged"


def plain(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=np.arange(1000), chunks=(100,), compression=1)


def dangling(path: Path) -> None:
    plain(path)
    with h5py.File(path, "r+") as file:
        file["soft"] = h5py.SoftLink("/gone")
        file["far"] = h5py.ExternalLink("below/gone.h5", "/x")


def lost_scale(path: Path) -> None:
    """A scale whose list names a dataset that was deleted, as netCDF tools leave it."""
    plain(path)
    with h5py.File(path, "r+") as file:
        file["t"] = np.arange(1000)
        file["t"].make_scale("t")
        file["other"] = np.arange(1000)
        file["other"].dims[0].attach_scale(file["t"])
        file["other"].dims[0].label = "t"
        del file["other"]


def unknown_filter(path: Path) -> None:
    with h5py.File(path, "w") as file:
        made = create(file, "v", "<i2", (10,), (10,), [Case(32020, (0, 2))])
        made.id.write_direct_chunk((0,), b"\0" * 12)


def cut(path: Path) -> None:
    plain(path)
    os.truncate(path, path.stat().st_size - 10)


def wrong_header(path: Path) -> None:
    with h5py.File(path, "w", libver="latest") as file:
        file["d"] = np.arange(10)
        file["e"] = np.arange(10)
        at = file.id.links.get_info(b"d").u
    content = bytearray(path.read_bytes())
    content[at + 20] ^= 1
    path.write_bytes(content)


def early_end(path: Path) -> None:
    """The superblock's end lies before the last chunk, as in a file of PureHDF's tests."""
    plain(path)
    with h5py.File(path) as file:
        last = max(file["d"].id.get_chunk_info(i).byte_offset for i in range(10))
    state_end(path, last + 8)


def early_index(path: Path) -> None:
    """It lies before a part of the metadata: a list of chunks."""
    several(path, "earliest")
    state_end(path, 1900)


def early_root(path: Path) -> None:
    """It lies before everything."""
    several(path, "earliest")
    state_end(path, 100)


def early_newer(path: Path) -> None:
    several(path, "latest")
    state_end(path, 300)


def several(path: Path, libver: str) -> None:
    with h5py.File(path, "w", libver=libver) as file:
        file.attrs["long"] = "text " * 20
        file.create_dataset("d", data=np.arange(1000), chunks=(100,), compression=1)
        file["c"] = np.arange(50)
        file["g/text"] = ["a", "b"]


def wrong_end(path: Path) -> None:
    """An early end under a wrong checksum: the superblock's bytes are wrong."""
    several(path, "latest")
    content = bytearray(path.read_bytes())
    content[29] ^= 1
    path.write_bytes(content)


def far_base(path: Path) -> None:
    """One flipped bit puts all addresses behind the file."""
    plain(path)
    content = bytearray(path.read_bytes())
    struct.pack_into("<Q", content, 24, 1 << 34)
    path.write_bytes(content)


def other_zfp(path: Path) -> None:
    """Written by a ZFP that the plugin here does not know, by its own account."""
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=np.linspace(0, 1, 64), chunks=(32,), **hdf5plugin.Zfp())
        options = file["d"].id.get_create_plist().get_filter(0)[2]
    content = path.read_bytes()
    assert content.count(struct.pack("<2I", *options[:2])) == 1
    # H5Z-ZFP keeps the versions of ZFP and of its codec in the first option.
    newer = struct.pack("<2I", 0x10007110, options[1])
    path.write_bytes(content.replace(struct.pack("<2I", *options[:2]), newer))


def small_heap(path: Path) -> None:
    """A global heap of less than 4,096 bytes, which HDF5 2.0 refuses and 1.10 reads."""
    with h5py.File(path, "w") as file:
        file["d"] = ["some", "text"]
    content = bytearray(path.read_bytes())
    at = content.index(b"GCOL")
    free = at + 16 + content[at + 16 :].index(struct.pack("<HH4xQ", 0, 0, 4096 - 16 - 2 * 24))
    struct.pack_into("<Q", content, at + 8, 1024)
    struct.pack_into("<Q", content, free + 8, 1024 - (free - at))
    path.write_bytes(content)


def text_of_another_set(path: Path, of: str) -> None:
    """Text of a character set that the format only reserves: libhdf5 reads it, h5py does not."""
    with h5py.File(path, "w") as file:
        file.attrs["units"] = np.bytes_("K")
        file["text"] = np.array([b"abcde"], "S5")
        file["both"] = np.zeros(3, [("a", "S7"), ("b", "i4")])
    content = bytearray(path.read_bytes())
    length = {"attribute": 1, "dataset": 5, "member": 7}[of]
    content[content.index(struct.pack("<2I", 0x113, length)) + 1] ^= 0x20
    path.write_bytes(content)


Make = Callable[[Path], None]
CASES: dict[Make, str] = {
    plain: SOUND, dangling: LOOSE, lost_scale: LOOSE, unknown_filter: UNJUDGED, early_end: LOOSE,
    early_index: LOOSE, early_root: LOOSE, early_newer: LOOSE, wrong_end: DAMAGED,
    far_base: DAMAGED, cut: DAMAGED, wrong_header: DAMAGED,
}  # fmt: skip
# What only reading all values shows, and what types say that h5py has no word for.
IN_VALUES: tuple[Make, ...] = (other_zfp, small_heap)
IN_TYPES = ("attribute", "dataset", "member")


@pytest.mark.parametrize("make", [*CASES, *IN_VALUES], ids=lambda make: make.__name__)
def test_verify_says_what_it_is(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make(path)
    says(path, CASES.get(make, UNJUDGED))


@pytest.mark.parametrize("of", IN_TYPES)
def test_text_of_another_set_cannot_be_judged(of: str, tmp_path: Path) -> None:
    text_of_another_set(tmp_path / "a.h5", of)
    says(tmp_path / "a.h5", UNJUDGED)


def says(path: Path, words: str) -> None:
    found = chunkwise.verify(path)
    assert found.verdict == words
    record = found.as_dict()
    assert (record["verdict"], record["exit_code"]) == (words, found.verdict.exit)
    assert (DAMAGED in json.dumps(record)) == (words == DAMAGED)


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_the_commands_end_with_its_code(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make(path)
    for command in (["verify", path], ["inspect", path, "--json", "--no-sample"]):
        # Whether a list of references leads somewhere is not in the metadata that inspect reads.
        done = run(*command)
        assert done.code == FileVerdict(CASES[make]).exit, (command, done)
        if CASES[make] != DAMAGED:
            assert "is damaged" not in done.out + done.err


@pytest.mark.parametrize("make", IN_VALUES, ids=lambda make: make.__name__)
def test_a_read_says_so_too(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make(path)
    with chunkwise.open(path) as file, pytest.raises(CannotJudgeError, match="version"):
        file["d"][:]


EARLY = (early_end, early_index, early_root, early_newer)


@pytest.mark.parametrize("make", EARLY, ids=lambda make: make.__name__)
@pytest.mark.parametrize("salvage", [False, True])
def test_a_copy_has_what_lies_beyond_the_stated_end(
    make: Make, salvage: bool, tmp_path: Path
) -> None:
    path, copy = tmp_path / "a.h5", tmp_path / "b.h5"
    make(path)
    before = path.read_bytes()
    assert chunkwise.plan_repack(path).steps[0].source.path in ("/c", "/d")
    done = chunkwise.repack(path, copy, salvage=salvage)
    assert done.verified == "proof"
    assert "states its end" in done.warnings[0]
    assert path.read_bytes() == before
    beyond_the_end(copy)
    chunkwise.repack(path, in_place=True)
    beyond_the_end(path)


def beyond_the_end(path: Path) -> None:
    """The file opens, and all is in it."""
    with h5py.File(path) as file:
        assert (file["d"][:] == np.arange(1000)).all()
        if "g" in file:
            assert (file["c"][:] == np.arange(50)).all()
            assert file["g/text"][:].tolist() == [b"a", b"b"]
            assert file.attrs["long"] == "text " * 20
    assert chunkwise.verify(path).verdict == SOUND


@pytest.mark.parametrize("make", EARLY, ids=lambda make: make.__name__)
def test_inspect_shows_what_lies_beyond(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make(path)
    facts = chunkwise.inspect(path)
    assert facts.findings[0].code == "early-end"
    assert facts.verdict == LOOSE
    if make is early_end:
        return  # It lies before data alone.
    datasets = {one.path: one.dataset for one in facts.objects if one.dataset is not None}
    assert set(datasets) == {"/c", "/d", "/g/text"}
    assert datasets["/d"].chunks is not None
    assert datasets["/d"].chunks.allocated == 10
    assert facts.metadata is not None
    # One dataset, which cannot be opened otherwise.
    assert chunkwise.inspect(path, "g/text").verdict == LOOSE


def test_bytes_behind_all_data_are_no_early_end(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    several(path, "earliest")
    with path.open("ab") as stream:
        stream.write(b"of another program")
    facts = chunkwise.inspect(path)
    assert facts.file_format.early_end is None
    assert facts.verdict == SOUND
    found = chunkwise.verify(path)
    assert found.verdict == SOUND
    assert [note.reason for note in found.notes] == ["18 bytes after the end of its data"]
    # They cause no copy.
    assert chunkwise.repack(path, in_place=True).left
    assert chunkwise.repack(path, tmp_path / "b.h5").warnings == ()


@pytest.mark.parametrize("make", EARLY, ids=lambda make: make.__name__)
def test_a_read_beyond_the_stated_end_says_what_helps(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make(path)
    with (
        pytest.raises(
            CannotJudgeError, match="beyond the end that its superblock states"
        ) as caught,
        chunkwise.open(path) as file,
    ):
        file["d"][:]
    assert "chunkwise repack" in str(caught.value)
    assert "damaged" not in str(caught.value)


def test_verify_counts_the_bytes_beyond_the_stated_end(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    several(path, "earliest")
    sound = chunkwise.verify(path)
    state_end(path, 1900)
    early = chunkwise.verify(path)
    assert (early.chunks, early.stored_nbytes) == (sound.chunks, sound.stored_nbytes)
    assert early.stored_nbytes > 0


def test_damage_beyond_the_stated_end_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    early_end(path)
    content = bytearray(path.read_bytes())
    content[-40:] = bytes(40)
    path.write_bytes(content)
    assert chunkwise.verify(path).verdict == DAMAGED
    with pytest.raises((CorruptDataError, CannotJudgeError)):
        chunkwise.repack(path, tmp_path / "b.h5", chunk=(50,))
    assert [one.name for one in tmp_path.iterdir()] == ["a.h5"]


def test_a_read_brings_a_filter_that_is_installed(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    values = np.linspace(0, 1, 64)
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=values, chunks=(32,), **hdf5plugin.Zfp(reversible=True))
    program = f"import chunkwise; print(chunkwise.open({str(path)!r})['d'][:].tobytes().hex())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == (values.tobytes().hex(), "")


def test_a_file_that_this_process_has_open_in_another_way(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        file["d"] = np.zeros(4)
    with h5py.File(path, locking=False), pytest.raises(OtherFlagsError) as caught:
        chunkwise.open(path, locking=True)
    assert isinstance(caught.value, OSError)
    assert "this process has the file open in another way" in str(caught.value)
    assert "damaged" not in str(caught.value)


def test_a_file_that_is_written_is_busy(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    plain(path)
    hold = "import h5py, sys; f = h5py.File(sys.argv[1], 'r+'); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdout.readline()
        with pytest.raises(BusyError):
            chunkwise.verify(path)
        assert run("verify", path).code == 4
        writer.stdin.close()


@pytest.mark.parametrize(
    ("reason", "checked", "verdict"),
    [
        ("incorrect metadata checksum after all read attempts", True, DAMAGED),
        ("wrong B-tree signature", False, DAMAGED),
        ("addr overflow, addr = 1, size = 2, eoa = 1", False, DAMAGED),
        ("can't open directory (/usr/local/lib/plugin)", False, UNJUDGED),
        ("bad version number for datatype message", False, UNJUDGED),
        ("stored chunk dimension encoding length does not match value", True, UNJUDGED),
        ("bad flag combination for message", True, UNJUDGED),
        ("unable to open external raw data file", False, UNJUDGED),
        ("global heap size is too small", False, UNJUDGED),
        ("unable to lock file, errno = 11", False, "busy"),
        ("file locking flag values don't match", False, "could not be read"),
    ],
)
def test_what_a_refusal_proves(reason: str, checked: bool, verdict: str) -> None:
    found = cause_of(reason, checked=checked)
    assert found.verdict == verdict
    assert ("is damaged" in str(found).replace("or is damaged", "")) == (verdict == DAMAGED)


@pytest.mark.parametrize("number", [305, 32019, 32020, 32022, 40_000])
def test_nobody_is_sent_to_a_package_that_lacks_the_filter(number: int) -> None:
    assert number not in IN_HDF5PLUGIN
    assert "pip install hdf5plugin" not in lacking(number)


def test_a_crash_proves_no_damage() -> None:
    assert issubclass(chunkwise.errors.CrashedError, CannotJudgeError)
