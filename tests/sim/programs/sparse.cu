// Sparse matrices and graphs: CSR by threads and by warps, ELL, COO with atomics, breadth-first search by frontiers.
// > csr ok, csr by warps ok, ell ok, coo ok
// > levels 0 1 1 2 2 3, 5 launches
#include <cmath>
#include <iostream>
#include <vector>
using namespace std;

template <typename T> struct CSRMatrix { int rows; int *ptr; int *col; T *val; };

template <typename T>
__global__ void spmv_csr(const CSRMatrix<T> m, const T *__restrict__ x, T *__restrict__ y) {
  unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m.rows) {
    T sum = 0;
    for (unsigned int i = m.ptr[row]; i < m.ptr[row + 1]; ++i) sum += m.val[i] * x[m.col[i]];
    y[row] = sum;
  }
}
__global__ void spmv_csr_vector(CSRMatrix<float> m, const float *x, float *y) {
  __shared__ volatile float vals[128];
  const int lane = threadIdx.x & 31, row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  float sum = 0;
  if (row < m.rows)
    for (int j = m.ptr[row] + lane; j < m.ptr[row + 1]; j += 32) sum += m.val[j] * x[m.col[j]];
  vals[threadIdx.x] = sum;
  __syncwarp();
  for (int d = 16; d > 0; d >>= 1) {
    float other = lane < d ? vals[threadIdx.x + d] : 0;
    __syncwarp();
    if (lane < d) vals[threadIdx.x] = vals[threadIdx.x] + other;
    __syncwarp();
  }
  if (lane == 0 && row < m.rows) y[row] = vals[threadIdx.x];
}
__global__ void spmv_ell(int rows, int width, const int *col, const float *val, const float *x, float *y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int k = 0; k < width; k++) if (col[k * rows + row] >= 0) sum += val[k * rows + row] * x[col[k * rows + row]];
  y[row] = sum;
}
__global__ void spmv_coo(int nnz, const int *row, const int *col, const float *val, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < nnz) atomicAdd(&y[row[i]], val[i] * x[col[i]]);
}
__global__ void bfs(const int *ptr, const int *dst, int *level, const int *prev, int numPrev, int *cur, int *numCur, int depth) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= numPrev) return;
  const int v = prev[i];
  for (int e = ptr[v]; e < ptr[v + 1]; ++e)
    if (atomicCAS(&level[dst[e]], -1, depth) == -1) cur[atomicAdd(numCur, 1)] = dst[e];
}

template <typename T>
T *to_device(const vector<T> &h) {
  T *d;
  if (cudaMalloc(&d, h.size() * sizeof(T)) != cudaSuccess) throw runtime_error("no memory");
  cudaMemcpy(d, h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice);
  return d;
}

int main() try {
  const int rows = 50, width = 7;
  vector<int> ptr{0}, col, row, ell_col(rows * width, -1);
  vector<float> val, ell_val(rows * width), x(rows), want(rows);
  for (int i = 0; i < rows; i++) x[i] = i * 0.5f;
  for (int r = 0; r < rows; r++) {
    for (int k = 0; k < r % (width + 1); k++) {
      const int c = (r * 7 + k * 11) % rows;
      row.push_back(r), col.push_back(c), val.push_back(1.0f + k);
      ell_col[k * rows + r] = c, ell_val[k * rows + r] = 1.0f + k;
      want[r] += (1.0f + k) * x[c];
    }
    ptr.push_back(col.size());
  }
  CSRMatrix<float> m{rows, to_device(ptr), to_device(col), to_device(val)};
  float *dx = to_device(x), *dy = to_device(want), *ev = to_device(ell_val);
  int *drow = to_device(row), *ec = to_device(ell_col);
  auto check = [&](const char *name, const char *end) {
    vector<float> y(rows);
    cudaMemcpy(y.data(), dy, rows * sizeof(float), cudaMemcpyDeviceToHost);
    bool ok = true;
    for (int i = 0; i < rows; i++) ok = ok && fabs(y[i] - want[i]) < 1e-3;
    cout << name << (ok ? " ok" : " WRONG") << end;
    cudaMemset(dy, 0, rows * sizeof(float));
  };
  cudaMemset(dy, 0, rows * sizeof(float));
  spmv_csr<<<(rows + 31) / 32, 32>>>(m, dx, dy), check("csr", ", ");
  spmv_csr_vector<<<(rows + 3) / 4, 128>>>(m, dx, dy), check("csr by warps", ", ");
  spmv_ell<<<2, 32>>>(rows, width, ec, ev, dx, dy), check("ell", ", ");
  spmv_coo<<<((int)val.size() + 63) / 64, 64>>>(val.size(), drow, m.col, m.val, dx, dy), check("coo", "\n");
  vector<int> graph_ptr{0, 2, 3, 4, 5, 6, 6}, dst{1, 2, 3, 4, 5, 5}, level{0, -1, -1, -1, -1, -1}, first(6, 0);
  int *gp = to_device(graph_ptr), *gd = to_device(dst), *dl = to_device(level), *prev = to_device(first), *cur = to_device(first), *num = to_device(vector<int>{0});
  int n = 1, launches = 0;
  for (int depth = 1; n > 0; ++depth, swap(prev, cur)) {
    cudaMemset(num, 0, sizeof(int));
    bfs<<<1, 32>>>(gp, gd, dl, prev, n, cur, num, depth);
    cudaMemcpy(&n, num, sizeof(int), cudaMemcpyDeviceToHost);
    ++launches;
  }
  cudaMemcpy(level.data(), dl, 6 * sizeof(int), cudaMemcpyDeviceToHost);
  cout << "levels";
  for (int l : level) cout << " " << l;
  cout << ", " << launches + 1 << " launches" << endl;
  for (int *p : {m.ptr, m.col, drow, ec, gp, gd, dl, prev, cur, num}) cudaFree(p);
  for (float *p : {m.val, dx, dy, ev}) cudaFree(p);
} catch (const exception &e) {
  cerr << e.what() << endl;
  return 1;
}
