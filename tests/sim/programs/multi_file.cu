// A program of several files: a header with a class, kernels elsewhere, extern "C", a constant of another file; argv. A
// union with a vector is copied here, and a function of another file returns one.
// > 5 points, centre 2.5 4.5, by C 10
// > argument none
#include <cstdio>
#include <cstring>
#include "multi_file/points.cuh"

union Point {
  float2 both;
  float each[2];
};

int main(int argc, char **argv) {
  Points points(5);
  for (int i = 0; i < 5; ++i) points.set(i, i + 0.5f, 2.0f * i + 0.5f);
  Point centre;
  centre.both = centre_of(points);
  const Point c = centre;
  printf("%d points, centre %g %g, by C %d\n", points.size(), c.each[0], c.each[1], c_interface(4));
  printf("argument %s\n", argc > 1 ? argv[1] : "none");
  return argc > 1 && strcmp(argv[1], "fail") == 0 ? 3 : 0;
}
