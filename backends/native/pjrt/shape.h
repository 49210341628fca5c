// Types, extents and layouts of arrays. In our memory an array is row-major, without gaps, and each element has whole bytes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "error.h"

namespace trivium::pjrt {

// Throws for a type that has no elements in memory.
size_t BytesOf(Buffer_Type type);

struct Shape {
  Buffer_Type type = Buffer_Type_INVALID;
  std::vector<int64_t> dims;

  // Throws if the array is larger than the address space.
  size_t bytes() const;
  std::string text() const;
  bool operator==(const Shape&) const = default;
};

// A shape from a caller; rejects negative extents and unknown types.
Shape ShapeOf(Buffer_Type type, const int64_t* dims, size_t num_dims);

// The strides of row-major elements in bytes, by dimension.
std::vector<int64_t> RowMajorStrides(const Shape& shape);

// The strides of a layout that the caller requests or has; row-major if it is null. Rejects tiles.
std::vector<int64_t> StridesOf(const Buffer_MemoryLayout* layout, const Shape& shape);

// Throws unless the layout is row-major, the only layout that buffers have.
void RequireRowMajor(const Buffer_MemoryLayout* layout, const Shape& shape);

// Whether both put every element at the same offset; strides of dimensions of extent one do not matter.
bool SameStrides(const Shape& shape, const std::vector<int64_t>& left, const std::vector<int64_t>& right);

// Copies every element from its position in one layout to that in another.
void CopyStrided(const Shape& shape, const void* source, const std::vector<int64_t>& source_strides, void* target,
                 const std::vector<int64_t>& target_strides);

// The same for elements of a given number of bytes, whatever their type.
void CopyStrided(const std::vector<int64_t>& dims, size_t element_bytes, const void* source, const std::vector<int64_t>& source_strides,
                 void* target, const std::vector<int64_t>& target_strides);

}  // namespace trivium::pjrt
