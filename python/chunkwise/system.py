"""What does the operating system do for us, and how does each system do it?"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

# Signals by which a user or the system ends a program.
ENDING: Final = tuple(
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)

# Errors of a file system that has no hard links.
_UNLINKED: Final = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def after_fork_in_child(forget: Callable[[], object]) -> None:
    """Have a function called in each child that begins as a copy of this process."""
    if FORKS:
        os.register_at_fork(after_in_child=forget)


def end_with_parent(number: int) -> None:
    """Let the end of the parent end this process, by a signal (prctl, PR_SET_PDEATHSIG; Linux)."""
    import ctypes

    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).prctl(1, int(number))


def alarm(seconds: float) -> None:
    """End this process after a time, if it is a child of its own; 0 for never."""
    if FORKS:
        signal.setitimer(signal.ITIMER_REAL, seconds)


def reset_alarm() -> None:
    """Let an alarm end this process; its parent may have given that another meaning."""
    if FORKS:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def memory_file(name: str) -> int:
    """Make a file that no name leads to, in memory where the system can; gives a descriptor."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    import tempfile

    with tempfile.TemporaryFile() as stream:
        return os.dup(stream.fileno())


def same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether two paths lead to the same file, which is there."""
    try:
        return os.path.samefile(one, other)  # noqa: PTH121
    except (OSError, ValueError):
        return False


# Whether a library can be put under a program's HDF5.
LINUX: Final = sys.platform == "linux"

if sys.platform == "win32":
    import ctypes
    import gc
    import msvcrt
    import threading

    # Flags of `os.open` for a file that no child inherits; no link is followed.
    OPENED: Final = os.O_BINARY | os.O_NOINHERIT
    SAFELY: Final = OPENED
    # Whether a child process can begin as a copy of this one.
    FORKS: Final = False
    # Whether a file can be replaced while it is open.
    REPLACES_OPEN: Final = False

    # What a file is opened for, by `os.open`'s flags, and what is done if it is there, or is not.
    _ACCESS: Final = {os.O_RDONLY: 0x80000000, os.O_WRONLY: 0x40000000, os.O_RDWR: 0xC0000000}
    _MAKING: Final = {
        0: 3, os.O_TRUNC: 5, os.O_CREAT: 4, os.O_CREAT | os.O_TRUNC: 2, os.O_CREAT | os.O_EXCL: 1,
    }  # fmt: skip

    _turn = threading.RLock()
    _kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel.CreateFileW.restype = ctypes.c_void_p

    def _handle(name: str, access: int, making: int, attributes: int) -> int:
        """Open a file that other programs may read, write, rename and remove meanwhile."""
        share_all = 7
        made = _kernel.CreateFileW(name, access, share_all, None, making, attributes, None)
        if made is None or made == ctypes.c_void_p(-1).value:
            number = ctypes.get_last_error()
            raise OSError(0, ctypes.FormatError(number), name, number)
        return int(made)

    def pread(descriptor: int, nbytes: int, at: int) -> bytes:
        """Read at a place; the descriptor's position stays as it was, also libhdf5's."""
        with _turn:
            before = os.lseek(descriptor, 0, os.SEEK_CUR)
            try:
                os.lseek(descriptor, at, os.SEEK_SET)
                return os.read(descriptor, nbytes)
            finally:
                os.lseek(descriptor, before, os.SEEK_SET)

    def pread_into(descriptor: int, view: memoryview, at: int) -> int:
        """Fill a buffer from a place on, as far as the file reaches; give how many bytes came."""
        found = pread(descriptor, view.nbytes, at)
        view[: len(found)] = found
        return len(found)

    def pwrite(descriptor: int, data: bytes | memoryview, at: int) -> int:
        """Write at a place; give how many bytes were written."""
        with _turn:
            os.lseek(descriptor, at, os.SEEK_SET)
            return os.write(descriptor, data)

    def lock(descriptor: int, *, shared: bool = False) -> None:
        """Lock a file for this process; BlockingIOError if another one has locked it."""
        if shared:
            return  # libhdf5 locks no files here.
        exclusive_at_once, violated = 3, 33
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(descriptor))
        # An OVERLAPPED, with the place of a byte beyond the end of every file.
        place = (ctypes.c_uint64 * 4)(0, 0, 1 << 62, 0)
        if not _kernel.LockFileEx(handle, exclusive_at_once, 0, 1, 0, ctypes.byref(place)):
            error = ctypes.WinError(ctypes.get_last_error())
            if error.winerror == violated:
                raise BlockingIOError(errno.EAGAIN, error.strerror)
            raise error

    def user() -> int:
        """Give the number of the user, as `os.stat` does: there is none here."""
        return 0

    def most_open_files() -> int | None:
        """Return the limit of open files of the C library."""
        return 512

    def reopened(_: int, path: str) -> int:
        """Open what is at a descriptor's path."""
        return os.open(path, os.O_RDWR | OPENED)

    def is_being_written(_: str | os.PathLike[str]) -> bool | None:
        """Return whether somebody has a file open for writing: it is not known."""
        return None

    def sync_descriptor(descriptor: int) -> None:
        """Wait until storage has what was written; of a folder there is nothing to wait for."""
        try:
            os.fsync(descriptor)
        except OSError:
            if not os.path.isdir(_path(descriptor)):  # noqa: PTH112
                raise

    def sync(path: str | os.PathLike[str]) -> None:
        """Sync a file to storage (fsync); folders need none."""
        if Path(path).is_dir():
            return
        descriptor = os.open(path, os.O_RDWR | OPENED)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def dress(descriptor: int, mode: int, owner: os.stat_result | None = None) -> None:
        """Do nothing: on Windows, permissions and owner come from the folder."""

    def set_modified(descriptor: int, modified_ns: int) -> None:
        """Set an open file's time of modification."""
        since_1601 = ctypes.c_uint64(modified_ns // 100 + 116_444_736_000_000_000)
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(descriptor))
        if not _kernel.SetFileTime(handle, None, None, ctypes.byref(since_1601)):
            raise ctypes.WinError(ctypes.get_last_error())

    def open_folder(path: str | os.PathLike[str]) -> int:
        """Open a folder, so that names in it lead to files in that very folder."""
        attributes, existing, folder_or_link = 0x80, 3, 0x02200000
        name = os.path.abspath(path)  # noqa: PTH100
        if not os.path.isdir(name) or os.path.islink(name):  # noqa: PTH112, PTH114
            number = errno.ENOTDIR if os.path.lexists(name) else errno.ENOENT
            raise OSError(number, os.strerror(number), name)
        handle = _handle(name, attributes, existing, folder_or_link)
        return msvcrt.open_osfhandle(handle, os.O_RDONLY)

    def _path(folder: int) -> str:
        room = ctypes.create_unicode_buffer(1 << 15)
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(folder))
        if not _kernel.GetFinalPathNameByHandleW(handle, room, len(room), 0):
            raise ctypes.WinError(ctypes.get_last_error())
        return room.value

    def _at(folder: int, name: str) -> str:
        return os.path.join(_path(folder), name)  # noqa: PTH118

    def open_at(folder: int, name: str, flags: int, _: int = 0o600) -> int:
        """Open a file in a folder, which can be renamed and removed meanwhile."""
        access = _ACCESS[flags & (os.O_WRONLY | os.O_RDWR)]
        making = _MAKING[flags & (os.O_CREAT | os.O_EXCL | os.O_TRUNC)]
        normal, link_itself = 0x80, 0x00200000
        handle = _handle(_at(folder, name), access, making, normal | link_itself)
        return msvcrt.open_osfhandle(handle, flags & ~(os.O_CREAT | os.O_EXCL | os.O_TRUNC))

    def open_folder_at(folder: int, name: str) -> int:
        """Open a folder in a folder, which is no link."""
        return open_folder(_at(folder, name))

    def stat_at(folder: int, name: str) -> os.stat_result:
        """Look at what has a name in a folder, without following it."""
        return os.lstat(_at(folder, name))

    def unlink_at(folder: int, name: str) -> None:
        """Remove a file from a folder."""
        os.unlink(_at(folder, name))  # noqa: PTH108

    def mkdir_at(folder: int, name: str, mode: int = 0o777) -> None:
        """Make a folder in a folder."""
        os.mkdir(_at(folder, name), mode)  # noqa: PTH102

    def rmdir_at(folder: int, name: str) -> None:
        """Remove an empty folder from a folder."""
        os.rmdir(_at(folder, name))  # noqa: PTH106

    def replace_at(old_in: int, old: str, new_in: int, new: str) -> None:
        """Give a file another name, in place of what has that name; a file that is open stays."""
        gc.collect()  # What nobody uses any more may still have it open.
        goal = _at(new_in, new)
        try:
            os.replace(_at(old_in, old), goal)  # noqa: PTH105
        except PermissionError as error:
            if not os.path.lexists(goal):
                raise
            # Without a number, by which others would say it in the system's words.
            raise PermissionError(
                "it may not be replaced, or is open in this program or another: close it there"
            ) from error

    def place_new_at(folder: int, old: str, new: str) -> bool:
        """Give a file a name that nothing has; FileExistsError if something has it."""
        gc.collect()
        os.rename(_at(folder, old), _at(folder, new))  # noqa: PTH104
        return True

    def link_at(path: str | os.PathLike[str], folder: int, name: str) -> None:
        """Give a file another name, in a folder."""
        os.link(path, _at(folder, name))

    def names_in(folder: int) -> list[str]:
        """Give the names in a folder."""
        return os.listdir(_path(folder))  # noqa: PTH208

    def open_to_lock(folder: Path) -> int:
        """Open what is locked for a folder: a file in it, since folders have no locks."""
        return os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | OPENED)

    def clear_away(folder: Path, lock_name: str) -> None:
        """Remove a folder with nothing but its lock, once nobody holds that."""
        try:
            if set(os.listdir(folder)) <= {lock_name}:  # noqa: PTH208
                (folder / lock_name).unlink(missing_ok=True)
                folder.rmdir()
        except OSError:
            pass  # Another run has it open.

else:
    import fcntl
    import resource

    OPENED: Final = os.O_CLOEXEC
    SAFELY: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    FORKS: Final = True
    REPLACES_OPEN: Final = True
    _FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

    pread = os.pread
    pwrite = os.pwrite

    def pread_into(descriptor: int, view: memoryview, at: int) -> int:
        """Fill a buffer from a place on, as far as the file reaches; give how many bytes came."""
        return os.preadv(descriptor, [view], at)

    def lock(descriptor: int, *, shared: bool = False) -> None:
        """Lock a file as libhdf5 does; BlockingIOError if another one has locked it."""
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)

    def user() -> int:
        """Give the number of the user, as `os.stat` does."""
        return os.geteuid()

    def most_open_files() -> int | None:
        """Give how many files the process may have open; None without a limit."""
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return None if limit == resource.RLIM_INFINITY else limit

    def reopened(descriptor: int, path: str) -> int:
        """Open what a descriptor has open, or what is at its path: its locks are not shared."""
        with contextlib.suppress(OSError):
            return os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | OPENED)
        return os.open(path, os.O_RDONLY | OPENED)

    def is_being_written(path: str | os.PathLike[str]) -> bool | None:
        """Return whether a process of this machine has a file open for writing; None if not known.

        A lease for reading is given only if nobody has (fcntl(2), F_SETLEASE; Linux only): to the
        file's owner, on local file systems.
        """
        if not hasattr(fcntl, "F_SETLEASE"):
            return None
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            # The signal of the lease must not end this process: this one is ignored.
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except BlockingIOError:
            return True
        except OSError:
            return None
        finally:
            os.close(descriptor)
        return False

    def sync_descriptor(descriptor: int) -> None:
        """Wait until storage has what was written, or a folder's names."""
        os.fsync(descriptor)

    def sync(path: str | os.PathLike[str]) -> None:
        """Sync a file or a folder to storage (fsync)."""
        descriptor = os.open(path, os.O_RDONLY | OPENED)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def dress(descriptor: int, mode: int, owner: os.stat_result | None = None) -> None:
        """Give an open file permissions, and an owner as far as the system lets it."""
        if owner is not None:
            try:
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
            except PermissionError:
                # Root alone gives files away; to a group of one's own anybody does.
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, -1, owner.st_gid)
        os.fchmod(descriptor, mode)

    def open_folder(path: str | os.PathLike[str]) -> int:
        """Open a folder, so that names in it lead to files in that very folder."""
        return os.open(path, _FOLDER)

    def open_folder_at(folder: int, name: str) -> int:
        """Open a folder in a folder, which is no link."""
        return os.open(name, _FOLDER | SAFELY, dir_fd=folder)

    def set_modified(descriptor: int, modified_ns: int) -> None:
        """Set an open file's time of modification."""
        os.utime(descriptor, ns=(modified_ns, modified_ns))

    def open_at(folder: int, name: str, flags: int, mode: int = 0o600) -> int:
        """Open a file in a folder."""
        return os.open(name, flags, mode, dir_fd=folder)

    def stat_at(folder: int, name: str) -> os.stat_result:
        """Look at what has a name in a folder, without following it."""
        return os.stat(name, dir_fd=folder, follow_symlinks=False)

    def unlink_at(folder: int, name: str) -> None:
        """Remove a file from a folder."""
        os.unlink(name, dir_fd=folder)

    def mkdir_at(folder: int, name: str, mode: int = 0o777) -> None:
        """Make a folder in a folder."""
        os.mkdir(name, mode, dir_fd=folder)

    def rmdir_at(folder: int, name: str) -> None:
        """Remove an empty folder from a folder."""
        os.rmdir(name, dir_fd=folder)

    def replace_at(old_in: int, old: str, new_in: int, new: str) -> None:
        """Give a file another name, in place of what has that name."""
        os.replace(old, new, src_dir_fd=old_in, dst_dir_fd=new_in)

    def place_new_at(folder: int, old: str, new: str) -> bool:
        """Give a file a name that nothing has, and keep the other; False without hard links."""
        try:
            # Unlike a rename, this replaces nothing that somebody makes at the same time.
            os.link(old, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as wrong:
            if wrong.errno not in _UNLINKED:
                raise
            return False
        return True

    def link_at(path: str | os.PathLike[str], folder: int, name: str) -> None:
        """Give a file another name, in a folder."""
        os.link(path, name, dst_dir_fd=folder)

    def names_in(folder: int) -> list[str]:
        """Give the names in a folder."""
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]

    def open_to_lock(folder: Path) -> int:
        """Open what is locked for a folder: the folder itself."""
        return os.open(folder, _FOLDER)

    def clear_away(folder: Path, lock_name: str) -> None:
        """Do nothing: the lock went while it was held."""


def pwrite_all(descriptor: int, data: bytes | memoryview, at: int) -> None:
    """Write all of some bytes at a place."""
    rest = memoryview(data)
    while rest.nbytes:
        done = pwrite(descriptor, rest, at)
        rest, at = rest[done:], at + done
