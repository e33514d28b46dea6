# Each target sets up all it needs.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo constraints test test-changed test-slow test-all test-ray test-train lint docs tutorials bench clean

# Every version is pinned by a file that `make constraints` writes, so that a new release of a tool breaks nobody's first
# minutes. `make test CONSTRAINTS=` takes the newest of everything.
CONSTRAINTS ?= tests/constraints.txt
PINNED = $(if $(CONSTRAINTS),-c $(CONSTRAINTS))
# What is imported is compiled when it first is, and kept, whatever the shell says: compiling all that is installed takes
# six sevenths of an installation's processor time.
export PYTHONDONTWRITEBYTECODE =
INSTALL = $(BIN)/python -m pip install --quiet --no-compile

$(BIN)/judgesmith: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade pip
	$(INSTALL) $(PINNED) -e '.[local,dev]'
	@touch $(BIN)/judgesmith

constraints: $(BIN)/judgesmith
	$(INSTALL) uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-annotate --no-emit-index-url --no-emit-find-links \
		--custom-compile-command 'make constraints' --extra local --extra dev --extra docs pyproject.toml -o tests/constraints.txt

# What a stranger sees first: recorded rows, no model (`judgesmith demo --live` compiles with one, 98 MB to fetch once).
demo: $(BIN)/judgesmith
	$(BIN)/judgesmith demo

# Each process takes one stretch of the tests, and from another's end when it has none left: what the tests of a file share
# (a wheel, compiled judges) is made once. Groups of pytest-xdist do nothing with pytest 9.2. Tests start many processes, each
# of which computes on one core.
PYTEST = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist worksteal

# What to run while working: all but the tests that start processes, wait, train, or read the text of code and pages.
test: $(BIN)/judgesmith
	$(PYTEST) -m "not slow and not text"

# The same without the rooms that the changes since a commit cannot reach: `make test-changed SINCE=origin/main`.
SINCE ?= HEAD
test-changed: $(BIN)/judgesmith
	$(PYTEST) -m "not slow and not text" $$($(BIN)/python tests/support/changed.py $(SINCE))

test-slow: $(BIN)/judgesmith
	$(PYTEST) -m slow

test-all: lint test test-slow

# Training needs torch (about 1 GB), which the other tests do without. These folders hold its tests.
test-train: $(BIN)/judgesmith
	$(INSTALL) $(PINNED) -e '.[local,train,dev]'
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/rooms/training tests/programs/readings/test_torch_reader.py tests/programs/baselines

# Ray is large, and only `score --on ray` needs it.
test-ray: $(BIN)/judgesmith
	$(INSTALL) $(PINNED) -e '.[ray]'
	$(BIN)/python -m pytest -q tests/rooms/engines

# Formatting, spelling, tables of results, types, and the tests of the text of code, help and pages; phrases and forms
# are reports. The linters read only what Git tracks.
LISTED = git ls-files -z

lint: $(BIN)/judgesmith
	$(LISTED) '*.py' '*.pyi' '*.ipynb' | xargs -0 $(BIN)/ruff check
	$(LISTED) '*.py' '*.pyi' '*.ipynb' | xargs -0 $(BIN)/ruff format --check
	$(LISTED) | xargs -0 $(BIN)/codespell
	$(BIN)/python docs/words.py
	$(BIN)/python docs/form.py
	$(BIN)/python docs/tables.py --check
	$(BIN)/mypy -p judgesmith
	$(PYTEST) -m "text and not slow"

# The site, into build/site; a link that leads nowhere is an error.
docs: $(BIN)/judgesmith
	$(INSTALL) $(PINNED) -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet -f docs/mkdocs.yml

# Each tutorial in a fresh environment with only what it says to install; pip's cache makes that quick.
tutorials: $(BIN)/judgesmith
	$(BIN)/python docs/tutorials.py

# What users would notice to be slower, one line of JSON each, in ten minutes on two idle cores. They are no tests.
bench: $(BIN)/judgesmith
	$(INSTALL) $(PINNED) -e '.[serve,ray]'
	$(BIN)/python experiments/bench/scoring.py --json
	$(BIN)/python experiments/bench/rows.py --json
	$(BIN)/python experiments/bench/serve.py --json --requests 1500 --workers 1
	$(BIN)/python experiments/bench/meta.py --json --rounds 200 --theirs 5
	$(BIN)/python experiments/bench/racing.py --json --repeats 20
	$(BIN)/python experiments/bench/long_texts.py --json --words 500,2000,10000
	$(BIN)/python experiments/bench/startup.py --json --repeat 1
	$(BIN)/python experiments/bench/large_files.py --json --rows 20000
	$(BIN)/python experiments/bench/ray.py --json --kills 0 --rows 128

clean:
	rm -rf $(VENV) build dist *.egg-info src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
