#!/usr/bin/env bash
# A Python for 64-bit Arm with NumPy and h5py under qemu.
#
#     scripts/platforms/arm.sh FOLDER [WHEEL]   makes it, and installs the wheel
#     FOLDER/run PROGRAM ARGUMENTS...           runs a program for Arm
#     FOLDER/python ARGUMENTS...                runs that Python
#
# Needs Debian's qemu-user-static and mmdebstrap.  The Python is Debian's: its packages are unpacked, nothing
# of them is run or installed.
set -euo pipefail
home=$(mkdir -p "$1" && cd "$1" && pwd)
for tool in qemu-aarch64-static mmdebstrap; do
    command -v $tool >/dev/null || { echo "$tool is missing: install qemu-user-static and mmdebstrap" >&2; exit 1; }
done
# libhdf5 is to be the same as in .venv: files are compared.
constraints=$(dirname "$0")/../../constraints.txt
tree=$home/tree
packages=$tree/usr/lib/python3/dist-packages
[ -e "$tree/usr/bin/python3.11" ] || {
    rm -rf "$tree"
    mmdebstrap --quiet --architectures=arm64 --variant=extract --include=libpython3.11-stdlib,libstdc++6,python3 \
        bookworm "$tree"
}
cat >"$home/run" <<RUN
#!/bin/sh
exec qemu-aarch64-static -L "$tree" "\$@"
RUN
cat >"$home/python" <<RUN
#!/bin/sh
exec "$home/run" "$tree/usr/bin/python3.11" "\$@"
RUN
chmod +x "$home/run" "$home/python"
# This machine cannot start the Python for Arm itself: what starts another one does it as above.
echo "import sys; sys.executable = '$home/python'" >"$packages/this_python.pth"
install() {
    "${PYTHON:-python3}" -m pip install -q --disable-pip-version-check --no-warn-conflicts --only-binary :all: \
        --target "$packages" --upgrade --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 \
        --python-version 311 --implementation cp "$@"
}
[ -e "$packages/h5py" ] || install "$(grep ^h5py== "$constraints")" numpy click rich hdf5plugin netCDF4 xarray dask \
    h5netcdf fsspec pytest pytest-timeout pytest-xdist hypothesis
[ $# = 1 ] || install --no-deps "${@:2}"
