# From a fresh clone: `make demo` and `make test` need Python >= 3.11, make and a C++20 compiler; the rest (CMake, Ninja,
# NumPy, ...) comes from PyPI into .venv. The package is installed there as a user would have it, not in editable mode,
# so what is tested is what is shipped. Objects are kept in build/: reinstalling compiles only what changed.

PYTHON ?= python3
PYTEST_ARGS ?=
BENCH ?= crf maxent
PAPERS ?= --list
MUTANTS_ARGS ?=
FAULTS_ARGS ?=
FUZZ_SECONDS ?= 60
FUZZ_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
SANITIZED := build/sanitize build/tsan

PACKAGE_FILES := pyproject.toml CMakeLists.txt README.md LICENSE \
	$(shell find core -type f \( -name '*.cpp' -o -name '*.h' \)) \
	$(shell find src -type f -not -name '*.so' -not -name '*.pyc')
CORE_FILES := $(filter core/%,$(PACKAGE_FILES))

# Neither PYTHONPATH nor pip settings for the user's site may shadow what was installed.
unexport PYTHONPATH
export PIP_USER := 0
export PIP_DISABLE_PIP_VERSION_CHECK := 1

comma := ,
# Requirements as pyproject.toml lists them: $(call requirements,expression over `p`).
requirements = $(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); print(*$(1), sep="\n")'
pip_install = $(BIN)/python -m pip install --quiet
# Without isolation the compiler sees the same paths every time, so that build/ stays valid.
install_package = $(pip_install) --no-build-isolation --no-deps

.PHONY: help demo test lint format clang bench docs papers sanitize fuzz mutants faults clean

help:
	@echo "make demo | test | lint | format | clang | bench | docs | papers | sanitize | fuzz | mutants | faults | clean"

demo: $(VENV)/.package
	mkdir -p build
	$(BIN)/partwise demo --report build/partwise-demo.html

test: $(VENV)/.package $(VENV)/.extra-dev
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(VENV)/.extra-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CORE_FILES) $(wildcard fuzz/*.h fuzz/*.cpp)

format: $(VENV)/.extra-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CORE_FILES) $(wildcard fuzz/*.h fuzz/*.cpp)

# Parses the core with Clang and its warnings; no file is written.
clang: $(VENV)/.build
	$(BIN)/python -c 'import nanobind, sysconfig; print("-isystem", nanobind.include_dir(), "-isystem", sysconfig.get_path("include"))' > $(VENV)/includes
	printf '%s\n' $(filter %.cpp,$(CORE_FILES)) | xargs -P 2 -n 4 clang++ -fsyntax-only -std=c++20 -fopenmp-simd \
		-Wall -Wextra -Wconversion -Wno-sign-conversion -Werror -Icore @$(VENV)/includes

bench: $(VENV)/.package $(VENV)/.extra-bench
	for question in $(BENCH); do $(BIN)/python -m benchmarks $$question || exit 1; done

# The papers' experiments: make papers PAPERS="eg-mnist-path --data FOLDER"; without PAPERS their names are listed.
papers: $(VENV)/.package $(VENV)/.extra-plot
	$(BIN)/python -m papers $(PAPERS)

docs: $(VENV)/.package $(VENV)/.extra-docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --nitpicky --builder html docs docs/_build/html

# tests/sanitizers.py has what such a process needs. pytest must not capture the file descriptor the report is written to.
sanitize: build/sanitize/.package $(VENV)/.extra-dev
	CXX="$(CXX)" $(BIN)/python tests/sanitizers.py asan \
		$(BIN)/python -m pytest --capture=sys $(PYTEST_ARGS) tests/structures tests/features $(wildcard tests/solvers*)

# The core's drivers of fuzz/, under libFuzzer where there is Clang; FUZZ_SECONDS=0 replays the kept corpora.
fuzz: $(VENV)/.build
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python fuzz/run.py --seconds $(FUZZ_SECONDS) $(FUZZ_ARGS)

# Small faults in copies of the sources, each of which the tests must notice.
mutants: $(VENV)/.build $(VENV)/.extra-dev
	$(BIN)/python tests/mutants.py $(MUTANTS_ARGS)

# What happens when things go wrong: the table of docs/reliability.md, which is written anew, in part with sanitized
# builds. About three quarters of an hour on two processors; it goes on where it was stopped
# (FAULTS_ARGS="--seconds 600 --jobs 1 --row damaged-models").
faults: $(VENV)/.package $(VENV)/.extra-dev $(VENV)/.extra-faults $(SANITIZED:%=%/.package)
	CXX="$(CXX)" $(BIN)/python -m tests.faults $(FAULTS_ARGS)

clean:
	rm -rf $(VENV) build dist docs/_build docs/gallery docs/generated .pytest_cache .ruff_cache .mypy_cache .hypothesis

# Stamps: each says that what its rule installs is in place.

$(VENV)/.build: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "partwise needs Python 3.11 or newer; set PYTHON=")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(call requirements,[*p["build-system"]["requires"]$(comma) "cmake>=3.26"$(comma) "ninja"$(comma) *p["project"]["dependencies"]]) > $@.txt
	$(pip_install) --requirement $@.txt
	touch $@

$(VENV)/.extra-%: $(VENV)/.build
	$(call requirements,p["project"]["optional-dependencies"]["$*"]) > $@.txt
	$(pip_install) --requirement $@.txt
	touch $@

$(VENV)/.package: $(VENV)/.build $(PACKAGE_FILES)
	$(install_package) --config-settings build-dir=build/release .
	touch $@

build/sanitize/.package: sanitizers := address,undefined
build/tsan/.package: sanitizers := thread
$(SANITIZED:%=%/.package): %/.package: $(VENV)/.build $(PACKAGE_FILES)
	$(install_package) --upgrade --target $*/site --config-settings build-dir=$*/objects \
		--config-settings cmake.define.PARTWISE_SANITIZE=$(sanitizers) .
	touch $@
