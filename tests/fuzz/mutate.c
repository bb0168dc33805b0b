/*
 * A small runner in libFuzzer's place: runs the entry on files as they are, then on mutations of them
 * that a seed determines. For the test suite; `make fuzz` uses libFuzzer.
 *
 *     mutate RUNS SEED FILE...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define SIZE_MAX_RUN (1u << 16)

struct sample {
	uint8_t *at;
	size_t size;
};

static uint64_t dice_state;

/* xorshift64* */
static uint64_t dice(uint64_t below)
{
	dice_state ^= dice_state >> 12;
	dice_state ^= dice_state << 25;
	dice_state ^= dice_state >> 27;
	return (dice_state * UINT64_C(2685821657736338717) >> 16) % below;
}

static struct sample sample_read(const char *path)
{
	struct sample sample = {malloc(SIZE_MAX_RUN), 0};
	FILE *file = fopen(path, "rb");

	if (!file || !sample.at) {
		perror(path);
		exit(2);
	}
	sample.size = fread(sample.at, 1, SIZE_MAX_RUN, file);
	fclose(file);
	return sample;
}

/* In memory of exactly this size, so that the sanitizer sees every byte too far. */
static void run(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size + !size);

	memcpy(exact, data, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static void mutate_one(uint8_t *data, size_t *size)
{
	static const uint8_t telling[] = {0, 1, 0x7f, 0x80, 0xff};
	size_t at = *size ? dice(*size) : 0, len;

	if (*size < 2)
		return;
	switch (dice(5)) {
	case 0:
		data[at] ^= (uint8_t)(1u << dice(8));
		break;
	case 1:
		data[at] = telling[dice(sizeof telling)];
		break;
	case 2: /* a run of one byte: lengths and addresses become extreme */
		len = 1 + dice(8);
		memset(data + at, telling[dice(sizeof telling)],
		       len < *size - at ? len : *size - at);
		break;
	case 3:
		*size = 1 + at;
		break;
	default: /* another place's bytes */
		len = 1 + dice(16);
		if (at + len <= *size)
			memmove(data + at, data + dice(*size - len + 1), len);
	}
}

int main(int argc, char **argv)
{
	long runs = argc > 3 ? strtol(argv[1], NULL, 10) : 0;
	static uint8_t data[SIZE_MAX_RUN];
	struct sample *samples;
	size_t count = (size_t)argc - 3;

	if (runs <= 0)
		return 2;
	dice_state = strtoull(argv[2], NULL, 10) | 1;
	samples = calloc(count, sizeof *samples);
	for (size_t i = 0; i < count; i++) {
		samples[i] = sample_read(argv[3 + i]);
		run(samples[i].at, samples[i].size);
	}
	for (long n = 0; n < runs; n++) {
		struct sample *from = &samples[dice(count)];
		size_t size = from->size;

		memcpy(data, from->at, size);
		for (uint64_t times = 1 + dice(6); times; times--)
			mutate_one(data, &size);
		run(data, size);
	}
	printf("%ld runs\n", runs);
	return 0;
}
