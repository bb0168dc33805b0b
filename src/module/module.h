/*
 * module/module: one mapped image: which file it is, where it lies, its parts on demand.
 *
 * A module set is made once per run: from a live process (files were opened before the stop),
 * or for a capture (files are searched by path, sysroot and --executable, and checked against
 * the recorded build-id). A module whose file is missing or refused keeps a reason and still
 * translates addresses by the recorded load bias: no frame is ever lost for want of a file.
 *
 * Load bias is per mapping: va - ea, computed from the PT_LOAD whose file part the mapping
 * shows: bias = map.start - map.off + p_offset - p_vaddr (all modulo 2^64). Never "the first
 * executable segment": lld, mold and BOLT lay files out with several.
 */
#ifndef STACKER_MODULE_MODULE_H
#define STACKER_MODULE_MODULE_H

#include "base/named.h"
#include "elf/elf.h"
#include "snapshot/module_source.h"
#include "snapshot/snapshot.h"

struct module {
	const char *path;      /* as reports name it */
	const char *name;      /* last part of the path */
	const char *file_path; /* the file that was really read, or NULL */
	const char *build_id;  /* recorded or read; NULL when unknown */
	struct elf *elf; /* NULL: no file; `why` says the reason. Its sections: module_elf */
	const char *why;
	bool has_load_bias;
	uint64_t load_bias; /* recorded, or of the first executable range */
	bool is_executable; /* the program itself */
	struct elf *debug;  /* its separate debug file: module_debug_file gives it */
	bool debug_looked_for;
	const char *debug_refused;     /* "debug file X refused: WHY", or NULL */
	const char *debug_not_fetched; /* why, or NULL */
	void *cfi;                     /* unwind/'s own, lazily made */
	void *go;                      /* unwind/'s own too */
	void *symbols;                 /* symbol/'s own, lazily made */
};

/* A mapping of a module's file (or the vDSO). ea = va - bias. */
struct module_range {
	uint64_t start, end, bias;
	struct module *module;
	bool executable, writable;
};

struct modules {
	struct arena *arena;
	struct module *at;
	size_t count;
	struct module_range *ranges; /* by address, disjoint */
	size_t range_count;
	const char *root; /* of a live process that has another root than ours; or NULL */
	int root_dir;     /* the same, opened */
};

/* How to look for a module's file when there is no live process. */
struct module_search {
	const struct named_file *executable; /* --executable; or NULL */
	const char *sysroot;                 /* put before every recorded path; or NULL */
	int sysroot_dir;                     /* the same, opened */
	const char
		*build_id; /* modules with this one are the executable; NULL: the flagged one */
	bool any_build_id; /* a file with another build-id is taken all the same */
};

/* Modules of a live process: `files[i]` is the opened descriptor for snapshot->modules[i], or
 * -1 with the reason in sources[i]. A file that is not proved to be the mapped one, by its inode
 * or its build-id, is refused. Descriptors stay the caller's. */
void modules_open_live(struct modules *out, struct arena *arena,
		       const struct snapshot *snapshot, const int *files,
		       const struct module_source *sources);

/* Modules of a capture. Files that cannot be used leave their reason in the module. False
 * only when --executable was given and cannot be used at all: unreadable, not ELF, another
 * architecture or another build-id (the text says which and the cure). */
bool modules_open_offline(struct modules *out, struct arena *arena,
			  const struct snapshot *snapshot, const struct module_search *search,
			  struct err *e);

/* For modules of a live process that has a root of its own: their files lie under `root`
 * here, for what is looked for beside them. */
void modules_lie_under(struct modules *modules, const char *root);

/* A single file as a module with load bias 0 (addr2line). */
bool module_open_file(struct module *out, struct arena *arena, const char *path, struct err *e);
bool module_open_named(struct module *out, struct arena *arena, const struct named_file *file,
		       struct err *e);

/* The module's file with its sections known, or NULL: read at the first question, since most
 * modules of a process are in no frame. */
struct elf *module_elf(struct module *module);

/* The separate debug file of a module that has its file, or NULL; looked for once, at the
 * first question, whoever asks: call frame information and symbols may both be in it. */
struct debugfiles;
struct elf *module_debug_file(struct module *module, struct debugfiles *files);

/* The range that holds va, or NULL. O(log n). */
const struct module_range *module_range_at(const struct modules *modules, uint64_t va);

#endif
