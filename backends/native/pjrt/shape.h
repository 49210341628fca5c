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

  // Throws if the array is larger than what addresses can tell apart.
  size_t bytes() const;
  std::string text() const;
  bool operator==(const Shape&) const = default;
};

// A shape as callers give it; refuses negative extents and unknown types.
Shape ShapeOf(Buffer_Type type, const int64_t* dims, size_t num_dims);

// Bytes from one index to the next in each dimension, of row-major elements.
std::vector<int64_t> RowMajorStrides(const Shape& shape);

// Of a layout that the caller asks for or has; row-major where it is null. Refuses tiles.
std::vector<int64_t> StridesOf(const Buffer_MemoryLayout* layout, const Shape& shape);

// Throws unless the layout is row-major, which is all that buffers have.
void RequireRowMajor(const Buffer_MemoryLayout* layout, const Shape& shape);

// Whether both put every element at the same offset; strides of dimensions of one index say nothing.
bool SameStrides(const Shape& shape, const std::vector<int64_t>& left, const std::vector<int64_t>& right);

// Copies every element from where one layout has it to where another does.
void CopyStrided(const Shape& shape, const void* source, const std::vector<int64_t>& source_strides, void* target,
                 const std::vector<int64_t>& target_strides);

// The same for elements of a number of bytes, whatever they are.
void CopyStrided(const std::vector<int64_t>& dims, size_t element_bytes, const void* source, const std::vector<int64_t>& source_strides,
                 void* target, const std::vector<int64_t>& target_strides);

}  // namespace trivium::pjrt
