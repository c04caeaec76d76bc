// What the program and the kernel file agree on: plain types alone.
#pragma once

// Transposes 64 x 64 floats in device memory. @param tiled through shared memory, so that stores are coalesced, too
void transpose(const float* input, float* output, bool tiled);
