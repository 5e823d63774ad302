# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
PEERS  := .venv-peers
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

PEER_ENVS := .venv-art .venv-alibi .venv-dice

.PHONY: demo test check format bench peers fidelity results lock clean

demo: $(STAMP)  ## the whole road on German Credit
	$(BIN)/holdfast demo

test: check  ## everything that must be true
	$(BIN)/pytest

check: $(STAMP)  ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)  ## every benchmark, in full
	for script in $(filter-out bench/paper_device.py bench/seizure.py,$(wildcard bench/[a-z]*.py)); do $(BIN)/python $$script || exit 1; done

peers: $(PEERS)/.installed  ## comparisons with the real reference libraries, in an environment of their own
	$(PEERS)/bin/pytest tests/peers --override-ini addopts=-q --override-ini filterwarnings=default

fidelity: $(STAMP) $(PEERS)/.installed $(PEER_ENVS:%=%/.installed)  ## our searches against the reference libraries
	$(BIN)/python bench/fidelity.py

results: $(STAMP)  ## docs/results.md and its figures, from results/
	$(BIN)/python docs/make_results.py --figures

lock:  ## make requirements.lock anew from pyproject.toml
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet torch==2.13.0 hatchling editables
	.venv-lock/bin/pip install --quiet --no-build-isolation -e ".[dev]"
	.venv-lock/bin/pip freeze --exclude-editable | sed 's/+cpu$$//' > requirements.lock
	rm -rf .venv-lock

clean:
	rm -rf $(VENV) $(PEERS) $(PEER_ENVS) holdfast-demo

# The stamp is written last, so an install that was cut off is done again.
$(STAMP): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

$(PEERS)/.installed: requirements.lock peers.lock pyproject.toml
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check -r requirements.lock -r peers.lock
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# One environment a library: their pins contradict one another. torch first, or pip would choose another build of it.
.venv-%/.installed: peers/%.lock
	test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	! grep -q '^torch==' $< || .venv-$*/bin/pip install --quiet --disable-pip-version-check $$(grep '^torch==' $<)
	.venv-$*/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@
