// Constant operands of contractions, rearranged into panels once, before anything runs.

#pragma once

#include <cstddef>
#include <cstdint>

namespace trivium {

// Strides of an operand, in elements.
struct PackingAxis {
  int64_t extent;
  int64_t stride;
};

// Several axes counted as one flat index, the last fastest.
struct PackingGroup {
  const PackingAxis* axes;
  size_t count;
};

// The operand is read as [batch][column][reduction] and written as [batch][panel][reduction][column of the panel]: panel i takes the next
// `widths[i]` columns, and zeros where none are left.
struct Packing {
  uint64_t element_bytes;  // 1, 2, 4, 8 or 16
  uint64_t offset;         // of the first element that is read, in elements
  PackingGroup batch;
  PackingGroup columns;
  PackingGroup reduction;
  const int64_t* widths;
  size_t panels;
};

// Packs on all threads of the pool. `source` may have any alignment. Returns 0, or -1 for elements of another size, or if there is no
// memory.
int32_t Pack(const Packing& packing, const void* source, void* target);

}  // namespace trivium
