/// @file
/// Small kernels for the comparison with Nsight Compute. Each function launches one warp.
#pragma once

// Shared memory at a stride of 0 to 4 elements.
void launch_shared_load_float2(float* output, int stride);
void launch_shared_load_float4(float* output, int stride);
void launch_shared_store_float(const float* input, float* output, int stride);
void launch_shared_store_float2(const float* input, float* output, int stride);
void launch_shared_store_float4(const float* input, float* output, int stride);

/// @param keys [32], each 0 to 31
void launch_block_histogram(const int* keys, int* bins, int* before);
