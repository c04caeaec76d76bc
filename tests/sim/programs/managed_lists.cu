// Managed memory as classes use it: operator new from a base class, deep copies, prefetch and advice, host and device.
// > hello 1 2 3, device sum 60
// > tree of 7 sums to 28
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

class Managed {
 public:
  void *operator new(size_t len) {
    void *ptr;
    cudaMallocManaged(&ptr, len);
    cudaDeviceSynchronize();
    return ptr;
  }
  void operator delete(void *ptr) {
    cudaDeviceSynchronize();
    cudaFree(ptr);
  }
};

class String : public Managed {
  int length;
  char *data;

 public:
  String(const char *s) {
    length = strlen(s);
    cudaMallocManaged(&data, length + 1);
    strcpy(data, s);
  }
  ~String() { cudaFree(data); }
  __host__ __device__ char &operator[](int i) { return data[i]; }
  __host__ __device__ int size() const { return length; }
  const char *c_str() const { return data; }
};
struct Element : public Managed {
  String name;
  int value[3];
  Element() : name("hullo") {}
};
struct Node : Managed {
  int key;
  Node *left = nullptr, *right = nullptr;
  explicit Node(int k) : key(k) {}
  ~Node() { delete left, delete right; }
};

__global__ void change(Element *e, int *sum) {
  e->name[1] = 'e';
  for (int i = 0; i < 3; i++) e->value[i] += 1, *sum += 10 * e->value[i];
}
__device__ int total(const Node *n) { return n ? n->key + total(n->left) + total(n->right) : 0; }
__global__ void walk(const Node *root, int *sum) { *sum = total(root); }

Node *build(int low, int high) {
  if (low > high) return nullptr;
  Node *n = new Node((low + high) / 2);
  n->left = build(low, n->key - 1);
  n->right = build(n->key + 1, high);
  return n;
}

int main() {
  Element *e = new Element;
  for (int i = 0; i < 3; i++) e->value[i] = i;
  int *sum;
  cudaMallocManaged(&sum, sizeof(int));
  *sum = 0;
  change<<<1, 1>>>(e, sum);
  cudaDeviceSynchronize();
  printf("%s %d %d %d, device sum %d\n", e->name.c_str(), e->value[0], e->value[1], e->value[2], *sum);
  delete e;
  Node *root = build(1, 7);
  walk<<<1, 1>>>(root, sum);
  cudaStreamSynchronize(0);
  printf("tree of 7 sums to %d\n", *sum);
  delete root;
  cudaFree(sum);
}
