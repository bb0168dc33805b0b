# The BPF program (src/process/bpf), compiled and embedded by scripts/build-bpf: one header for each
# architecture in build/bpf. Included by the Makefile, which says who depends on it.

BPF_DIR     := build/bpf
BPF_HEADERS := $(foreach a,x86_64 aarch64,$(BPF_DIR)/$(a)/threads.lskel.h)
# musl's compiler looks into no folder of the machine; libbpf's headers are the only ones wanted.
BPF_INCLUDE  = -isystem $(BPF_DIR)/$(1) -isystem $(BPF_DIR)/include

# What is missing to build it, or the versions of what is there.
$(BPF_DIR)/tools: FORCE | setup-bpf
	$(call keep,$(shell scripts/build-bpf --tools))

$(BPF_HEADERS): $(BPF_DIR)/%/threads.lskel.h: src/process/bpf/threads.bpf.c src/process/bpf/record.h \
		scripts/build-bpf $(BPF_DIR)/tools
	$(call say,BPF,$@)
	@mkdir -p $(BPF_DIR)/include && ln -sfn /usr/include/bpf $(BPF_DIR)/include/bpf
	$(Q)scripts/build-bpf $* $@
