// Flash attention, forward, in shared memory: a block per head and batch, tiles of keys and values, online softmax.
// > attention ok
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>

__global__
void forward_kernel(const float* Q, const float* K, const float* V, const int N, const int d,
                    const int Tc, const int Tr, const int Bc, const int Br, const float softmax_scale,
                    float* l, float *m, float* O) {
    int tx = threadIdx.x;
    int bx = blockIdx.x; int by = blockIdx.y;  // batch and head index
    int qkv_offset = (bx * gridDim.y * N * d) + (by * N * d);
    int lm_offset = (bx * gridDim.y * N) + (by * N);

    extern __shared__ float sram[];
    int tile_size = Bc * d;  // size of Qi, Kj, Vj
    float* Qi = sram;
    float* Kj = &sram[tile_size];
    float* Vj = &sram[tile_size * 2];
    float* S = &sram[tile_size * 3];

    for (int j = 0; j < Tc; j++) {
        for (int x = 0; x < d; x++) {
            Kj[(tx * d) + x] = K[qkv_offset + (tile_size * j) + (tx * d) + x];
            Vj[(tx * d) + x] = V[qkv_offset + (tile_size * j) + (tx * d) + x];
        }
        __syncthreads();
        for (int i = 0; i < Tr; i++) {
            for (int x = 0; x < d; x++) {
                Qi[(tx * d) + x] = Q[qkv_offset + (tile_size * i) + (tx * d) + x];
            }
            float row_m_prev = m[lm_offset + (Br * i) + tx];
            float row_l_prev = l[lm_offset + (Br * i) + tx];
            float row_m = -INFINITY;
            for (int y = 0; y < Bc; y++) {
                float sum = 0;
                for (int x = 0; x < d; x++) {
                    sum += Qi[(tx * d) + x] * Kj[(y * d) + x];
                }
                sum *= softmax_scale;
                S[(Bc * tx) + y] = sum;
                if (sum > row_m)
                    row_m = sum;
            }
            float row_l = 0;
            for (int y = 0; y < Bc; y++) {
                S[(Bc * tx) + y] = __expf(S[(Bc * tx) + y] - row_m);
                row_l += S[(Bc * tx) + y];
            }
            float row_m_new = max(row_m_prev, row_m);
            float row_l_new = (__expf(row_m_prev - row_m_new) * row_l_prev) + (__expf(row_m - row_m_new) * row_l);
            for (int x = 0; x < d; x++) {
                float pv = 0;
                for (int y = 0; y < Bc; y++) {
                    pv += S[(Bc * tx) + y] * Vj[(y * d) + x];
                }
                const int at = qkv_offset + (tile_size * i) + (tx * d) + x;
                O[at] = (1 / row_l_new) * ((row_l_prev * __expf(row_m_prev - row_m_new) * O[at]) +
                                           (__expf(row_m - row_m_new) * pv));
            }
            m[lm_offset + (Br * i) + tx] = row_m_new;
            l[lm_offset + (Br * i) + tx] = row_l_new;
        }
        __syncthreads();  // otherwise, a thread may read the next tile's K and V
    }
}

int main() {
    const int B = 1, nh = 2, N = 32, d = 16, Bc = 8, Br = 8;
    const int Tc = ceil((float) N / Bc), Tr = ceil((float) N / Br);
    const float softmax_scale = 1.0 / sqrt(d);
    const size_t n = B * nh * N * d;
    float *h = new float[3 * n], *o = new float[n], *q, *l, *m, *O;
    for (size_t i = 0; i < 3 * n; i++) h[i] = (rand() % 200 - 100) / 100.0f;
    cudaMalloc(&q, 3 * n * sizeof(float));
    cudaMalloc(&l, B * nh * N * sizeof(float));
    cudaMalloc(&m, B * nh * N * sizeof(float));
    cudaMalloc(&O, n * sizeof(float));
    cudaMemcpy(q, h, 3 * n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemset(l, 0, B * nh * N * sizeof(float));
    cudaMemset(O, 0, n * sizeof(float));
    float *minus = new float[B * nh * N];
    for (int i = 0; i < B * nh * N; i++) minus[i] = -INFINITY;
    cudaMemcpy(m, minus, B * nh * N * sizeof(float), cudaMemcpyHostToDevice);
    const int sram_size = (3 * Bc * d * sizeof(float)) + (Bc * Br * sizeof(float));
    int max_sram_size;
    cudaDeviceGetAttribute(&max_sram_size, cudaDevAttrMaxSharedMemoryPerBlock, 0);
    if (sram_size > max_sram_size) return 1;
    dim3 grid_dim(B, nh);
    dim3 block_dim(Bc);
    forward_kernel<<<grid_dim, block_dim, sram_size>>>(q, q + n, q + 2 * n, N, d, Tc, Tr, Bc, Br, softmax_scale, l, m, O);
    cudaMemcpy(o, O, n * sizeof(float), cudaMemcpyDeviceToHost);
    bool ok = true;
    for (int head = 0; head < B * nh; head++)
        for (int i = 0; i < N; i++) {
            double p[N], sum = 0;
            for (int j = 0; j < N; j++) {
                double dot = 0;
                for (int x = 0; x < d; x++) dot += h[head * N * d + i * d + x] * h[n + head * N * d + j * d + x];
                sum += p[j] = exp(dot * softmax_scale);
            }
            for (int x = 0; x < d; x++) {
                double want = 0;
                for (int j = 0; j < N; j++) want += p[j] / sum * h[2 * n + head * N * d + j * d + x];
                ok = ok && fabs(want - o[head * N * d + i * d + x]) < 1e-4;
            }
        }
    printf("attention %s\n", ok ? "ok" : "WRONG");
    delete[] h; delete[] o; delete[] minus;
    cudaFree(q); cudaFree(l); cudaFree(m); cudaFree(O);
    return 0;
}
