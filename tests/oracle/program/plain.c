#include <stdlib.h>
#include <string.h>

#ifdef __clang__
#define COLD __attribute__((cold, noinline))
#else
#define COLD __attribute__((cold, noinline))
#endif

struct node {
	struct node *next;
	int value;
};

static inline struct node *push(struct node *list, int value)
{
	struct node *node = malloc(sizeof *node);

	if (!node)
		abort();
	node->next = list;
	node->value = value;
	return node;
}

COLD static int weigh(const struct node *list)
{
	int sum = 0;

	for (; list; list = list->next) {
		int value = list->value;

		if (value & 1)
			sum += value;
		else
			sum -= value;
	}
	return sum;
}

int plain_unused(int n)
{
	char text[64];

	memset(text, n, sizeof text);
	return text[n & 63];
}

#if defined(NESTED) && !defined(__clang__)
/* GNU C: a function whose entry stands below another one's, and whose code does not. */
static int nested(int n)
{
	__attribute__((noinline)) int inner(int m)
	{
		return m * n + n;
	}
	return inner(n) + inner(n + 1);
}
#else
static int nested(int n)
{
	return n;
}
#endif

int plain_sum(const int *at, int count)
{
	struct node *list = NULL;

	for (int i = 0; i < count; i++)
		list = push(list, at[i]);
	return weigh(list) + nested(count);
}
