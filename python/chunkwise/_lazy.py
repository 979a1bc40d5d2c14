"""How does a package offer names without importing what they need, such as h5py?

A worker of `chunkwise bench` may load another libhdf5 than h5py's, and must not import h5py.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def attach(
    package: str, names: Mapping[str, str], modules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make a package's ``__getattr__`` and ``__dir__`` (PEP 562), with modules of it by name."""

    def get(name: str) -> Any:
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(names[name]), name)

    def list_names() -> list[str]:
        known = vars(sys.modules[package])
        of_any_module = {name for name in known if name.startswith("__")}
        return sorted({*of_any_module, *known["__all__"], *modules})

    return get, list_names
