# Each target sets up what it needs: a virtual environment from the lock, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(VENV)/bin/python -m pip --quiet --disable-pip-version-check
# Two stamps of one environment: with what berth needs to run, and with what its tests need, too.
RUNNABLE := $(VENV)/.runnable
READY := $(VENV)/.ready
# The environment that releases are made in.
RELEASE := build/release

# Tests start berth hundreds of times: it is compiled once, whatever the environment says.
export PYTHONDONTWRITEBYTECODE =

.PHONY: run test containers lint quick browser screenshots bench bench-docs docs reference release-check lock pin clean

# The end by Ctrl-C is no error, and make would say that it is one.
run: $(RUNNABLE)
	@trap : INT; $(BIN)/berth up --sample || { status=$$?; [ $$status -eq 130 ] || exit $$status; }

test: lint
	$(BIN)/pytest -q -n 3 -m "not slow"
	$(BIN)/pytest -q -n 4 --dist worksteal -m "slow and not containers"

# Builds the image and tries it, the compose file and the chart on a container engine: ten minutes.
# Where no registry is reached, the image's base is made of Debian's packages (debootstrap, as root).
containers: $(READY)
	@docker version > /dev/null || { echo "make containers needs a container engine, and 'docker version' fails" >&2; exit 1; }
	$(BIN)/pytest -v -m containers --durations=10 tests/containers

# `make quick ONLY=scheduler/queue` runs the tests of a package, in one process; more of them in quotes.
quick: $(READY)
	$(BIN)/pytest -q $(if $(ONLY),,-n 2) -m "not slow and not wall" $(addprefix tests/,$(ONLY))

# The tests of the page need a Chromium; this gets one where the system has none.
browser: $(READY)
	command -v chromium chromium-browser google-chrome || timeout 300 $(BIN)/playwright install chromium

# Writes the pictures of docs/ui.md.
screenshots: $(READY) browser
	BERTH_SCREENSHOTS=1 $(BIN)/pytest -q tests/service/ui

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports

bench: $(RUNNABLE)
	$(BIN)/berth bench engine

# Measures what the plots of docs/performance.md show, a quarter of an hour on an idle machine, and
# draws them. `make bench-docs ONLY="scale-nodes steady"` does some of them again.
bench-docs: $(READY)
	$(BIN)/python -m docs.generate.plots $(ONLY)

docs: $(READY)
	$(BIN)/sphinx-build -q -W --keep-going -d docs/_build/doctrees docs docs/_build/html
	@echo docs/_build/html/index.html

# Rewrites the generated pages of docs/reference.
reference: $(READY)
	$(BIN)/python -m docs.generate

# Makes what a release publishes in dist/, and tries each in an empty place; docs/releasing.md.
release-check: $(RELEASE)/.ready
	$(RELEASE)/bin/python -m release.check $(if $(TAG),--tag $(TAG))

$(RELEASE)/.ready: requirements-release.lock
	$(PYTHON) -m venv --clear $(RELEASE)
	$(RELEASE)/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes -r requirements-release.lock
	touch $@

# Needs uv; writes versions and hashes only, no index address. UPGRADE=--upgrade renews them.
UPGRADE =
LOCK = uv pip compile $(UPGRADE) --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url
lock:
	$(LOCK) pyproject.toml -o requirements.lock --custom-compile-command "make lock"
	$(LOCK) pyproject.toml --group dev -c requirements.lock -o requirements-dev.lock --custom-compile-command "make lock"
	$(LOCK) --group build -c requirements-dev.lock -o requirements-build.lock --custom-compile-command "make lock"
	$(LOCK) --group release -c requirements-dev.lock -o requirements-release.lock --custom-compile-command "make lock"

# Writes .env: the images of docker-compose.yml by their digests, for docker compose. Needs docker.
IMAGES = sed -n 's/.*$${\([A-Z]*_IMAGE\):-\([^}]*\)}.*/\1 \2/p' docker-compose.yml | sort -u
pin:
	@$(IMAGES) | while read -r name image; do \
	  digest=$$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$$image") || exit 1; \
	  echo "$$name=$$image@$$digest"; \
	done > .env.new && mv .env.new .env && cat .env || { rm -f .env.new; exit 1; }

# Compiled once: else each start compiles, where PYTHONDONTWRITEBYTECODE is set.
$(RUNNABLE): requirements.lock requirements-build.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("berth needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --require-hashes -r requirements.lock -r requirements-build.lock
	$(PIP) install --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q app plugins
	touch $(RUNNABLE)

$(READY): $(RUNNABLE) requirements-dev.lock
	$(PIP) install --require-hashes -r requirements-dev.lock
	touch $(READY)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build docs/_build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
