# The static libraries, in build/deps/ARCH/{include,lib,uapi}; run by scripts/setup from the top of
# the tree: `make -f mk/deps.mk x86_64 aarch64`.
#
# A stamp is written last, so what was interrupted is done again. Its name carries a hash of
# everything that says how libraries are built: after a change there they are built anew, whatever
# the time stamps of a fresh checkout or an unpacked cache say.

DEPS      := build/deps
LOG       := build/log
HOST_ARCH := $(shell uname -m)
ARCHES    := x86_64 aarch64
LIBRARIES := json-c deflate zstd lzma iberty cmocka

# library -> the distribution's source package
PACKAGE_musl    := musl
PACKAGE_json-c  := json-c
PACKAGE_deflate := libdeflate
PACKAGE_zstd    := libzstd
PACKAGE_lzma    := xz-utils
PACKAGE_iberty  := libiberty
PACKAGE_cmocka  := cmocka

RECIPE := $(shell cat scripts/build-library scripts/musl-gcc scripts/musl.specs | sha256sum | cut -c1-12)

.PHONY: $(ARCHES)
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules

$(DEPS)/src/%/.fetched:
	@scripts/quietly $(LOG)/fetch-$*.log "fetching   $*" scripts/fetch-source $* $(@D)
	@touch $@

# $(1) = library, $(2) = architecture. (musl for the machine itself comes compiled: no source.)
define library
$(DEPS)/$(2)/.$(1)-$(RECIPE): $(if $(filter musl-$(HOST_ARCH),$(1)-$(2)),,$(DEPS)/src/$(PACKAGE_$(1))/.fetched)
	@rm -f $(DEPS)/$(2)/.$(1)-*
	+@scripts/quietly $(LOG)/$(1)-$(2).log "building   $(1) for $(2)" \
		scripts/build-library $(1) $(2) $(DEPS)/src/$(PACKAGE_$(1)) $(DEPS)/$(2) $(DEPS)/work/$(1)-$(2)
	@rm -rf $(DEPS)/work/$(1)-$(2)
	@touch $$@
endef

# All the others are compiled against musl.
define architecture
$(1): $(foreach l,musl $(LIBRARIES),$(DEPS)/$(1)/.$(l)-$(RECIPE)) ; @:
$(LIBRARIES:%=$(DEPS)/$(1)/.%-$(RECIPE)): $(DEPS)/$(1)/.musl-$(RECIPE)
endef

$(foreach a,$(ARCHES),$(eval $(call architecture,$(a))))
$(foreach a,$(ARCHES),$(foreach l,musl $(LIBRARIES),$(eval $(call library,$(l),$(a)))))
