# tprof: one Makefile, not recursive. `make help` lists the targets.
#
# Variables: CC, CFLAGS, PREFIX, DESTDIR, SANITIZE (address,undefined or thread: objects go to build-SANITIZE/), V=1 shows
# commands, PYTHON (an interpreter that has PyTorch, for end-to-end tests; `make demo` and `make check` make one in .venv),
# CUDA and TORCH_CUDA (test/doubles/simgpu/simgpu.mk).

PREFIX ?= /usr/local
DESTDIR ?=
SANITIZE ?=
V ?= 0
comma := ,
BUILD := build$(if $(SANITIZE),-$(subst $(comma),-,$(SANITIZE)))

PKG_CONFIG ?= pkg-config
TEST_PYTHON = $(or $(PYTHON),$(wildcard .venv/bin/python),python3)
CFLAGS ?= -O2 -g
WARNINGS := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
	-Wvla -Wundef -Wwrite-strings -Wformat=2 -Wno-format-nonliteral
# Hot-path state is initial-exec TLS (the library is always preloaded); unwind tables because C++ exceptions cross us.
HOUSE := -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-strict-aliasing -pthread \
	-fasynchronous-unwind-tables -fno-omit-frame-pointer -MMD -MP
SANITIZER := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all)
ALL_CFLAGS = $(HOUSE) $(WARNINGS) $(CFLAGS) $(SANITIZER) -DTP_VERSION='"$(VERSION)"'
VERSION := 0.1.0

AGENT := $(filter-out agent/entry.c,$(wildcard agent/*.c))
OUTPUT := $(wildcard output/*.c)
LIBRARY := agent/entry.c $(wildcard interpose/*.c) $(wildcard collectors/*/*.c)
TOOLS := $(wildcard tools/*.c)
UNIT := $(wildcard test/unit/*.c test/unit/*/*.c)
objects = $(patsubst %.c,$(BUILD)/%.o,$(1))

# zlib is linked statically where its archive exists, so that a conda environment's own libz is not displaced.
ZLIB_STATIC := $(shell $(CC) -print-file-name=libz.a)
ZLIB := $(if $(findstring /,$(ZLIB_STATIC)),$(ZLIB_STATIC),-lz)
# Statically too: `tprof run --config` then works on a machine that has no jansson.
JANSSON_STATIC := $(shell $(CC) -print-file-name=libjansson.a)
JANSSON := $(if $(findstring /,$(JANSSON_STATIC)),$(JANSSON_STATIC),$(shell $(PKG_CONFIG) --libs jansson 2>/dev/null))
CHECK_LIBS := $(shell $(PKG_CONFIG) --libs check 2>/dev/null)

ifeq ($(V),0)
Q := @
say = @printf '  %-5s %s\n' $(1) $(2)
endif

.DEFAULT_GOAL := all
.PHONY: all
all: $(BUILD)/libtprof.so $(BUILD)/tprof ## build/libtprof.so and build/tprof

# Objects depend on the flags they were built with: changed flags rebuild, unchanged ones do not.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CFLAGS)' | cmp -s - $@ || echo '$(CC) $(ALL_CFLAGS)' > $@
.PHONY: FORCE
FORCE:

$(BUILD)/%.o: %.c $(BUILD)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# What the library, the command and the tests share. Members are taken as they are needed.
$(BUILD)/libcore.a: $(call objects,$(AGENT) $(OUTPUT))
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# What is exported stands in symbols.def alone.
$(BUILD)/libtprof.map: interpose/symbols.def
	@mkdir -p $(@D)
	$(Q){ echo '{ global:'; sed -n 's/^SYMBOL(\([^,]*\),.*/  \1;/p' $<; echo 'local: *; };'; } > $@

$(BUILD)/libtprof.so: $(call objects,$(LIBRARY) $(AGENT) $(OUTPUT)) $(BUILD)/libtprof.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $(filter %.o,$^) $(SANITIZER) $(LDFLAGS) -Wl,--version-script=$(BUILD)/libtprof.map \
		-Wl,-z,now -Wl,-z,nodelete $(if $(SANITIZE),,-Wl$(comma)--no-undefined) -Wl,--exclude-libs,ALL -Wl,--gc-sections \
		$(ZLIB) -pthread -ldl

$(BUILD)/tprof: $(call objects,$(TOOLS)) $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(SANITIZER) $(LDFLAGS) $(ZLIB) $(JANSSON) -pthread -ldl -lm

# Of the collectors, what can be tested without PyTorch.
UNIT_COLLECTORS := $(addprefix collectors/torch/,tensor.c abi.c calibrate.c calibrate_inputs.c sentinels.c catch.c peek.c)
$(BUILD)/test/unit/run: $(call objects,$(UNIT) $(UNIT_COLLECTORS)) $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(SANITIZER) $(LDFLAGS) $(ZLIB) $(CHECK_LIBS) $(JANSSON) -pthread -ldl -lm

# Programs that tests run: test/tools/NAME.c. They may use what the unit tests share.
$(BUILD)/test/tools/%: $(BUILD)/test/tools/%.o $(BUILD)/test/unit/trace_feed.o $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(SANITIZER) $(LDFLAGS) $(ZLIB) -pthread -ldl -lm

# Check's parent frees millions of messages, and LeakSanitizer goes through the parent's quarantine at each child's end.
.PHONY: unit
unit: $(BUILD)/test/unit/run ## unit tests alone (CK_RUN_SUITE=name picks one)
	ASAN_OPTIONS=quarantine_size_mb=16:$$ASAN_OPTIONS $(BUILD)/test/unit/run

$(BUILD)/test/property/schedule_driver: $(call objects,test/property/schedule_driver.c) $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(SANITIZER) $(LDFLAGS) -pthread -ldl

.PHONY: property
property: $(BUILD)/test/property/schedule_driver ## the schedule against torch.profiler's own (PYTHON has PyTorch)
	@if $(TEST_PYTHON) -c 'import torch' 2>/dev/null; \
	then $(TEST_PYTHON) test/property/test_schedule.py $<; \
	else echo 'property: skipped, $(TEST_PYTHON) has no torch (PYTHON=... names another)'; fi

.PHONY: check
check: all rules unit simgpu-unit property scale e2e sanitize ## every test

# PYTHON needs torch and pytest; without them these tests are left out, by name. JUDGES has the programs that read our files.
.PHONY: e2e
e2e: all drivers doubles ## the agent on a real PyTorch, and real readers of its files (JUDGES=python that has them)
	@if $(TEST_PYTHON) -c 'import torch, pytest' 2>/dev/null; \
	then $(TEST_PYTHON) -m pytest -q -rs test/e2e --ignore=test/e2e/test_command.py; \
	else echo 'e2e: skipped, $(TEST_PYTHON) has no torch and pytest (PYTHON=... names another)'; fi

# A fake libtorch, and programs that are the whole agent over it.
$(BUILD)/test/doubles/libtorch_cpu.so: $(BUILD)/test/doubles/fake_torch.o $(BUILD)/test/doubles/fake_tensors.o
$(BUILD)/test/doubles/libtorch_python.so: $(BUILD)/test/doubles/fake_torch_python.o
$(BUILD)/test/doubles/libtorch%.so:
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $^ $(SANITIZER) $(LDFLAGS) -pthread
# Fails calls of libtprof.so: preloaded behind it.
$(BUILD)/test/doubles/libfail.so: $(BUILD)/test/doubles/fail.o
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $^ $(LDFLAGS) -pthread -ldl
$(BUILD)/test/doubles/libkeep.so: $(BUILD)/test/doubles/keep.o
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $^ $(LDFLAGS)
$(call objects,$(wildcard test/doubles/*.c)): HOUSE += -fvisibility=default -Wno-missing-prototypes

include test/doubles/simgpu/simgpu.mk

THREADS := $(patsubst %.c,$(BUILD)/%,$(wildcard test/threads/*.c))
$(THREADS): $(BUILD)/%: $(BUILD)/%.o $(call objects,$(LIBRARY)) $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(SANITIZER) $(LDFLAGS) -rdynamic $(ZLIB) -pthread -ldl -lm

# Programs that know nothing of the agent, which is preloaded: every way to fork and to end; bad places, long runs and faults.
JOBS := $(BUILD)/test/processes/processes $(BUILD)/test/places/job
$(JOBS): $(BUILD)/%: $(BUILD)/%.o
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(SANITIZER) $(LDFLAGS) -pthread -ldl
$(BUILD)/test/processes/processes: $(call objects,$(addprefix test/processes/,children.c ends.c signals.c))
-include $(patsubst %.c,$(BUILD)/%.d,$(wildcard test/processes/*.c))

.PHONY: doubles
doubles: $(THREADS) $(JOBS) $(addprefix $(BUILD)/test/doubles/,libtorch_cpu.so libtorch_python.so libfail.so libkeep.so)

$(BUILD)/test/steady/steady: $(call objects,test/steady/steady.c) $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(SANITIZER) $(LDFLAGS) $(ZLIB) -pthread -ldl -lm

.PHONY: steady
steady: $(BUILD)/test/steady/steady ## page faults and system calls of a recording thread
	$<

$(BUILD)/test/scale/model_scale: $(call objects,test/scale/model_scale.c) $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(SANITIZER) $(LDFLAGS) $(ZLIB) -pthread -ldl -lm

.PHONY: scale
scale: $(BUILD)/test/scale/model_scale ## a hundred million ranges through the model, in bounded memory
	$< 100000000

.PHONY: bench
bench: all ## what an operator costs bare, dormant, waiting, recording, and under torch.profiler
	$(TEST_PYTHON) test/bench/bench.py $(BUILD)/libtprof.so $(BUILD)/bench.json

.PHONY: matrix
MATRIX_TESTS ?= test/e2e
matrix: all drivers doubles ## the end-to-end tests on other versions of PyTorch: MATRIX="PYTHON...", MATRIX_TESTS=files
	test/matrix/matrix.sh "$(MATRIX)" $(MATRIX_TESTS)

.PHONY: demo
demo: ## gets what is needed, builds, runs a small training under the agent
	tools/setup.sh
	$(MAKE) all
	tools/demo.sh

.PHONY: install
install: all ## the library, the command, man pages and completions (PREFIX, DESTDIR)
	install -D -m 755 $(BUILD)/libtprof.so $(DESTDIR)$(PREFIX)/lib/libtprof.so
	install -D -m 755 $(BUILD)/tprof $(DESTDIR)$(PREFIX)/bin/tprof
	install -D -m 644 man/tprof.1 $(DESTDIR)$(PREFIX)/share/man/man1/tprof.1
	install -D -m 644 man/libtprof.7 $(DESTDIR)$(PREFIX)/share/man/man7/libtprof.7
	install -D -m 644 completions/tprof.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/tprof

.PHONY: uninstall
uninstall: ## takes away what install brought
	rm -f $(DESTDIR)$(PREFIX)/lib/libtprof.so $(DESTDIR)$(PREFIX)/bin/tprof \
		$(DESTDIR)$(PREFIX)/share/man/man1/tprof.1 $(DESTDIR)$(PREFIX)/share/man/man7/libtprof.7 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/tprof

# TSan's runtime must be in the program, so the agent is linked in; ASan's is preloaded before the agent.
.PHONY: sanitize
sanitize: ## unit tests, fuzz targets and a training under ASan and UBSan, the agent over a fake libtorch under TSan
	$(MAKE) unit all fuzz-short SANITIZE=address,undefined
	$(MAKE) doubles all SANITIZE=thread
	@if $(TEST_PYTHON) -c 'import pytest' 2>/dev/null; \
	then TPROF_BUILD=build-thread $(TEST_PYTHON) -m pytest -q -rs test/e2e/test_doubles.py; \
	else echo 'sanitize: threads skipped, $(TEST_PYTHON) has no pytest'; fi
	@if $(TEST_PYTHON) -c 'import torch, pytest' 2>/dev/null; \
	then TPROF_BUILD=build-address-undefined $(TEST_PYTHON) -m pytest -q test/e2e/test_job_unchanged.py -k 'same_output and mlp_adam'; \
	else echo 'sanitize: training skipped, $(TEST_PYTHON) has no torch'; fi

.PHONY: rules
rules: all ## who includes whom; what the library exports and calls
	test/rules/layers.sh
	test/rules/symbols.sh $(BUILD)/libtprof.so

.PHONY: clean
clean: ## removes every build folder
	rm -rf build build-*

.PHONY: help
help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

-include $(BUILD)/test/property/schedule_driver.d
-include $(patsubst %.c,$(BUILD)/%.d,$(AGENT) $(OUTPUT) $(LIBRARY) $(TOOLS) $(UNIT) $(wildcard test/tools/*.c))

# Programs that tests run, one file each.
DRIVERS := $(patsubst test/tools/%.c,%,$(wildcard test/tools/*_driver.c))
$(BUILD)/test/tools/check_driver: $(call objects,tools/check.c tools/findings.c $(wildcard tools/trace_*.c))
$(addprefix $(BUILD)/test/tools/,$(DRIVERS)): $(BUILD)/test/tools/%: $(BUILD)/test/tools/%.o $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $(filter %.o,$^) $(BUILD)/libcore.a $(SANITIZER) $(LDFLAGS) $(ZLIB) -pthread -ldl -lm

.PHONY: drivers
drivers: $(addprefix $(BUILD)/test/tools/,$(DRIVERS))

# Fuzz targets: test/fuzz/fuzz_NAME.c, with kept inputs in test/fuzz/corpus/NAME/. Where clang has libFuzzer `make fuzz`
# runs them by it, else by test/fuzz/standalone.c, as `make check` does. FUZZ=NAME... chooses.
FUZZ ?= $(patsubst test/fuzz/fuzz_%.c,%,$(wildcard test/fuzz/fuzz_*.c))
FUZZ_SECONDS ?= 20
FUZZ_ITERATIONS ?= 2000
FUZZ_BUILD = $(shell echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | \
	clang -fsanitize=fuzzer,address,undefined -x c - -o /dev/null 2>/dev/null && \
	echo CC=clang SANITIZE=address,undefined,fuzzer-no-link || echo SANITIZE=address,undefined)
FUZZ_ENGINE = $(if $(findstring fuzzer,$(SANITIZE)),-fsanitize=fuzzer,$(BUILD)/test/fuzz/standalone.o)
fuzz_corpus = $(wildcard test/fuzz/corpus/$(1)) $(if $(filter trace_in trace_table judge,$(1)),test/cases/check)
FUZZ_TARGETS := $(addprefix $(BUILD)/test/fuzz/fuzz_,$(FUZZ))

$(BUILD)/test/fuzz/fuzz_settings: $(call objects,tools/jansson_table.c)
$(BUILD)/test/fuzz/fuzz_judge: $(call objects,tools/findings.c $(wildcard tools/trace_*.c))
$(BUILD)/test/fuzz/fuzz_spool: $(call objects,test/fuzz/spool_sample.c)
$(FUZZ_TARGETS): $(BUILD)/test/fuzz/fuzz_%: $(BUILD)/test/fuzz/fuzz_%.o $(BUILD)/test/fuzz/standalone.o $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $(filter-out %/standalone.o,$(filter %.o,$^)) $(FUZZ_ENGINE) $(BUILD)/libcore.a $(SANITIZER) \
		$(LDFLAGS) $(ZLIB) $(JANSSON) -pthread -ldl -lm

.PHONY: fuzz
fuzz: ## every parser, fuzzed for FUZZ_SECONDS each under ASan and UBSan (FUZZ=NAME... chooses)
	$(MAKE) $(FUZZ_BUILD) fuzz-run

.PHONY: fuzz-run
fuzz-run: $(FUZZ_TARGETS)
ifneq ($(findstring fuzzer,$(SANITIZE)),)
	@$(foreach name,$(FUZZ),mkdir -p $(BUILD)/corpus/$(name) && echo fuzz: $(name) && \
		$(BUILD)/test/fuzz/fuzz_$(name) -timeout=60 -max_total_time=$(FUZZ_SECONDS) -verbosity=0 -print_final_stats=1 \
		-artifact_prefix=$(BUILD)/test/fuzz/$(name)- $(BUILD)/corpus/$(name) $(call fuzz_corpus,$(name)) && ) true
else
	@$(foreach name,$(FUZZ),$(BUILD)/test/fuzz/fuzz_$(name) -t $(FUZZ_SECONDS) \
		$$(find $(call fuzz_corpus,$(name)) -type f | sort) && ) true
endif

.PHONY: fuzz-short
fuzz-short: $(FUZZ_TARGETS) ## the kept inputs of every fuzz target, and some mutations of them
	@$(foreach name,$(FUZZ),$(BUILD)/test/fuzz/fuzz_$(name) -n $(FUZZ_ITERATIONS) -t 5 \
		$$(find $(call fuzz_corpus,$(name)) -type f | sort) && ) true
check: fuzz-short
-include $(patsubst %.c,$(BUILD)/%.d,$(wildcard test/fuzz/*.c))

# Pages that are made from the tables of settings and commands; committed, and check fails where one is not current.
PAGES := docs/settings.md man/tprof.1 man/libtprof.7 completions/tprof.bash
$(BUILD)/docs/generate: $(call objects,docs/generate.c tools/options.c) $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $(filter %.o,$^) $(BUILD)/libcore.a $(SANITIZER) $(LDFLAGS) -pthread -ldl -lm

.PHONY: docs
docs: $(BUILD)/docs/generate ## makes docs/settings.md, the man pages and the completions anew
	@for page in $(PAGES); do $< < docs/templates/$${page##*/} > $$page || exit 1; done

.PHONY: docs-current
docs-current: $(BUILD)/docs/generate
	@for page in $(PAGES); do $< < docs/templates/$${page##*/} | cmp -s - $$page || \
		{ echo "$$page is not current: make docs"; exit 1; }; done
check: docs-current
-include $(BUILD)/docs/generate.d

.PHONY: command
command: all ## the command (PYTHON needs pytest; what needs torch is left out without it)
	@if $(TEST_PYTHON) -c 'import pytest' 2>/dev/null; \
	then $(TEST_PYTHON) -m pytest -q test/e2e/test_command.py; \
	else echo 'command: skipped, $(TEST_PYTHON) has no pytest (PYTHON=... names another)'; fi
check: command
