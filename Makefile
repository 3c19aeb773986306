# Everything lives in .venv: the Python packages, with Java and Node.js among them, liveboard itself and the Java
# libraries; what builds the page is in web/node_modules, and the page in web/app/dist. A stamp is written when its step
# is done, so an interrupted set-up is simply run again.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# The last one would have every process compile all of liveboard again.
unexport PYTHONHOME PYTHONPATH PYTHONDONTWRITEBYTECODE
NPM := cd web && PATH="$(CURDIR)/$(BIN):$$PATH" npm
PEER := bench/peer/.venv
PAGE := web/app/dist/index.html
PAGE_TESTS := $(VENV)/page-tests.log
SERVING_TESTS := $(wildcard tests/integration/test_serving*.py) \
	$(patsubst %,tests/integration/test_%.py,board client export reader server_security)
# Tests wait more than they compute, so there can be more of them at a time than cores.
WORKERS ?= 3
MINUTES ?= 30
SEED ?= 1
RATE ?= 50
PAGE_SOURCES := $(shell find web/app web/table-hub \( -name node_modules -o -name dist -o -name .angular -o -name tests \) \
	-prune -o -type f -not -name '*.spec.ts' -print)

# One set-up at a time: everything that it starts inherits the lock, so even what a killed make has left is waited for.
define SETUP
import fcntl, os, sys
advice = "install one and name it, as in `make PYTHON=python3.12 setup`."
if sys.version_info < (3, 11):
    sys.exit("liveboard needs Python 3.11 or newer, and $(PYTHON) is %d.%d: " % sys.version_info[:2] + advice)
try:
    import ensurepip, venv
except ImportError:
    sys.exit("liveboard needs Python's venv module, and $(PYTHON) has none: `apt install python3-venv`, or " + advice)
lock = os.open("Makefile", os.O_RDONLY)
os.set_inheritable(lock, True)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("Waiting for another set-up that is running here ...", flush=True)
    fcntl.flock(lock, fcntl.LOCK_EX)
os.execvp(sys.argv[1], sys.argv[1:])
endef
export SETUP
LOCKED = @command -v $(PYTHON) > /dev/null || { \
	echo "liveboard needs Python 3.11 or newer, and there is no $(PYTHON): install one." >&2; exit 1; }; \
	$(PYTHON) -c "$$SETUP" $(MAKE) --silent --jobs=3

# A virtual environment that is half made, was moved, lost its Python or was left in the middle of an installation is
# made anew.
REMAKE := $(shell [ "$$(cat $(VENV)/made 2>/dev/null)" = "$(CURDIR)" ] && [ ! -e $(VENV)/installing ] \
	&& $(BIN)/python -c "" 2>/dev/null || echo remake)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup setup-dev setup-check demo test test-fast soak check format audit wheel web-dev screenshots bench \
	bench-parts clean java caches remake

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install everything into .venv
	$(LOCKED) java $(PAGE)

setup-dev:
	$(LOCKED) caches $(VENV)/packages-dev $(PAGE)

setup-check:
	$(LOCKED) $(VENV)/liveboard $(VENV)/packages-dev web/node_modules/.installed

demo: setup ## Run everything with sample data
	@$(BIN)/liveboard up --sample

# The page's tests run beside the others. What failed beside other tests is run once more, alone: on a busy machine a
# test can wait longer than it is willing to. Whatever fails twice has failed.
test: setup-dev ## Run every test
	@echo "The page's tests run beside these, into $(PAGE_TESTS)."
	@($(NPM) test --silent > $(CURDIR)/$(PAGE_TESTS) 2>&1) & page=$$!; \
	$(BIN)/pytest -n $(WORKERS) --durations=20; tests=$$?; \
	wait $$page; page=$$?; \
	if [ $$tests = 1 ]; then \
		echo "Once more, one at a time, what failed above:"; \
		$(BIN)/pytest --last-failed --last-failed-no-failures none --maxfail=3; tests=$$?; \
	fi; \
	if [ $$page != 0 ]; then \
		cat $(PAGE_TESTS); \
		echo "The page's tests once more, alone:"; \
		($(NPM) test --silent) || exit 1; \
	fi; exit $$tests

test-fast: setup-dev ## Run the tests that need no Spark, in a minute or two
	@$(BIN)/pytest -n $(WORKERS) tests/unit $(SERVING_TESTS)

soak: setup-dev ## Faults by chance upon a whole system: MINUTES=30 SEED=1 RATE=50 ARGS="--viewers 200 --every 20"
	@$(BIN)/python tests/soak.py --minutes $(MINUTES) --seed $(SEED) --rate $(RATE) $(ARGS)

check: setup-check ## Check format, lint and types
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy
	@$(NPM) run --silent lint

format: setup-check ## Format the code and repair what lint can repair
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix
	@$(NPM) run --silent format

wheel: setup ## Build what pip installs anywhere, with the page in it, into dist/
	@$(BIN)/python -m hatchling build --target wheel

web-dev: setup ## Run the page from its sources, over the server at LIVEBOARD_SERVER (http://127.0.0.1:8080)
	@$(NPM) run --silent dev

screenshots: setup-dev ## Make the README's pictures from the demo that is running
	@$(BIN)/python docs/screenshots.py

audit: setup-check ## Ask the registries for known weaknesses of what is installed here
	@$(PYTHON) -m venv $(VENV)/audit
	@$(VENV)/audit/bin/pip --disable-pip-version-check install --quiet pip-audit==2.10.1
	@$(VENV)/audit/bin/pip-audit --strict --vulnerability-service pypi --disable-pip --no-deps \
		-r requirements.txt -r requirements-dev.txt
	@$(NPM) audit

bench: setup-dev $(PEER)/packages ## Measure liveboard and Deephaven side by side; ARGS="--quick" and others, see ARGS=--help
	@$(BIN)/python bench/measure.py against $(ARGS)

bench-parts: setup-dev ## Measure the pipeline, the server and the page of liveboard, each alone
	@$(BIN)/python bench/measure.py pipeline $(ARGS)
	@$(BIN)/python bench/measure.py serving $(ARGS)
	@$(BIN)/python bench/measure.py scaling $(ARGS)
	@$(BIN)/python bench/measure.py page $(ARGS)

clean: ## Remove what set-up, tests and checks have made; data in .liveboard stays
	rm -rf $(VENV) $(PEER) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
	rm -rf web/node_modules web/*/node_modules web/*/dist web/app/.angular

$(VENV)/made: $(REMAKE)
	@echo "[1/6] Virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@printf '%s' "$(CURDIR)" > $@

$(VENV)/packages: requirements.txt $(VENV)/made
	@echo "[2/6] Python packages ..."
	@touch $(VENV)/installing
	@$(PIP) install -r $<
	@rm $(VENV)/installing
	@touch $@

$(VENV)/liveboard: pyproject.toml $(VENV)/packages
	@echo "[3/6] liveboard itself ..."
	@touch $(VENV)/installing
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@rm $(VENV)/installing
	@touch $@

# Looks for itself what there is to do, beside the page.
java: $(VENV)/liveboard
	@$(BIN)/python -m liveboard.install

# Only makes starts faster: `make demo` leaves it to the first board, which does it when it is on the screen.
caches: java
	@$(BIN)/python -m liveboard.install caches

# npm removes the folder first, and the stamp with it.
web/node_modules/.installed: web/package-lock.json web/.npmrc $(VENV)/packages
	@echo "[5/6] npm packages for the page ..."
	@$(NPM) ci --ignore-scripts --no-progress --loglevel=error
	@touch $@

$(PAGE): $(PAGE_SOURCES) web/node_modules/.installed
	@echo "[6/6] The page ..."
	@$(NPM) run --silent build -- --no-progress
	@touch $@

# After liveboard itself, since pip does one thing at a time.
$(VENV)/packages-dev: requirements-dev.txt $(VENV)/liveboard
	@echo "[+] Python packages for tests and checks ..."
	@touch $(VENV)/installing
	@$(PIP) install -r $<
	@rm $(VENV)/installing
	@touch $@

# Deephaven, and what draws the plots: in an environment of its own, since it pins versions that are not ours.
$(PEER)/packages: bench/peer/requirements.txt
	@echo "[+] Deephaven in $(PEER) ..."
	@$(PYTHON) -m venv --clear $(PEER)
	@$(PEER)/bin/python -m pip --disable-pip-version-check install -r $<
	@touch $@
