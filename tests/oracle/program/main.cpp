#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>

#include "shapes.h"

static int throwing(int n)
{
	if (n > 100)
		throw std::runtime_error("too many");
	return n + 1;
}

int main(int argc, char **argv)
{
	std::vector<std::unique_ptr<shapes::Shape>> owned;
	std::vector<shapes::Shape *> all;
	shapes::Box<int> box{0, argc * 10};
	int numbers[16];

	for (int i = 0; i < 16; i++)
		numbers[i] = i * argc;
	for (int i = 0; box.holds(i); i++) {
		owned.push_back(std::make_unique<shapes::Square>(i));
		all.push_back(owned.back().get());
	}
	std::sort(all.begin(), all.end(), [](const shapes::Shape *a, const shapes::Shape *b) {
		return shapes::scaled(*a, -1) < shapes::scaled(*b, -1);
	});
	std::function<int(int)> twice = [argv](int n) { return throwing(n) * 2 + (argv[0][0] & 1); };
	try {
		printf("%f %zu %d %d %d\n", shapes::total(all), shapes::count(all).size(),
		       plain_sum(numbers, 16), twice(box.size()), assembled(argc));
	} catch (const std::exception &e) {
		puts(e.what());
	}
	return 0;
}
