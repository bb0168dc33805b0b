/*
 * lengths: reads instructions in hex, one a line, and prints how long each is, 0 for none, for
 * tests/oracle/compare_lengths.py. Built of this file and libstacker.a.
 */
#include <stdio.h>

#include "arch/x86_64_decode.h"

int main(void)
{
	char line[256];

	while (fgets(line, sizeof line, stdin)) {
		struct x86_64_instruction found;
		uint8_t bytes[sizeof line / 2];
		size_t len = 0;
		unsigned value;

		while (sscanf(line + 2 * len, "%2x", &value) == 1)
			bytes[len++] = (uint8_t)value;
		printf("%d\n",
		       x86_64_decode((struct bytes){bytes, len}, 0, &found) ? found.size : 0);
	}
}
