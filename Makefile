# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
# Test processes: auto is one per core.
PYTEST_WORKERS ?= auto
# Which tests: fast leaves out those marked slow, all runs everything.
TESTS ?= fast
VENV   := .venv
PEERS  := .venv-peers
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PIP    := -m pip --disable-pip-version-check install --quiet
LOCKS  := requirements.lock torch.lock
# All that torch's build for CPUs needs is in requirements.lock. A build for CUDA needs more packages, which it names
# itself: `make TORCH_INSTALL= test` lets pip install these too.
TORCH_INSTALL ?= --no-deps

PEER_ENVS := .venv-art .venv-alibi .venv-dice
# Not part of `make bench`: what needs a GPU or hours, what needs the reference libraries (`make fidelity`), and what
# measures nothing.
APART := bench/paper_device.py bench/seizure.py bench/fidelity.py bench/schema_dice.py bench/black_box.py \
         bench/oracle.py bench/attack.py

.PHONY: demo test test-all pytest browser docs notebooks check format bench peers fidelity results listing dist sbom \
        lock clean

demo: $(STAMP)  ## the whole package on German Credit
	$(BIN)/holdfast demo

test: check pytest  ## format, lint, types and the tests (TESTS=all: the slow ones too)

test-all:  ## the same with every test
	$(MAKE) test TESTS=all

pytest: $(STAMP)
ifeq ($(TESTS),all)
	$(BIN)/pytest -n $(PYTEST_WORKERS) --dist worksteal
else
	$(BIN)/pytest -n $(PYTEST_WORKERS) --dist worksteal -m "not slow"
endif

browser:  ## a browser for the tests of pages: Debian's Chromium, where there is none yet
	$(PYTHON) tools/browsers.py

docs: $(STAMP)  ## the site, in site/: strictly and offline
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	$(BIN)/python tools/reference.py
	@echo "open site/index.html in a browser"

notebooks: $(STAMP)  ## run the notebooks of docs/notebooks and store what they show; clinic needs HOLDFAST_DATA
	$(BIN)/python tools/run_notebooks.py

check: $(STAMP)  ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)  ## every benchmark that runs on a CPU in minutes, in full
	for script in $(filter-out $(APART),$(wildcard bench/[a-z]*.py)); do $(BIN)/python $$script || exit 1; done

peers: $(PEERS)/.installed  ## comparisons with the real reference libraries, in an environment of their own
	$(PEERS)/bin/pytest tests/peers --override-ini addopts=-q --override-ini filterwarnings=default

fidelity: $(STAMP) $(PEERS)/.installed $(PEER_ENVS:%=%/.installed)  ## our searches against the reference libraries
	$(BIN)/python bench/fidelity.py
	$(BIN)/python bench/schema_dice.py
	$(BIN)/python bench/black_box.py

results: $(STAMP)  ## docs/results.md and its figures, from results/
	$(BIN)/python docs/make_results.py --figures

listing: $(STAMP)  ## what `holdfast methods` shows, and the lists of the reference, asked of the package itself
	$(BIN)/python tools/write_listing.py
	$(BIN)/python tools/write_commands.py
	$(BIN)/python tools/write_index.py

dist: $(STAMP)  ## the wheel and the sdist, each installed into an empty environment and run there
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/python tools/check_dist.py dist
	$(BIN)/python tools/sbom.py dist/sbom.cdx.json

sbom: $(STAMP)  ## which packages, versions and licences a user of holdfast installs: dist/sbom.cdx.json (CycloneDX)
	$(BIN)/python tools/sbom.py dist/sbom.cdx.json

lock:  ## make requirements.lock and torch.lock anew from pyproject.toml; torch keeps the version of torch.lock
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python $(PIP) -r torch.lock hatchling editables
	.venv-lock/bin/python $(PIP) --no-build-isolation -e ".[dev]"
	.venv-lock/bin/python tools/write_lock.py
	rm -rf .venv-lock

clean:
	rm -rf $(VENV) $(PEERS) $(PEER_ENVS) dist site holdfast-demo

# The stamp is written last, so an install that was cut off is done again. pip refuses a file whose hash is not in
# requirements.lock; torch comes after it and alone, since --require-hashes is for all packages of a call or for none.
$(STAMP): $(LOCKS) pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) --require-hashes --no-deps -r requirements.lock
	$(BIN)/python $(PIP) $(TORCH_INSTALL) -r torch.lock
	$(BIN)/python $(PIP) --no-deps --no-build-isolation -e .
	touch $@

$(PEERS)/.installed: $(LOCKS) peers.lock pyproject.toml
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python $(PIP) --require-hashes --no-deps -r requirements.lock
	$(PEERS)/bin/python $(PIP) $(TORCH_INSTALL) -r torch.lock
	$(PEERS)/bin/python $(PIP) -r peers.lock
	$(PEERS)/bin/python $(PIP) --no-deps --no-build-isolation -e .
	touch $@

# One environment per library: their pins contradict one another. torch first, or pip would choose another build of it.
.venv-%/.installed: peers/%.lock
	test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	! grep -q '^torch==' $< || .venv-$*/bin/python $(PIP) $$(grep '^torch==' $<)
	.venv-$*/bin/python $(PIP) -r $<
	touch $@
