"""Has each error and each verdict its exit code, and does the worst of several win?"""

import errno
import pickle

import pytest

from chunkwise import errors
from chunkwise.errors import (
    BusyError,
    CannotJudgeError,
    CannotWriteError,
    ChunkwiseError,
    CorruptDataError,
    DamagedFileError,
    FileFormatError,
    UsageError,
    like,
)
from chunkwise.verdicts import Exit, FileVerdict, worst


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (DamagedFileError, Exit.WRONG),
        (CorruptDataError, Exit.WRONG),
        (UsageError, Exit.FAILED),
        (FileFormatError, Exit.FAILED),
        (CannotWriteError, Exit.FAILED),
        (CannotJudgeError, Exit.UNJUDGED),
        (BusyError, Exit.BUSY),
    ],
)
def test_each_kind_of_error_has_its_exit_code(kind: type[ChunkwiseError], code: Exit) -> None:
    assert kind("x").exit_code == code


def test_each_verdict_has_its_exit_code() -> None:
    assert {str(one): int(one.exit) for one in FileVerdict} == {
        "sound": 0, "sound, with loose ends": 0, "damaged": 1, "could not be read": 2,
        "cannot be judged here": 3, "busy": 4,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("codes", "code"), [((), 0), ((0, 0), 0), ((0, 4, 3), 3), ((2, 1, 3), 1), ((1, 130), 130)]
)
def test_the_worst_of_several_codes_wins(codes: tuple[int, ...], code: int) -> None:
    assert worst(codes) == code


def test_busy_is_what_a_lock_gives_and_says_so_by_errno() -> None:
    with pytest.raises(BlockingIOError) as caught:
        raise BusyError("x.h5: busy")
    assert caught.value.errno == errno.EAGAIN
    assert str(caught.value) == "x.h5: busy"


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.EAGAIN])
def test_an_error_has_the_number_and_class_of_the_one_it_replaces(number: int) -> None:
    replaced = OSError(number, "as the system says it")
    made = like(FileFormatError, replaced)("x.h5: not there")
    for one in (made, pickle.loads(pickle.dumps(made))):
        assert isinstance(one, type(replaced))
        assert isinstance(one, errors.FileFormatError)
        assert one.errno == number
        assert str(one) == "x.h5: not there"
