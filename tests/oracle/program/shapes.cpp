#include "shapes.h"

namespace
{

struct Circle : shapes::Shape {
	explicit Circle(double radius) : radius(radius)
	{
		name = "circle";
	}
	double area() const override
	{
		return 3.14159 * radius * radius;
	}
	double radius;
};

double hidden(const shapes::Shape &shape)
{
	return shapes::scaled(shape, 0.5);
}

} // namespace

namespace shapes
{

double total(const std::vector<Shape *> &all)
{
	double sum = 0;

	for (const Shape *shape : all)
		sum += scaled(*shape, 2) + hidden(*shape);
	return sum + Circle(sum).area();
}

std::map<std::string, int> count(const std::vector<Shape *> &all)
{
	std::map<std::string, int> counts;

	for (const Shape *shape : all)
		counts[shape->name]++;
	return counts;
}

double never_called(const Shape &shape)
{
	return scaled(shape, shape.area()) + hidden(shape);
}

} // namespace shapes
