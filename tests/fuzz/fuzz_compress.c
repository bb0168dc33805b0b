/* Fuzzing of compressed contents: the first byte chooses the form. */
#include "base/budget.h"
#include "elf/compress.h"
#include "fuzz.h"

static volatile uint8_t sum;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arena arena;
	struct bytes in = bytes_from((struct bytes){data, size}, 1), out = {NULL, 0};
	struct packed packed;
	bool ok = false;

	if (size < 1)
		return 0;
	budget_allow(UINT64_C(64) << 20);
	switch (data[0] % 3) {
	case 0:
		ok = packed_section(in, &packed, NULL) &&
		     packed_load(&arena, &packed, &out, NULL);
		break;
	case 1:
		ok = packed_zdebug(in, &packed, NULL) &&
		     packed_load(&arena, &packed, &out, NULL);
		break;
	default:
		ok = decompress_xz(&arena, in, &out, NULL);
	}
	for (size_t i = 0; ok && i < out.len; i += 4096)
		sum = (uint8_t)(sum + out.at[i]);
	arena_reset(&arena);
	return 0;
}
