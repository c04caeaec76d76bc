// > stored 5, counted 32 32
// > copied 1 7, zeroed 0 4
// > products wrong 0, ones 320808, checks wrong 0
// Inline PTX that people write by hand, each instruction against plain C++.
#include <cstdint>
#include <cstdio>
#include <initializer_list>

__device__ int wrong;
#define CHECK(condition) \
  if (!(condition)) atomicAdd(&wrong, 1), printf("line %d: %s\n", __LINE__, #condition)

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ float exponential(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__global__ void registers(const float4* in, int* out) {
  const unsigned t = threadIdx.x;
  uint32_t lane, mask, smid;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm volatile("mov.u32 %0, %lanemask_lt;" : "=r"(mask));
  asm volatile("mov.u32 %0, %smid;\n" : "=r"(smid));
  CHECK(lane == t % 32 && mask == (1u << t % 32) - 1 && smid < 132);

  uint32_t x = 0x12345678, y = 0x9abcdef0, z;
  asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(z) : "r"(x), "r"(y), "r"(t));
  CHECK(z == ((x & y) | (~x & t)));
  asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(z) : "r"(x), "r"(y));
  CHECK(z == ((x & 0xffff) | y << 16));
  asm("bfe.u32 %0, %1, 8, 12;" : "=r"(z) : "r"(x));
  CHECK(z == (x >> 8 & 0xfff));
  asm("bfi.b32 %0, %1, %2, 4, 8;" : "=r"(z) : "r"(t), "r"(x));
  CHECK(z == ((x & ~0xff0u) | (t & 255) << 4));
  asm("{\n\t.reg .u32 low;\n\tadd.cc.u32 low, %2, %2;\n\taddc.u32 %0, %1, 0;\n\t}" : "=r"(z) : "r"(x), "r"(y));
  CHECK(z == x + 1);
  int s;
  asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(s) : "r"(-3), "r"(5), "r"(4));
  CHECK(s == -11);
  uint64_t wide;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(wide) : "r"(x), "r"(y));
  CHECK(wide == static_cast<uint64_t>(x) * y);
  asm("mov.b64 {%0, %1}, %2;" : "=r"(z), "=r"(lane) : "l"(wide));
  CHECK(z == static_cast<uint32_t>(wide) && lane == wide >> 32);
  asm("mov.b64 %0, {%1, %2};" : "=l"(wide) : "r"(x), "r"(y));
  CHECK(wide == (static_cast<uint64_t>(y) << 32 | x));

  // Predicates and branches.
  asm("{ .reg .pred p, q;\n"
      "  setp.lt.u32 p|q, %1, 7;\n"
      "  @p mov.u32 %0, 1;  // a comment\n"
      "  @!p mov.u32 %0, 2;\n"
      "  @q bra DONE;\n"
      "  add.u32 %0, %0, 10;\n"
      "DONE: }"
      : "=r"(z)
      : "r"(t));
  CHECK(z == (t < 7 ? 11 : 2));

  // A comparison with a NaN is false unless its name ends in u.
  asm("{ .reg .pred p, q; setp.ne.f32 p, %1, %1; setp.neu.f32 q, %1, %1;\n"
      "selp.u32 %0, 1, 0, q; @p add.u32 %0, %0, 2; }"
      : "=r"(z)
      : "f"(__int_as_float(0x7fffffff)));
  CHECK(z == 1);

  // Conversions.
  float f = 1.0f + t * 0.001f, g;
  uint32_t pair, tf;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(2.0f), "f"(f));
  asm("{ .reg .b16 a, b; mov.b32 {a, b}, %1; cvt.f32.f16 %0, b; }" : "=f"(g) : "r"(pair));
  CHECK(g == 2.0f);
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(tf) : "f"(f));
  CHECK((tf & 0x1fff) == 0 && fabsf(__uint_as_float(tf) - f) < 0.001f);
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(f), "f"(-1.0f));
  CHECK((pair & 0xffff) == 0xbf80);
  uint16_t fp8;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(fp8) : "f"(1000.0f), "f"(1.0f));
  CHECK(fp8 == 0x7e38);
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(s) : "f"(-2.5f));
  CHECK(s == -2 && exponential(3) == 8.0f);
  asm("fma.rn.f32 %0, %1, %1, 0f3F800000;" : "=f"(g) : "f"(f));
  CHECK(g == fmaf(f, f, 1.0f));

  // Warps.
  asm volatile("{ .reg .pred p; shfl.sync.bfly.b32 %0|p, %1, 1, 0x1f, 0xffffffff; }" : "=r"(z) : "r"(t));
  CHECK(z == (t ^ 1));
  asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, 15; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(z) : "r"(t));
  CHECK(z == 0xffff0000);
  asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(s) : "r"(static_cast<int>(t)));
  CHECK(s == 496);
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }" : "=r"(z));
  CHECK(__popc(__ballot_sync(~0u, z)) == 1);

  // Memory.
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4 + 16];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(in));
  CHECK(v.x == 4 && v.w == 7);
  asm volatile("st.global.cs.s32 [%0], %1;" ::"l"(out + t), "r"(static_cast<int>(v.y)) : "memory");
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(out + 64), "r"(1) : "memory");
  asm volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(z) : "l"(out + 65) : "memory");
  asm volatile("membar.gl; fence.acq_rel.gpu;" ::: "memory");
  CHECK(z < 32);
  asm volatile("ld.relaxed.gpu.global.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4 + 32];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(in));
  CHECK(v.x == 8 && v.w == 11);
  __shared__ alignas(16) unsigned own[32][4];
  for (unsigned& each : own[t]) each = 0x3c003c00;  // twice 1, of halves
  const uint32_t at = shared_address(own[t]), two = 0x40004000;
  asm volatile("red.shared.add.noftz.f16x2 [%0], %1;" ::"r"(at), "r"(two) : "memory");
  CHECK(own[t][0] == 0x42004200);
  asm volatile("st.relaxed.cta.shared.v2.u32 [%0 + 8], {%1, %2};" ::"r"(at), "r"(t), "r"(t + 1) : "memory");
  CHECK(own[t][2] == t && own[t][3] == t + 1);
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(out + 66), "f"(1.0f), "f"(2.0f) : "memory");
  asm volatile("ex2.approx.f16x2 %0, %1;" : "=r"(z) : "r"(0x40003c00));
  CHECK(z == 0x44004000);
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(z) : "r"((2 * t + 1) << 16 | 2 * t));
  CHECK(z == ((t % 4 * 16 + 8 + t / 4) << 16 | (t % 4 * 16 + t / 4)));
}

__global__ void copies(const int* in, int* out) {
  __shared__ alignas(16) int a[64];
  const int t = threadIdx.x;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(a + 4 * (t % 8))),
               "l"(in + 4 * (t % 8)));
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(a + 32 + t % 8 * 4)),
               "l"(in + t % 8 * 4), "n"(16), "r"(t % 8 == 0 ? 8 : 16));
  asm volatile("cp.async.commit_group;\n" ::: "memory");
  asm volatile("cp.async.wait_group %0;\n" ::"n"(0) : "memory");
  asm volatile("bar.sync 0;" ::: "memory");
  out[t] = a[t];
  out[t + 8] = a[32 + t];
}

// 16 x 8 x 16 by mma.sync: A and B through ldmatrix, D = A B.
__global__ void product(const uint16_t* a, const uint16_t* b, float* d) {
  __shared__ alignas(16) uint16_t as[16][16], bs[16][8];
  const int t = threadIdx.x;
  for (int i = t; i < 256; i += 32) as[i / 16][i % 16] = a[i];
  for (int i = t; i < 128; i += 32) bs[i / 8][i % 8] = b[i];
  __syncwarp();
  uint32_t ra[4], rb[2];
  float rd[4] = {};
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
               : "r"(shared_address(&as[t % 16][t / 16 * 8])));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(rb[0]), "=r"(rb[1])
               : "r"(shared_address(&bs[t % 16][0])));
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(rd[0]), "+f"(rd[1]), "+f"(rd[2]), "+f"(rd[3])
      : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  for (int i = 0; i < 4; ++i) d[(t / 4 + i / 2 * 8) * 8 + t % 4 * 2 + i % 2] = rd[i];
}

// The same shape of bf16, TF32 and bytes: all ones, so that each sum is how many there are.
__global__ void ones(int* out) {
  const uint32_t bf16 = 0x3f803f80, tf32 = 0x3f800000, bytes = 0x01010101;
  float b[4] = {}, f[4] = {};
  int s[4] = {};
  asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%4}, {%4}, {%0,%1,%2,%3};"
      : "+f"(b[0]), "+f"(b[1]), "+f"(b[2]), "+f"(b[3])
      : "r"(bf16));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
      : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])
      : "r"(tf32));
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
      : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
      : "r"(bytes));
  out[threadIdx.x] = static_cast<int>(b[3] + 100 * f[2] + 10000 * s[1]);
}

uint16_t half_of(int small) {  // 0 to 15
  if (small == 0) return 0;
  int exponent = 0;
  while (small >> (exponent + 1)) ++exponent;
  return static_cast<uint16_t>((exponent + 15) << 10 | (small << (10 - exponent) & 0x3ff));
}

int main() {
  float4* in;
  int *ints, *out;
  cudaMallocManaged(&in, 64);
  cudaMallocManaged(&ints, 256);
  cudaMallocManaged(&out, 68 * sizeof(int));
  for (int i = 0; i < 16; ++i) reinterpret_cast<float*>(in)[i] = i;
  for (int i = 0; i < 64; ++i) ints[i] = i;
  for (int i = 0; i < 66; ++i) out[i] = 0;
  registers<<<1, 32>>>(in, out);
  cudaDeviceSynchronize();
  printf("stored %d, counted %d %d\n", out[31], out[64], out[65]);
  copies<<<1, 8>>>(ints, out);
  cudaDeviceSynchronize();
  printf("copied %d %d, zeroed %d %d\n", out[1], out[7], out[10], out[12]);

  uint16_t *a, *b;
  float* d;
  cudaMallocManaged(&a, 512);
  cudaMallocManaged(&b, 256);
  cudaMallocManaged(&d, 512);
  for (int i = 0; i < 256; ++i) a[i] = half_of(i * 7 % 13);
  for (int i = 0; i < 128; ++i) b[i] = half_of(i * 5 % 11);
  product<<<1, 32>>>(a, b, d);
  cudaDeviceSynchronize();
  int bad = 0;
  for (int i = 0; i < 16; ++i)
    for (int column = 0; column < 8; ++column) {
      int sum = 0;
      for (int k = 0; k < 16; ++k) sum += (i * 16 + k) * 7 % 13 * ((k * 8 + column) * 5 % 11);
      bad += d[i * 8 + column] != sum;
    }
  ones<<<1, 32>>>(out);
  cudaDeviceSynchronize();
  cudaMemcpyFromSymbol(ints, wrong, sizeof(int));
  printf("products wrong %d, ones %d, checks wrong %d\n", bad, out[5], ints[0]);
  for (void* each : {static_cast<void*>(in), static_cast<void*>(ints), static_cast<void*>(out), static_cast<void*>(a),
                     static_cast<void*>(b), static_cast<void*>(d)})
    cudaFree(each);
}
