// A program of several files: a header with a class, kernels elsewhere, extern "C", a constant of another file; argv.
// > 5 points, centre 2.5 4.5, by C 10
// > argument none
#include <cstdio>
#include <cstring>
#include "multi_file/points.cuh"

int main(int argc, char **argv) {
  Points points(5);
  for (int i = 0; i < 5; ++i) points.set(i, i + 0.5f, 2.0f * i + 0.5f);
  const float2 c = centre_of(points);
  printf("%d points, centre %g %g, by C %d\n", points.size(), c.x, c.y, c_interface(4));
  printf("argument %s\n", argc > 1 ? argv[1] : "none");
  return argc > 1 && strcmp(argv[1], "fail") == 0 ? 3 : 0;
}
