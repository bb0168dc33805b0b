# The static libraries, in build/deps/ARCH/{include,lib,uapi}; run by scripts/setup from the top of
# the tree: `make -f mk/deps.mk x86_64 aarch64`.
#
# A stamp is written last, so what was interrupted is done again. Its name carries a hash of
# everything that says how libraries are built: after a change there they are built anew. Time stamps
# say nothing (hence the `|`): a fresh checkout or an unpacked cache has any.

DEPS      := build/deps
LOG       := build/log
HOST_ARCH := $(shell uname -m)
ARCHES    := x86_64 aarch64
LIBRARIES := json-c isal zstd lzma iberty cmocka

# library -> the distribution's source package
PACKAGE_musl    := musl
PACKAGE_json-c  := json-c
PACKAGE_isal    := libisal
PACKAGE_zstd    := libzstd
PACKAGE_lzma    := xz-utils
PACKAGE_iberty  := libiberty
PACKAGE_cmocka  := cmocka

hash = $(shell cat $(1) | sha256sum | cut -c1-12)
STAMP_musl := .musl-$(call hash,scripts/build-musl)
RECIPE     := $(call hash,scripts/build-library scripts/musl-gcc mk/musl.specs)
$(foreach l,$(LIBRARIES),$(eval STAMP_$(l) := .$(l)-$(RECIPE)))

.PHONY: $(ARCHES)
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules

$(DEPS)/src/%/.fetched:
	@scripts/quietly $(LOG)/fetch-$*.log "fetching   $*" scripts/fetch-source $* $(@D)
	@touch $@

# musl of the machine's own architecture needs no source.
define musl
$(DEPS)/$(1)/$(STAMP_musl): | $(if $(filter $(HOST_ARCH),$(1)),,$(DEPS)/src/$(PACKAGE_musl)/.fetched)
	@rm -f $(DEPS)/$(1)/.musl-*
	+@scripts/quietly $(LOG)/musl-$(1).log "building   musl for $(1)" \
		scripts/build-musl $(1) $(DEPS)/src/$(PACKAGE_musl) $(DEPS)/$(1) $(DEPS)/work/musl-$(1)
	@rm -rf $(DEPS)/work/musl-$(1)
	@touch $$@
endef

# $(1) = library, $(2) = architecture
define library
$(DEPS)/$(2)/$(STAMP_$(1)): | $(DEPS)/src/$(PACKAGE_$(1))/.fetched $(DEPS)/$(2)/$(STAMP_musl)
	@rm -f $(DEPS)/$(2)/.$(1)-*
	@scripts/quietly $(LOG)/$(1)-$(2).log "building   $(1) for $(2)" \
		scripts/build-library $(1) $(2) $(DEPS)/src/$(PACKAGE_$(1)) $(DEPS)/$(2) $(DEPS)/work/$(1)-$(2)
	@rm -rf $(DEPS)/work/$(1)-$(2)
	@touch $$@
endef

define architecture
$(1): $(foreach l,musl $(LIBRARIES),$(DEPS)/$(1)/$(STAMP_$(l)))
$(call musl,$(1))
endef

$(foreach a,$(ARCHES),$(eval $(call architecture,$(a))))
$(foreach a,$(ARCHES),$(foreach l,$(LIBRARIES),$(eval $(call library,$(l),$(a)))))
