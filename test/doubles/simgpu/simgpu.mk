# The simulated GPU, and in front of it what PyTorch links: test/doubles/simgpu/README.md.
#
# libsimgpu.so needs nothing. The libraries in front need CUDA's headers: CUDA=folder of a toolkit with CUPTI. Those of cuBLAS,
# cuDNN and NCCL, and whole export lists, come from a CUDA build of PyTorch: TORCH_CUDA=python that has one.
CUDA ?= $(wildcard /usr/local/cuda)
TORCH_CUDA ?=
SIM := $(BUILD)/test/doubles/simgpu
SIM_CUDA := $(if $(CUDA),$(if $(wildcard $(CUDA)/include/cupti.h),$(CUDA)))
SIM_SITE := $(if $(TORCH_CUDA),$(shell $(TORCH_CUDA) -c 'import os, nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null))
SIM_INCLUDE := $(wildcard $(addsuffix /include,$(SIM_CUDA) $(SIM_SITE)/cu13 $(SIM_SITE)/cudnn $(SIM_SITE)/nccl))
SIM_CFLAGS := -Itest/doubles/simgpu -I$(SIM) $(addprefix -isystem ,$(SIM_INCLUDE))
space := $(subst ,, )

SIM_CORE := $(addprefix $(SIM)/,clock.o faults.o calls.o devices.o memory.o functions.o place.o streams.o events.o graphs.o \
	buffers.o sizes.o)
SIM_FRONT := $(if $(SIM_CUDA),libcudart.so.13 libcudart.so.12 libcuda.so.1 libcupti.so.13 libcupti.so.12)
SIM_LIBRARIES := $(if $(SIM_SITE),libcublas.so.13 libcublasLt.so.13 libcudnn.so.9 libnccl.so.2)
sim_real = $(firstword $(wildcard $(SIM_SITE)/*/lib/$(1) $(SIM_CUDA)/lib/$(1) $(SIM_CUDA)/lib64/$(1)))

$(SIM)/libsimgpu.so: $(SIM_CORE)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $^ $(SANITIZER) $(LDFLAGS) -Wl,-soname,libsimgpu.so -pthread

# $(1) name, $(2) file, $(3) bodies
define sim_library
$(SIM)/$(1)_calls.c: test/doubles/simgpu/exports.py $(wildcard test/doubles/simgpu/$(1).def) $(if $(call sim_real,$(2)),$(call sim_real,$(2)))
	$$(call say,GEN,$$@)
	@mkdir -p $$(@D)
	$$(Q)CC='$$(CC)' CUDA_INCLUDE=$$(subst $$(space),:,$$(strip $$(SIM_INCLUDE))) REAL=$(call sim_real,$(2)) \
		python3 $$< $(1) $$(@D)
$(SIM)/$(1)_rest.c $(SIM)/sim_$(1).h $(SIM)/$(1).map: $(SIM)/$(1)_calls.c ;
$(addprefix $(SIM)/,$(addsuffix .o,$(filter-out timebase,$(3)))): $(SIM)/$(1)_calls.c
$(SIM)/$(2): $(addprefix $(SIM)/,$(1)_calls.o $(1)_rest.o $(addsuffix .o,$(3))) $(SIM)/$(1).map $(SIM)/libsimgpu.so
	$$(call say,LD,$$@)
	$$(Q)$$(CC) -shared -o $$@ $$(filter %.o,$$^) $$(SANITIZER) $$(LDFLAGS) -Wl,-soname,$(2) -Wl,-Bsymbolic-functions \
		-Wl,--version-script=$(SIM)/$(1).map -L$(SIM) -lsimgpu -Wl,-rpath,'$$$$ORIGIN' -pthread -ldl
endef
$(eval $(call sim_library,cudart,libcudart.so.13,$(addprefix cudart_,launch memory streams graphs devices)))
$(eval $(call sim_library,cuda,libcuda.so.1,driver))
$(eval $(call sim_library,cupti,libcupti.so.13,cupti records timebase))
$(eval $(call sim_library,cublas,libcublas.so.13,cublas matrix library))
$(eval $(call sim_library,cublasLt,libcublasLt.so.13,cublaslt matrix library))
$(eval $(call sim_library,cudnn,libcudnn.so.9,cudnn library))
$(eval $(call sim_library,nccl,libnccl.so.2,nccl library))

# The same under the name of CUDA 12. The shell looks for the objects: make's own view of the folder is older than they are.
$(SIM)/lib%.so.12: $(SIM)/lib%.so.13
	$(call say,LD,$@)
	$(Q)sed 's/so\.13/so.12/' $(SIM)/$*.map > $(SIM)/$*12.map
	$(Q)$(CC) -shared -o $@ $(SIM)/$*_*.o $(if $(filter cupti,$*),$(addprefix $(SIM)/,cupti.o records.o timebase.o)) \
		$(SANITIZER) $(LDFLAGS) -Wl,-soname,$(@F) -Wl,-Bsymbolic-functions -Wl,--version-script=$(SIM)/$*12.map \
		-L$(SIM) -lsimgpu -Wl,-rpath,'$$ORIGIN' -pthread -ldl

# Rules of their own: a target's own variables would reach $(BUILD)/flags. These libraries are loaded late and have much TLS.
sim_compile = $(CC) $(ALL_CFLAGS) -fvisibility=default -ftls-model=global-dynamic $(SIM_CFLAGS) -c -o $@ $<
$(SIM)/%.o: test/doubles/simgpu/%.c $(BUILD)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(sim_compile)
$(SIM)/%.o: $(SIM)/%.c $(BUILD)/flags
	$(call say,CC,$<)
	$(Q)$(sim_compile)

.PHONY: simgpu
simgpu: $(addprefix $(SIM)/,libsimgpu.so $(SIM_FRONT) $(SIM_LIBRARIES)) ## the simulated GPU (CUDA, TORCH_CUDA: simgpu.mk)
	@$(if $(SIM_CUDA),true,echo 'simgpu: the CUDA libraries skipped, no toolkit with CUPTI headers (CUDA=... names one)')
	@$(if $(SIM_SITE),true,echo 'simgpu: cuBLAS, cuDNN and NCCL skipped, no CUDA build of PyTorch (TORCH_CUDA=python names one)')
e2e: $(addprefix $(SIM)/,$(filter libcupti%,$(SIM_FRONT)))

# Its own tests: those of libsimgpu.so need nothing, those of records and CUPTI need the headers.
SIM_UNIT := main check_clock check_faults check_buffers check_sizes $(if $(SIM_CUDA),check_records check_cupti)
SIM_TESTED := $(SIM)/libsimgpu.so $(if $(SIM_CUDA),$(addprefix $(SIM)/,records.o libcudart.so.13 libcupti.so.13)) $(SIM)/timebase.o
$(BUILD)/test/simgpu/%.o: test/simgpu/%.c $(BUILD)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(SIM_CFLAGS) $(if $(SIM_CUDA),-DSIM_CUDA) -c -o $@ $<
$(BUILD)/test/simgpu/run: $(addprefix $(BUILD)/test/simgpu/,$(addsuffix .o,$(SIM_UNIT))) $(SIM_TESTED)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $^ $(SANITIZER) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/../doubles/simgpu' $(CHECK_LIBS) -pthread

.PHONY: simgpu-unit
simgpu-unit: $(BUILD)/test/simgpu/run ## tests of the simulated GPU itself
	$<
	@$(if $(SIM_CUDA),true,echo 'simgpu-unit: suites records and cupti skipped, no toolkit with CUPTI headers (CUDA=... names one)')

-include $(wildcard $(SIM)/*.d $(BUILD)/test/simgpu/*.d)
