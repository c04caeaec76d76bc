/// @file
/// CUDA's vector types that the project's own kernels do not need, for plain CUDA programs.
#pragma once
#include "common/simt/simt.hpp"

/// @cond
#define SIM_VECTOR1(Name, T) \
  struct Name {              \
    T x;                     \
  };                         \
  __forceinline__ Name make_##Name(T x) { return {x}; }
// Two or four that a GPU loads at once are copied so here, too: see simt.hpp.
#define SIM_VECTOR2(Name, T, Words)                                  \
  struct __align__(sizeof(simt::Words)) Name {                       \
    T x, y;                                                          \
    constexpr __forceinline__ Name(T x_, T y_ = 0) : x(x_), y(y_) {} \
    SIMT_COPIES(Name, Words)                                         \
  };                                                                 \
  __forceinline__ Name make_##Name(T x, T y) { return {x, y}; }
#define SIM_VECTOR3(Name, T) \
  struct Name {              \
    T x, y, z;               \
  };                         \
  __forceinline__ Name make_##Name(T x, T y, T z) { return {x, y, z}; }
#define SIM_VECTOR4(Name, T, Words)                                                                    \
  struct __align__(sizeof(simt::Words)) Name {                                                         \
    T x, y, z, w;                                                                                      \
    constexpr __forceinline__ Name(T x_, T y_ = 0, T z_ = 0, T w_ = 0) : x(x_), y(y_), z(z_), w(w_) {} \
    SIMT_COPIES(Name, Words)                                                                           \
  };                                                                                                   \
  __forceinline__ Name make_##Name(T x, T y, T z, T w) { return {x, y, z, w}; }
#define SIM_LONG4(Name, T)    \
  struct __align__(16) Name { \
    T x, y, z, w;             \
  };                          \
  __forceinline__ Name make_##Name(T x, T y, T z, T w) { return {x, y, z, w}; }
namespace simt {
typedef std::uint16_t HalfWord __attribute__((may_alias));
}
SIM_VECTOR1(char1, signed char)
SIM_VECTOR1(uchar1, unsigned char)
SIM_VECTOR1(short1, short)
SIM_VECTOR1(ushort1, unsigned short)
SIM_VECTOR1(int1, int)
SIM_VECTOR1(uint1, unsigned)
SIM_VECTOR1(long1, long)
SIM_VECTOR1(ulong1, unsigned long)
SIM_VECTOR1(longlong1, long long)
SIM_VECTOR1(ulonglong1, unsigned long long)
SIM_VECTOR1(float1, float)
SIM_VECTOR1(double1, double)
SIM_VECTOR2(char2, signed char, HalfWord)
SIM_VECTOR2(uchar2, unsigned char, HalfWord)
SIM_VECTOR2(short2, short, Word)
SIM_VECTOR2(ushort2, unsigned short, Word)
SIM_VECTOR2(long2, long, Words4)
SIM_VECTOR2(ulong2, unsigned long, Words4)
SIM_VECTOR2(double2, double, Words4)
SIM_VECTOR2(longlong2, long long, Words4)
SIM_VECTOR2(ulonglong2, unsigned long long, Words4)
SIM_VECTOR3(char3, signed char)
SIM_VECTOR3(uchar3, unsigned char)
SIM_VECTOR3(short3, short)
SIM_VECTOR3(ushort3, unsigned short)
SIM_VECTOR3(int3, int)
SIM_VECTOR3(long3, long)
SIM_VECTOR3(ulong3, unsigned long)
SIM_VECTOR3(longlong3, long long)
SIM_VECTOR3(ulonglong3, unsigned long long)
SIM_VECTOR3(float3, float)
SIM_VECTOR3(double3, double)
SIM_VECTOR4(uchar4, unsigned char, Word)
SIM_VECTOR4(short4, short, Words2)
SIM_VECTOR4(ushort4, unsigned short, Words2)
SIM_LONG4(long4, long)
SIM_LONG4(ulong4, unsigned long)
SIM_LONG4(longlong4, long long)
SIM_LONG4(ulonglong4, unsigned long long)
SIM_LONG4(double4, double)
#undef SIM_VECTOR1
#undef SIM_VECTOR2
#undef SIM_VECTOR3
#undef SIM_VECTOR4
#undef SIM_LONG4
#undef SIM_COPIES
__forceinline__ uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
/// @endcond
