/* Fuzzing of DWARF expressions: 16 words that registers and memory hold, then the expression. */
#include "fuzz.h"
#include "unwind/expression.h"

#define WORDS 16
#define STACK UINT64_C(0x7ffe00000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader r = reader_over((struct bytes){data, size});
	struct bytes stack = bytes_part((struct bytes){data, size}, 0, WORDS * 8);
	struct memory_piece piece = {STACK, stack};
	struct map map = {.start = STACK,
			  .end = STACK + 4096,
			  .permissions = "rw-p",
			  .path = ""};
	struct snapshot snapshot = {.arch = &arch_x86_64, .maps = &map, .map_count = 1};
	struct modules modules = {.count = 0};
	struct thread thread = {.pieces = &piece, .piece_count = 1};
	struct memory memory = memory_of_thread(&snapshot, &modules, &thread);
	struct frame_registers registers = {.known = 0xffff};
	struct expression_input input = {&registers, &memory, 0x555555000000, true, STACK + 64};
	struct ending ending;
	uint64_t value;

	for (size_t i = 0; i < WORDS; i++)
		registers.at[i] = i % 2 ? STACK + read_u64(&r) % 256 : read_u64(&r);
	if (reader_failed(&r))
		return 0;
	expression_value(bytes_from((struct bytes){data, size}, WORDS * 8), &input, &value,
			 &ending);
	return 0;
}
