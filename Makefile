# tprof: one Makefile, not recursive. `make help` lists the targets.
#
# Variables: CC, CFLAGS, PREFIX, DESTDIR, SANITIZE (address,undefined or thread: objects go to build-SANITIZE/), V=1 shows
# commands, PYTHON (an interpreter that has PyTorch, for end-to-end tests; `make demo` and `make check` make one in .venv).

PREFIX ?= /usr/local
DESTDIR ?=
SANITIZE ?=
V ?= 0
comma := ,
BUILD := build$(if $(SANITIZE),-$(subst $(comma),-,$(SANITIZE)))

PKG_CONFIG ?= pkg-config
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
JANSSON := $(shell $(PKG_CONFIG) --libs jansson 2>/dev/null)
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

$(BUILD)/libtprof.so: $(call objects,$(LIBRARY) $(AGENT) $(OUTPUT)) interpose/libtprof.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $(filter %.o,$^) $(SANITIZER) $(LDFLAGS) -Wl,--version-script=interpose/libtprof.map \
		-Wl,-z,now -Wl,-z,nodelete $(if $(SANITIZE),,-Wl$(comma)--no-undefined) -Wl,--exclude-libs,ALL -Wl,--gc-sections \
		$(ZLIB) -pthread -ldl

$(BUILD)/tprof: $(call objects,$(TOOLS)) $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(SANITIZER) $(LDFLAGS) $(ZLIB) $(if $(JANSSON),-Wl$(comma)--no-as-needed $(JANSSON)) -pthread -ldl -lm

$(BUILD)/test/unit/run: $(call objects,$(UNIT)) $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(SANITIZER) $(LDFLAGS) $(ZLIB) $(CHECK_LIBS) $(JANSSON) -pthread -ldl -lm

.PHONY: unit
unit: $(BUILD)/test/unit/run ## unit tests alone (CK_RUN_SUITE=name picks one)
	$(BUILD)/test/unit/run

$(BUILD)/test/scale/%: $(BUILD)/test/scale/%.o $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(SANITIZER) $(LDFLAGS) $(ZLIB) -pthread -ldl -lm

SCALE := $(patsubst %.c,$(BUILD)/%,$(wildcard test/scale/*.c))
.PHONY: scale
scale: $(SCALE) ## large inputs: memory stays bounded, nothing is lost uncounted
	$(foreach program,$(SCALE),$(program) &&) true

# clang's libFuzzer; needs CC=clang. FUZZ_SECONDS bounds each one.
FUZZ_SECONDS ?= 60
FUZZ := $(patsubst %.c,$(BUILD)/%,$(wildcard test/fuzz/fuzz_*.c))
# Everything once more, with the fuzzer's counters in it.
FUZZ_FLAGS := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
$(BUILD)/fuzz/%.o: %.c $(BUILD)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(FUZZ_FLAGS) -c -o $@ $<

$(BUILD)/fuzz/libcore.a: $(patsubst %.c,$(BUILD)/fuzz/%.o,$(AGENT) $(OUTPUT))
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/test/fuzz/%: $(BUILD)/fuzz/test/fuzz/%.o $(BUILD)/fuzz/libcore.a
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -o $@ $^ -fsanitize=fuzzer,address,undefined $(LDFLAGS) $(ZLIB) -pthread -ldl -lm

.PHONY: fuzz
fuzz: $(FUZZ) ## fuzz targets, one after another (CC=clang)
	$(foreach program,$(FUZZ),$(program) -max_total_time=$(FUZZ_SECONDS) &&) true

.PHONY: clean
clean: ## removes every build folder
	rm -rf build build-*

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# Objects that stand in the middle of a chain of rules stay.
.SECONDARY:

-include $(wildcard $(BUILD)/fuzz/*/*.d $(BUILD)/fuzz/*/*/*.d)
-include $(patsubst %.c,$(BUILD)/%.d,$(AGENT) $(OUTPUT) $(LIBRARY) $(TOOLS) $(UNIT) $(wildcard test/scale/*.c))
