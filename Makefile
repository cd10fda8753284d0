# Two commands do all their own set-up: `make demo` and `make test`. The virtual environment is kept between calls.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
CONSTRAINTS := constraints.txt
DOCS   := .venv-docs
CORES  := $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)

.PHONY: demo test oldest lint bench pages studies tables docs clean

demo: $(READY)  ## a real study on embedded data: five methods, eight seeds, a verdict, a report
	$(BIN)/equipoise run studies/demo.toml

test: $(READY) browser database  ## all tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(CORES) --dist worksteal

oldest:  ## all tests with the oldest versions that pyproject.toml allows, in .venv-oldest: gigabytes, for torch has CUDA then
	mkdir -p build && $(PYTHON) .ci/oldest.py > build/oldest.txt
	$(MAKE) test VENV=.venv-oldest CONSTRAINTS=build/oldest.txt

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)  ## speed ratios, measured side by side on this machine
	for name in losses norms engine analysis; do $(BIN)/python benchmarks/$$name.py || exit 1; done

pages: $(READY)  ## rebuild docs/methods from the docstrings
	$(BIN)/python docs/build_pages.py

studies: $(READY)  ## rebuild studies/full from the papers' tables in studies/papers
	$(BIN)/python -m studies.papers

tables: $(READY)  ## rebuild docs/results/tables from the records and the published numbers
	$(BIN)/equipoise tables

docs: $(DOCS)/.ready  ## the site, in build/docs: method pages, tutorials (which are run) and the API; a warning is an error
	$(DOCS)/bin/python docs/build_pages.py
	rm -rf docs/auto_tutorials  # so that every tutorial is run with the code as it is
	$(DOCS)/bin/python -m sphinx --quiet --fail-on-warning --keep-going docs build/docs

clean:
	rm -rf $(VENV) .venv-oldest $(DOCS) docs/auto_tutorials build dist *.egg-info runs equipoise/native/*.so

$(READY): pyproject.toml setup.py $(CONSTRAINTS) $(wildcard equipoise/native/*.[ch])
	@command -v cc >/dev/null || $(call apt,gcc libc6-dev) || echo "no C compiler: installed without the CPU kernels"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --editable '.[dev]'
	touch $@

$(DOCS)/.ready: pyproject.toml constraints.txt
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	touch $@

# What is not Python is installed as root on Debian; elsewhere things work without it, slower, or the tests skip and say why.
apt = { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && (apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	apt-get install -y -qq --no-install-recommends $(1)) >/dev/null 2>&1; }

# The tests open the report in a real browser.
.PHONY: browser
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	$(call apt,chromium) || \
	echo "no chromium: the browser tests will be skipped"

# One of them starts a PostgreSQL server of its own; Debian keeps its programs off the PATH.
.PHONY: database
database:
	@command -v pg_ctl >/dev/null || ls /usr/lib/postgresql/*/bin/pg_ctl >/dev/null 2>&1 || $(call apt,postgresql) || \
	echo "no PostgreSQL: the tests of shared searches will be skipped"
