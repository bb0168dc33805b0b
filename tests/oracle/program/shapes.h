/* Inlined at several depths from two units, so that link-time optimization and dwz have something
 * to share. */
#ifndef SHAPES_H
#define SHAPES_H

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace shapes
{

template <class T> struct Box {
	T low, high;

	T size() const
	{
		return high - low;
	}
	bool holds(T at) const
	{
		return at >= low && at < high;
	}
};

struct Shape {
	virtual ~Shape() = default;
	virtual double area() const = 0;
	std::string name;
};

struct Square : Shape {
	explicit Square(double side) : side(side)
	{
		name = "square";
	}
	double area() const override
	{
		return side * side;
	}
	double side;
};

inline double scaled(const Shape &shape, double by)
{
	struct Local {
		double by;
		double operator()(double x) const
		{
			return x * by;
		}
	} scale{by};

	return scale(shape.area());
}

double total(const std::vector<Shape *> &all);
std::map<std::string, int> count(const std::vector<Shape *> &all);

} // namespace shapes

extern "C" int plain_sum(const int *at, int count);
extern "C" int plain_unused(int n);
extern "C" int assembled(int n);

#endif
