// A simulated GPU, as far as kernels see it: blocks run one after the other, the threads of a block as fibers. A thread
// runs until it waits for others, and nothing says which thread is next: warps, and the threads of a warp, take turns in
// an order that is drawn. So what a missing barrier allows to happen does happen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace simulator {

using Kernel = void (*)(void **parameters);

// The description of an array of which the device copies boxes by itself: what the driver writes, and only kernels read.
// Extents and the extents of boxes begin with the innermost dimension; distances, in bytes, with the one after it.
constexpr uint64_t kTensorMap = 0x70616d726f736e74;

// Of windows, a box has the features and the number; corners are where the first and the last one begins along each
// spatial dimension, relative to the first and the last element.
struct TensorMap {
  uint64_t known, address, extents[5], strides[4];
  uint32_t box[5];
  uint8_t rank, size;
  bool rounded, windows;  // f32 to tf32
  int16_t corners[3][2];
  uint8_t steps[3];
};

static_assert(sizeof(TensorMap) <= 128);

// Runs a kernel whose blocks are granted some bytes of memory. Returns what is wrong with it, such as threads that do not
// meet where all must.
std::string launch(Kernel kernel, void **parameters, unsigned blocks, unsigned threads, size_t granted, uint64_t seed);

}  // namespace simulator
