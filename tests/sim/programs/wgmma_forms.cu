// > f16 subtracted 0
// > f16, A transposed 0
// > f16, B transposed 0
// > bf16, both transposed, subtracted 0
// > f16 in halves 0
// > e4m3 0
// > e5m2 by e4m3 in halves, subtracted 0
// > u8 by s8 0
// > s8 by u8 0
// > mma e4m3 by e5m2 0
// wgmma in all its forms, and mma of 8-bit floats: each of small whole numbers, so that every sum is exact.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <cstdio>
#include <type_traits>
#include <vector>

constexpr int kRows = 64, kColumns = 16;  // of D; A has kRows rows, B kColumns, each of 32 bytes

enum class Lies { rows, columns, swizzled_columns };

__device__ std::uint64_t descriptor(const void* shared, int leading, int stride, int layout) {
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(shared));
  return (address & 0x3ffff) >> 4 | static_cast<std::uint64_t>(leading >> 4) << 16 |
         static_cast<std::uint64_t>(stride >> 4) << 32 | static_cast<std::uint64_t>(layout) << 62;
}

// Writes a matrix of `rows` rows of 32 bytes to shared memory, by rows or (16-bit elements) by columns, in pieces of 16
// bytes, and describes it.
__device__ std::uint64_t place(std::uint8_t* to, const std::uint8_t* from, int rows, Lies lies) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * 32; i += 128) {
    const int row = i / 32, byte = i % 32, k = byte / 2;
    if (lies == Lies::rows)
      to[byte / 16 * rows * 16 + row * 16 + byte % 16] = from[i];
    else if (lies == Lies::columns)
      to[k / 8 * rows * 16 + row / 8 * 128 + k % 8 * 16 + row % 8 * 2 + byte % 2] = from[i];
    else  // 64 rows: lines of 128 bytes
      to[k * 128 + ((row / 8) ^ (k % 8)) * 16 + row % 8 * 2 + byte % 2] = from[i];
  }
  return lies == Lies::swizzled_columns ? descriptor(to, 0, 1024, 1) : descriptor(to, rows * 16, 128, 0);
}

#define BEGIN                                                                                    \
  __shared__ alignas(1024) std::uint8_t of_a[kRows * 32], of_b[kColumns * 32];                   \
  const std::uint64_t da = place(of_a, a, kRows, lies_a), db = place(of_b, b, kColumns, lies_b); \
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                                   \
  __syncthreads();                                                                               \
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * 16 + lane / 4, column = lane % 4 * 2
#define START asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define END asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory")

// D of 8 registers of one number.
#define KERNEL(name, T, letter, text)                                                                         \
  __global__ void name(const std::uint8_t* a, const std::uint8_t* b, T* d, Lies lies_a, Lies lies_b) {        \
    BEGIN;                                                                                                    \
    T sums[8];                                                                                                \
    for (int i = 0; i < 8; ++i) sums[i] = d[(first + i % 4 / 2 * 8) * kColumns + column + i / 4 * 8 + i % 2]; \
    START;                                                                                                    \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %10, 0;\nwgmma.mma_async.sync.aligned." text ";\n}"        \
                 : "+" letter(sums[0]), "+" letter(sums[1]), "+" letter(sums[2]), "+" letter(sums[3]),        \
                   "+" letter(sums[4]), "+" letter(sums[5]), "+" letter(sums[6]), "+" letter(sums[7])         \
                 : "l"(da), "l"(db), "r"(1));                                                                 \
    END;                                                                                                      \
    for (int i = 0; i < 8; ++i) d[(first + i % 4 / 2 * 8) * kColumns + column + i / 4 * 8 + i % 2] = sums[i]; \
  }
#define EIGHT " {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p"
KERNEL(f16_subtracted, float, "f", "m64n16k16.f32.f16.f16" EIGHT ", -1, 1, 0, 0")
KERNEL(f16_a_transposed, float, "f", "m64n16k16.f32.f16.f16" EIGHT ", 1, 1, 1, 0")
KERNEL(f16_b_transposed, float, "f", "m64n16k16.f32.f16.f16" EIGHT ", 1, 1, 0, 1")
KERNEL(bf16_both_transposed, float, "f", "m64n16k16.f32.bf16.bf16" EIGHT ", 1, -1, 1, 1")
KERNEL(e4m3, float, "f", "m64n16k32.f32.e4m3.e4m3" EIGHT ", 1, 1")
KERNEL(u8_by_s8, int, "r", "m64n16k32.s32.u8.s8" EIGHT)
KERNEL(s8_by_u8, int, "r", "m64n16k32.s32.s8.u8" EIGHT)

// D of 4 registers of two halves.
#define KERNEL_OF_HALVES(name, text)                                                                        \
  __global__ void name(const std::uint8_t* a, const std::uint8_t* b, __half* d, Lies lies_a, Lies lies_b) { \
    BEGIN;                                                                                                  \
    std::uint32_t sums[4];                                                                                  \
    for (int i = 0; i < 4; ++i)                                                                             \
      sums[i] = *reinterpret_cast<std::uint32_t*>(&d[(first + i % 2 * 8) * kColumns + column + i / 2 * 8]); \
    START;                                                                                                  \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\nwgmma.mma_async.sync.aligned." text ";\n}"       \
                 : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])                               \
                 : "l"(da), "l"(db), "r"(1));                                                               \
    END;                                                                                                    \
    for (int i = 0; i < 4; ++i)                                                                             \
      *reinterpret_cast<std::uint32_t*>(&d[(first + i % 2 * 8) * kColumns + column + i / 2 * 8]) = sums[i]; \
  }
KERNEL_OF_HALVES(f16_in_halves, "m64n16k16.f16.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0")
KERNEL_OF_HALVES(e5m2_by_e4m3, "m64n16k32.f16.e5m2.e4m3 {%0, %1, %2, %3}, %4, %5, p, -1, 1")

// One warp: the first 16 rows and 8 columns.
__global__ void mma(const std::uint8_t* a, const std::uint8_t* b, float* d) {
  const int lane = threadIdx.x, row = lane / 4, k = lane % 4 * 4;
  const auto word = [](const std::uint8_t* at) { return *reinterpret_cast<const std::uint32_t*>(at); };
  float* const top = d + row * kColumns + lane % 4 * 2;
  float* const low = top + 8 * kColumns;
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(top[0]), "+f"(top[1]), "+f"(low[0]), "+f"(low[1])
      : "r"(word(a + row * 32 + k)), "r"(word(a + (row + 8) * 32 + k)), "r"(word(a + row * 32 + k + 16)),
        "r"(word(a + (row + 8) * 32 + k + 16)), "r"(word(b + row * 32 + k)), "r"(word(b + row * 32 + k + 16)));
}

// ---- Host ----------------------------------------------------------------------------------------------------------

template <class T>
T made(int number) {
  return T(static_cast<float>(number));
}
template <>
std::int8_t made(int number) {
  return static_cast<std::int8_t>(number);
}
template <>
std::uint8_t made(int number) {
  return static_cast<std::uint8_t>(number);
}
template <>
int made(int number) {
  return number;
}

// Rows of small numbers. Those of unsigned bytes are up to 250, so that no sign can be mistaken.
template <class T>
std::vector<int> numbers(int rows, int factor, int modulus) {
  const int depth = 32 / static_cast<int>(sizeof(T));
  std::vector<int> all(rows * depth);
  for (int i = 0; i < rows * depth; ++i)
    all[i] = std::is_same<T, std::uint8_t>::value ? i * 37 % 251 : i / depth * factor % modulus - i % depth * 2 % 5 + 1;
  return all;
}
template <class T>
std::uint8_t* on_device(const std::vector<int>& numbers) {
  std::vector<T> values;
  for (const int number : numbers) values.push_back(made<T>(number));
  std::uint8_t* memory;
  cudaMalloc(&memory, values.size() * sizeof(T));
  cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  return memory;
}

template <class A, class B, class D, class Launch>
void run(const char* name, int sign, int rows, int columns, Launch launch) {
  const std::vector<int> a = numbers<A>(kRows, 3, 4), b = numbers<B>(kColumns, 5, 3);
  const int depth = 32 / static_cast<int>(sizeof(A));
  std::vector<int> before(kRows * kColumns);
  for (int i = 0; i < kRows * kColumns; ++i) before[i] = i % 23 - 11;
  std::uint8_t *of_a = on_device<A>(a), *of_b = on_device<B>(b), *of_d = on_device<D>(before);
  launch(of_a, of_b, reinterpret_cast<D*>(of_d));
  std::vector<D> d(kRows * kColumns);
  cudaMemcpy(d.data(), of_d, d.size() * sizeof(D), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      int sum = before[row * kColumns + column];
      for (int k = 0; k < depth; ++k) sum += sign * a[row * depth + k] * b[column * depth + k];
      wrong += static_cast<float>(d[row * kColumns + column]) != static_cast<float>(sum);
    }
  printf("%s %d\n", name, wrong);
  cudaFree(of_a);
  cudaFree(of_b);
  cudaFree(of_d);
}

template <class A, class B, class D>
void run(const char* name, int sign, void (*kernel)(const std::uint8_t*, const std::uint8_t*, D*, Lies, Lies), Lies a,
         Lies b) {
  run<A, B, D>(name, sign, kRows, kColumns, [=](const std::uint8_t* of_a, const std::uint8_t* of_b, D* of_d) {
    kernel<<<1, 128>>>(of_a, of_b, of_d, a, b);
  });
}

int main() {
  using Bf16 = __nv_bfloat16;
  using E4m3 = __nv_fp8_e4m3;
  using E5m2 = __nv_fp8_e5m2;
  run<__half, __half>("f16 subtracted", -1, f16_subtracted, Lies::rows, Lies::rows);
  run<__half, __half>("f16, A transposed", 1, f16_a_transposed, Lies::swizzled_columns, Lies::rows);
  run<__half, __half>("f16, B transposed", 1, f16_b_transposed, Lies::rows, Lies::columns);
  run<Bf16, Bf16>("bf16, both transposed, subtracted", -1, bf16_both_transposed, Lies::columns, Lies::columns);
  run<__half, __half>("f16 in halves", 1, f16_in_halves, Lies::rows, Lies::rows);
  run<E4m3, E4m3>("e4m3", 1, e4m3, Lies::rows, Lies::rows);
  run<E5m2, E4m3>("e5m2 by e4m3 in halves, subtracted", -1, e5m2_by_e4m3, Lies::rows, Lies::rows);
  run<std::uint8_t, std::int8_t>("u8 by s8", 1, u8_by_s8, Lies::rows, Lies::rows);
  run<std::int8_t, std::uint8_t>("s8 by u8", 1, s8_by_u8, Lies::rows, Lies::rows);
  run<E4m3, E5m2, float>("mma e4m3 by e5m2", 1, 16, 8,
                         [](const std::uint8_t* a, const std::uint8_t* b, float* d) { mma<<<1, 32>>>(a, b, d); });
}
