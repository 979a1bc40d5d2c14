#!/bin/sh
# Which tools of the system do tests need, and are they here?  Called by the Makefile.
#
#   tools.sh install          install those that are missing, if that is allowed; never fails
#   tools.sh platforms        the same for what runs wheels of other platforms
#   tools.sh has-mpi CALLER   whether there is MPI; if not, says that CALLER is skipped

TOOLS="h5dump h5diff h5ls h5repack h5cc gfortran nccopy ncdump nasm chromium mpicc mpiexec h5pcc"
PACKAGES="hdf5-tools libhdf5-dev gfortran netcdf-bin nasm chromium libhdf5-openmpi-dev openmpi-bin
    python3-h5py python3-click python3-rich"
OF_PLATFORMS="wine x86_64-w64-mingw32-gcc qemu-aarch64-static mmdebstrap"
PACKAGES_OF_PLATFORMS="wine wine64 gcc-mingw-w64-x86-64 qemu-user-static mmdebstrap"

# What is not here, each after a space.
missing() {
    for tool in $TOOLS; do
        command -v "$tool" >/dev/null || printf ' %s' "$tool"
    done
    # Debian's own h5py, with which tests read.
    [ -n "${PACKAGES##*h5py*}" ] || /usr/bin/python3 -c "import click, h5py, rich" 2>/dev/null || printf ' python3-h5py'
}

# Where packages may not be installed, the tests that need them are skipped and say so.
give_up() {
    echo "make tools: $1$missing"
    exit 0
}

install() {
    missing=$(missing)
    [ -n "$missing" ] || exit 0
    command -v apt-get >/dev/null || give_up "no apt-get; install yourself:"
    sudo=
    if [ "$(id -u)" != 0 ]; then
        sudo="sudo -n"
        $sudo true 2>/dev/null || give_up "may not install packages; missing:"
    fi
    # Unquoted: several words each.
    $sudo apt-get update -qq &&
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $PACKAGES >/dev/null ||
        give_up "the packages could not be installed; missing:"
}

# A parallel HDF5, a compiler for it, and what starts ranks.
has_mpi() {
    if pkg-config --exists hdf5-openmpi && command -v mpicc >/dev/null &&
        command -v mpiexec >/dev/null; then
        return 0
    fi
    echo "$1: skipped, as there is no MPI: install libhdf5-openmpi-dev and openmpi-bin"
    return 1
}

case $1 in
install) install ;;
platforms)
    TOOLS=$OF_PLATFORMS PACKAGES=$PACKAGES_OF_PLATFORMS
    install
    ;;
has-mpi) has_mpi "$2" ;;
*)
    echo "tools.sh: say install, platforms, or has-mpi CALLER" >&2
    exit 2
    ;;
esac
