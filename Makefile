# Two commands matter to a newcomer: `make demo` and `make test`. Each installs the Debian packages
# it lacks (scripts/packages says which), so a fresh machine with a Swift toolchain is enough.

BINARY = .build/release/tapline
PREFIX ?= /usr/local
SCALE_EVENTS ?= 30000000
SCALE_DIR ?= .build/bench/scale
ORACLE_EVENTS ?= 100000
ORACLE_REPORTS ?= 50
ORACLE_SEED ?= 1
SEEDS ?= 10
SOAK_KILLS ?= 200
SOAK_POSTGRES_KILLS ?= 50
SOAK_EVENTS ?= 1000000
SOAK_SECONDS ?= 120
SOAK_HOURS ?= 24
SOAK_SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
FUZZ_SECONDS ?= 60
FUZZ_PROPERTIES ?= json gzip lines time spool source head
FUZZ_BUILD = swift build -c release --product fuzz --scratch-path .build/fuzz --sanitize address \
	-Xswiftc -sanitize=fuzzer -Xswiftc -DLIBFUZZER -Xcc -fsanitize=fuzzer-no-link \
	-Xswiftc -use-ld=lld
SANITIZERS ?= thread address
# From the beginning of a name, for there are suites of the same names in SystemTests.
SANITIZED = ^(Spool|HTTPServer|Ingest|JSONLines|Gzip|Event|Platform|Web|Client|Import|Metrics|Options|Sample|Top|Bench)Tests\.|^FuzzTests\..*(Corpus|everyKept)
REPORT_DIR ?= .build/bench/report
PEER_PYTHON = .build/bench/python
SWIFT_BUILD = swift build -c release --product tapline --static-swift-stdlib
# A test that hangs ends the run, far from what any run takes.
SWIFT_TEST = timeout --kill-after=30 2400 swift test
# Tests that only take what is built, beside others.
TEST_BUILT = TAPLINE_BINARY=$(CURDIR)/$(BINARY) $(SWIFT_TEST) --skip-build --ignore-lock
UNIT = --skip 'SystemTests|DashboardTests'
# Looks at what the daemon uses beside thousands of clients, so nobody else may be at work.
ALONE = ^SystemTests\.SystemTests/AbuseTests/
# The half of the other system tests that mostly waits: for a timeout, a restart, a lock.
FAULTS = ^SystemTests\.SystemTests/[A-Za-z]*(Fault|Fail|Crash|Erase|Replay|Dedupe|Storm|Partition|Vanished|Extreme)[A-Za-z]*Tests/
# Of these the soak, which takes two minutes by its time and waits for recoveries in most of it, and what is as patient.
SOAK = ^SystemTests\.SystemTests/(CrashTests/killedAtRandom|(Failover|Partition|Replay|Vanished|Extreme)[A-Za-z]*Tests/)
FORMAT = swift format lint --strict --parallel --configuration .swift-format --recursive

.PHONY: build demo test test-oracle test-random test-sanitize soak soak-day soak-outage fuzz lint unit install clean packages test-packages
.PHONY: bench bench-scale bench-report bench-compare bench-abuse bench-profile bench-packages

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

# Every module by itself, and the release binary: real processes, faults and a PostgreSQL that the tests
# start. Four runs side by side, for each of them waits half of its time, and the soak for most of it.
test: test-packages lint
	$(SWIFT_BUILD)
	swift build --build-tests
	$(TEST_BUILT) --filter '$(ALONE)'
	@scripts/together \
		unit "$(TEST_BUILT) $(UNIT)" \
		system "$(TEST_BUILT) --filter 'SystemTests|DashboardTests' --skip '$(ALONE)|$(FAULTS)'" \
		faults "$(TEST_BUILT) --filter '$(FAULTS)' --skip '$(SOAK)'" \
		soak "$(TEST_BUILT) --filter '$(SOAK)'"

unit: test-packages lint
	$(SWIFT_TEST) $(UNIT)

# Each prints its figures and writes its section of docs/benchmarks.md: on an empty database (ten
# minutes), with many stored events, beside peers; the last writes what docs/performance.md is made of.
bench: build bench-packages
	python3 Benchmarks/bench.py --binary $(BINARY) --write docs/benchmarks.md

# Builds a database of SCALE_EVENTS in SCALE_DIR first, if it is not there; remove that to start anew.
bench-scale: build bench-packages
	python3 Benchmarks/scale.py --binary $(BINARY) --directory $(SCALE_DIR) --events $(SCALE_EVENTS) \
		--write docs/benchmarks.md

# Reports over 10 million events, each held against the aggregate over the events. REPORT_OPTIONS=--wide, with
# a REPORT_DIR of its own, has events with values of every dimension.
bench-report: build bench-packages
	python3 Benchmarks/report.py --binary $(BINARY) --directory $(REPORT_DIR) --write docs/benchmarks.md \
		$(REPORT_OPTIONS)

bench-compare: build bench-packages $(PEER_PYTHON)
	python3 Benchmarks/compare.py --binary $(BINARY) --write docs/benchmarks.md

# A polite client beside slow, large, broken and hostile ones.
bench-abuse: build bench-packages
	python3 Benchmarks/abuse.py --binary $(BINARY) --write docs/benchmarks.md

bench-profile: build bench-packages
	python3 Benchmarks/profile.py --binary $(BINARY) --write docs/performance.md

bench-packages:
	@scripts/packages build bench

# The peers' packages, from PyPI.
$(PEER_PYTHON): Benchmarks/peers/requirements.txt | bench-packages
	python3 -m venv --clear $(PEER_PYTHON)
	$(PEER_PYTHON)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

# What `make unit` does with a few thousand events: all numbers of many reports, computed once more.
test-oracle: test-packages
	ORACLE_EVENTS=$(ORACLE_EVENTS) ORACLE_REPORTS=$(ORACLE_REPORTS) ORACLE_SEED=$(ORACLE_SEED) \
		swift test --filter OracleTests

# Random batches in random order through loaders and reports: SEEDS times as many as `make unit` tries.
test-random: test-packages
	TEST_SEEDS=$(SEEDS) swift test --filter '^(Load|Report)Tests\.(Cell|Device|LookAhead|ReaderAsks|Removal)Tests/'

# Kills the daemon and its PostgreSQL at random moments under `tapline bench`, verifies, and prints the
# figures of docs/reliability.md. `make test` has a short form of it.
soak: build test-packages
	TAPLINE_BINARY=$(CURDIR)/$(BINARY) SOAK_KILLS=$(SOAK_KILLS) \
		SOAK_POSTGRES_KILLS=$(SOAK_POSTGRES_KILLS) SOAK_EVENTS=$(SOAK_EVENTS) \
		SOAK_SECONDS=$(SOAK_SECONDS) SOAK_SEED=$(SOAK_SEED) \
		swift test --filter killedAtRandomMomentsTheDaemonLosesAndDoublesNothing

# As many events as an hour has (HOUR_OPTIONS: --ordinary 1000 a second) while the database is away, ten
# times as fast; then all is loaded and verified.
soak-outage: build bench-packages
	python3 Benchmarks/hour.py --binary $(BINARY) --write docs/benchmarks.md $(HOUR_OPTIONS)

# SOAK_HOURS at half load with a restart of PostgreSQL each hour: memory, descriptors and threads must not
# grow, all is verified. SOAK_HOURS=0.2 DAY_OPTIONS="--restart-every 25" is the same in twelve minutes.
soak-day: build bench-packages
	python3 Benchmarks/day.py --binary $(BINARY) --hours $(SOAK_HOURS) --write docs/reliability.md $(DAY_OPTIONS)

# Each property of Tests/Fuzz for FUZZ_SECONDS with libFuzzer and the address sanitizer. What it finds of
# interest goes to .build/fuzz/corpus; what breaks a property goes to Tests/Fuzz/corpus and is to be kept,
# as `make test` tries all of that for ever.
fuzz: test-packages
	$(FUZZ_BUILD)
	@for property in $(FUZZ_PROPERTIES); do \
		mkdir -p .build/fuzz/corpus/$$property; \
		FUZZ_PROPERTY=$$property .build/fuzz/release/fuzz -max_total_time=$(FUZZ_SECONDS) \
			-max_len=65536 -timeout=10 -print_final_stats=1 \
			-artifact_prefix=Tests/Fuzz/corpus/$$property/ \
			.build/fuzz/corpus/$$property Tests/Fuzz/corpus/$$property || exit 1; \
	done

# The modules that read what strangers send, under the sanitizers; docs/reliability.md says what is left
# out and why.
test-sanitize: test-packages
	@for sanitizer in $(SANITIZERS); do \
		swift test --disable-xctest --sanitize=$$sanitizer --scratch-path .build/$$sanitizer \
			--filter '$(SANITIZED)' || exit 1; \
	done

install: build
	install -D -m 755 $(BINARY) $(DESTDIR)$(PREFIX)/bin/tapline
	install -D -m 644 man/tapline.1 $(DESTDIR)$(PREFIX)/share/man/man1/tapline.1
	install -D -m 644 completions/tapline.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/tapline
	install -D -m 644 completions/_tapline $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_tapline
	install -D -m 644 completions/tapline.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/tapline.fish

clean:
	rm -rf .build
