# Two commands matter to a newcomer: `make demo` and `make test`. Each installs the Debian packages
# it lacks (scripts/packages says which), so a fresh machine with a Swift toolchain is enough.

BINARY = .build/release/tapline
PREFIX ?= /usr/local
SWIFT_BUILD = swift build -c release --product tapline --static-swift-stdlib
FORMAT = swift format lint --strict --parallel --configuration .swift-format --recursive

.PHONY: build demo test lint unit bench install clean packages test-packages

build: packages
	$(SWIFT_BUILD)

packages:
	@scripts/packages build

test-packages:
	@scripts/packages build test

demo: build
	$(BINARY) demo

lint:
	$(FORMAT) Package.swift Sources Tests Benchmarks sql

# First every module by itself, then the release binary: real processes, faults and a PostgreSQL that
# the tests start.
test: unit
	$(SWIFT_BUILD)
	TAPLINE_BINARY=$(CURDIR)/$(BINARY) swift test --filter 'SystemTests|DashboardTests'

unit: test-packages lint
	swift test --skip 'SystemTests|DashboardTests'

# Prints the figures of docs/benchmarks.md and writes it; about ten minutes.
bench: build
	@scripts/packages build bench
	python3 Benchmarks/bench.py --binary $(BINARY) --write docs/benchmarks.md

install: build
	install -D -m 755 $(BINARY) $(DESTDIR)$(PREFIX)/bin/tapline
	install -D -m 644 man/tapline.1 $(DESTDIR)$(PREFIX)/share/man/man1/tapline.1
	install -D -m 644 completions/tapline.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/tapline

clean:
	rm -rf .build
