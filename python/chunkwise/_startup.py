"""How is h5py patched in processes that others start, such as workers?

If ``CHUNKWISE_PATCH`` is set, ``chunkwise_patch.pth`` calls `wait_for_h5py` when Python starts.
A program that opens no file with h5py pays nothing more.
"""

from __future__ import annotations

# Many programs import this and never h5py: no more than Python itself has at hand.
import os
import sys
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _PatchingLoader:
    """Loads h5py as its own loader does, and sees to it that it is patched."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        # Everyone who asks finds what would be there without us.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        stop_waiting()
        _patch_with_the_first_file(module.__dict__["File"])


class _Waiting:
    """Finds h5py as the other finders do, also if a program only asks whether it is there."""

    def find_spec(self, fullname: str, *where: Any) -> ModuleSpec | None:
        if fullname != "h5py":
            return None
        for finder in sys.meta_path:
            spec = None if isinstance(finder, _Waiting) else finder.find_spec(fullname, *where)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = cast("Any", _PatchingLoader(spec.loader))
                return spec
        return None


def _patch_with_the_first_file(file: Any) -> None:
    original = file.__init__

    @wraps(original)
    def __init__(self: Any, *args: Any, **options: Any) -> None:  # noqa: N807
        stop_waiting()
        try:
            from chunkwise.patching import patch_h5py

            patch_h5py()
        except Exception as error:  # The program runs without.
            import warnings

            warnings.warn(f"chunkwise: h5py is not patched: {error}", RuntimeWarning, stacklevel=2)
        original(self, *args, **options)

    _replaced.append((file, __init__))
    file.__init__ = __init__


# h5py's File, while it waits for the first one, and what stands in for its __init__.
_replaced: list[tuple[Any, Any]] = []


def wait_for_h5py() -> None:
    """Patch h5py, if the program ever uses it."""
    # Python may read the same .pth file twice.
    stop_waiting()
    if "h5py" in sys.modules:
        _patch_with_the_first_file(sys.modules["h5py"].__dict__["File"])
    else:
        sys.meta_path.insert(0, _Waiting())


def stop_waiting() -> None:
    """Leave h5py as it is in this process, unless it is patched already."""
    sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, _Waiting)]
    while _replaced:
        file, ours = _replaced.pop()
        # Others may have replaced it since, and call ours.
        if file.__init__ is ours:
            file.__init__ = ours.__wrapped__


def measure_h5py_as_it_is() -> None:
    """See that neither this process nor those that it starts are patched."""
    os.environ.pop("CHUNKWISE_PATCH", None)
    stop_waiting()
