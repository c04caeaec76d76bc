/// @file
/// Small kernels for the comparison with Nsight Compute. The others launch one warp each.
#pragma once

/// On a GPU: ncu profiles the kernels of a case, behind one that is called case_mark, and no others.
void begin_case();
void end_case();

// Shared memory at a stride of 0 to 4 elements.
void launch_shared_load_float2(float* output, int stride);
void launch_shared_load_float4(float* output, int stride);
void launch_shared_store_float(const float* input, float* output, int stride);
void launch_shared_store_float2(const float* input, float* output, int stride);
void launch_shared_store_float4(const float* input, float* output, int stride);

/// @param keys [32], each 0 to 31
void launch_block_histogram(const int* keys, int* bins, int* before);
