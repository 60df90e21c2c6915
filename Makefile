# Every verb of the project. `make help` lists them; whatever is longer than a few lines is a program of its own.

CARGO = cargo
LYCOSA = target/release/lycosa
BENCH = $(CARGO) run --quiet --release -p lycosa-bench --
SIM = $(CARGO) run --quiet --profile sim -p sim --
# Where the server of `make run` listens and keeps its files, and what the benches connect to.
LISTEN = 127.0.0.1:3301
WORK_DIR = ./data
# Anything here makes `make compare` short.
QUICK =
# Further arguments, as in `make bench-inventory ARGS='--operations 100000'`.
ARGS =
# Seeds that `make sim` runs.
SEEDS = 1000
# Seconds that `make fuzz` gives each target.
FUZZ_SECONDS = 60

.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | expand -t 17

run: ## a server at 127.0.0.1:3301 with its files in ./data; on a terminal with a console
	$(CARGO) build --release -p server
	@$(CARGO) run --quiet --release -p server -- serve --listen $(LISTEN) --work-dir $(WORK_DIR) $(ARGS)

# With the places of planted bugs, which do nothing until a test asks for one: without them half of the crates would be built twice.
test: ## all tests; those in tests/ start the binary
	$(CARGO) test --workspace --features sim/planted-bugs,storage/planted-bugs,lycosa-tests/planted-bugs

# Nothing is built twice in here, and what a second build would need takes more room than all the programs.
check: export CARGO_INCREMENTAL = 0
check: ## what has to pass before a merge: format, lint, tests, links
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(MAKE) test
	$(MAKE) doc-links

build: ## the workspace, for debugging
	$(CARGO) build --workspace

release: ## the server, optimised: target/release/lycosa
	$(CARGO) build --release -p server

lint: ## clippy, warnings are errors
	$(CARGO) clippy --workspace --all-targets -- -D warnings

fmt: ## formats the sources
	$(CARGO) fmt --all

options-page: ## writes docs/options.md from the table of options
	$(CARGO) run --quiet -p server -- options --markdown > docs/options.md.new
	mv docs/options.md.new docs/options.md

doc-links: ## every relative link of every page leads somewhere
	python3 docs/check_links.py

bench: ## pipelined replaces against a running server with examples/inventory/app.lua
	$(BENCH) load --connect $(LISTEN) $(ARGS)

bench-inventory: ## captures and releases by 16 clients against the same server
	$(BENCH) inventory --connect $(LISTEN) $(ARGS)

bench-compare: release ## the main workloads on Lycosa and on an installed tarantool, by turns
	$(BENCH) compare --lycosa $(LYCOSA) --only requests,inventory,connect,memory --contenders lycosa,tarantool $(ARGS)

bench-sink: ## how many requests a second the client of all these can make and check
	$(BENCH) sink $(ARGS)

compare: release ## Lycosa beside Tarantool, Redis, memcached, MariaDB, PostgreSQL and RocksDB; writes docs/benchmarks.md. QUICK=1: within ten minutes
	$(BENCH) compare --lycosa $(LYCOSA) --document docs/benchmarks.md $(if $(QUICK),--quick) $(ARGS)

bench-crash: release ## kills the server during the inventory again and again; nothing acknowledged may be lost
	$(BENCH) crash --server $(LYCOSA) $(ARGS)

voting: release ## the voting service of examples/voting on nginx and PHP; prints its address
	python3 examples/voting/service.py run --server $(LYCOSA) $(ARGS)

voting-load: release ## measures it with wrk, beside Tarantool and a stub without a database
	python3 examples/voting/service.py load --server $(LYCOSA) $(ARGS)

voting-test: release ## its tests, those in a browser among them; says what is missing
	python3 examples/voting/tests.py --server $(LYCOSA) $(ARGS)

micro: ## index, row, codec, log and Lua alone, each beside what the machine allows; CASE=name for some
	$(CARGO) bench --quiet -p lycosa-bench --bench micro -- $(CASE)

torture: release ## kills, pauses and starves a server for ten minutes on this machine's disk; ARGS as of `lycosa torture`
	$(LYCOSA) torture --seconds 600 $(ARGS)

golden-record: ## renews the golden answers from an installed tarantool
	tests/scripts/record.py $(ARGS)

golden-check: release ## the golden scripts against Lycosa: every script that it answers otherwise
	tests/scripts/record.py --check --quiet --server $(abspath $(LYCOSA)) $(ARGS)

differential: release ## random statements and requests to an installed tarantool and to Lycosa; ARGS='--areas text --details 2'
	tests/differential/run.py --lycosa $(abspath $(LYCOSA)) $(ARGS)

sim: ## SEEDS=n runs of the whole server on a simulated machine: faults, crashes, recoveries, checks
	$(SIM) seeds --count $(SEEDS) $(ARGS)

sim-crash: ## the power goes at every change of a workload, in every way, and again in every recovery
	$(SIM) crash-points $(ARGS)
	$(SIM) crash-points --one-directory $(ARGS)
	$(SIM) --disk crash-points $(ARGS)

sim-histories: ## every sequence of up to three operations, the power gone at every change of each
	$(SIM) histories --length 3 $(ARGS)

sim-errors: ## the N-th error of files and memory, for every N
	$(SIM) errors $(ARGS)
	$(SIM) --disk errors $(ARGS)

sim-planted: ## bugs put in on purpose, each of which must be found
	$(CARGO) run --quiet --profile sim -p sim --features planted-bugs -- planted $(ARGS)

fuzz: ## each fuzz target for a minute; needs a nightly compiler and cargo-fuzz
	@test -d fuzz || { echo 'there are no fuzz targets here'; exit 1; }
	@$(CARGO) fuzz --version >/dev/null || { echo 'install it first: cargo install cargo-fuzz'; exit 1; }
	for target in $$($(CARGO) +nightly fuzz list); do \
	    $(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; done

damage: ## opens a database on every single flipped bit of a snapshot and a log; most of an hour
	FLIP_STRIDE=1 $(CARGO) test --release -p lycosa-tests --test damaged_files -- --nocapture every_flip_is_refused

clean: ## removes what was built; data stays
	$(CARGO) clean

.PHONY: help run test check build release lint fmt options-page doc-links bench bench-inventory bench-compare bench-sink bench-crash compare voting voting-load voting-test micro \
    torture \
    golden-record golden-check differential fuzz damage sim sim-crash sim-histories sim-errors sim-planted clean
