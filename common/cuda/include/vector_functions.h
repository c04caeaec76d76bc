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
#define SIM_VECTOR2(Name, T, bytes) \
  struct __align__(bytes) Name {    \
    T x, y;                         \
  };                                \
  __forceinline__ Name make_##Name(T x, T y) { return {x, y}; }
#define SIM_VECTOR3(Name, T) \
  struct Name {              \
    T x, y, z;               \
  };                         \
  __forceinline__ Name make_##Name(T x, T y, T z) { return {x, y, z}; }
#define SIM_VECTOR4(Name, T, bytes) \
  struct __align__(bytes) Name {    \
    T x, y, z, w;                   \
  };                                \
  __forceinline__ Name make_##Name(T x, T y, T z, T w) { return {x, y, z, w}; }
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
SIM_VECTOR2(char2, signed char, 2)
SIM_VECTOR2(uchar2, unsigned char, 2)
SIM_VECTOR2(short2, short, 4)
SIM_VECTOR2(ushort2, unsigned short, 4)
SIM_VECTOR2(long2, long, 16)
SIM_VECTOR2(ulong2, unsigned long, 16)
SIM_VECTOR2(double2, double, 16)
SIM_VECTOR2(longlong2, long long, 16)
SIM_VECTOR2(ulonglong2, unsigned long long, 16)
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
SIM_VECTOR4(uchar4, unsigned char, 4)
SIM_VECTOR4(short4, short, 8)
SIM_VECTOR4(ushort4, unsigned short, 8)
SIM_VECTOR4(long4, long, 16)
SIM_VECTOR4(ulong4, unsigned long, 16)
SIM_VECTOR4(longlong4, long long, 16)
SIM_VECTOR4(ulonglong4, unsigned long long, 16)
SIM_VECTOR4(double4, double, 16)
#undef SIM_VECTOR1
#undef SIM_VECTOR2
#undef SIM_VECTOR3
#undef SIM_VECTOR4
__forceinline__ uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
/// @endcond
