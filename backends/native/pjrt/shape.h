// Types, extents and layouts of arrays. In our memory an array has no gaps, and each element has whole bytes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "error.h"

namespace trivium::pjrt {

// Throws for a type that has no elements in memory.
size_t BytesOf(Buffer_Type type);

struct Shape {
  Buffer_Type type = Buffer_Type_INVALID;
  std::vector<int64_t> dims;
  // Dimensions from the one whose elements are next to each other to the one whose elements are farthest apart; empty for row-major.
  std::vector<int64_t> minor_to_major = {};

  // Throws if the array is larger than the address space.
  size_t bytes() const;
  std::string text() const;
  bool operator==(const Shape&) const = default;
  // Whether an array of this shape is one of the other shape, too.
  bool Fits(const Shape& other) const;
};

// A shape from a caller; rejects negative extents and unknown types.
Shape ShapeOf(Buffer_Type type, const int64_t* dims, size_t num_dims);

// Throws unless an array has these bytes.
void CheckRange(const Shape& shape, int64_t offset, int64_t size);

// The shape of an array whose dimensions in the order of memory are those of `shape`. `minor_to_major` is a text such as "0,1".
Shape InOrder(const Shape& shape, const std::string& minor_to_major);

// The same array in the layout that a caller requests; row-major if it is null. Throws if its elements would have gaps between them.
Shape WithLayout(Shape shape, const Buffer_MemoryLayout* layout);

// The order of its dimensions in memory, as long as the shape lives.
std::span<const int64_t> MinorToMajor(const Shape& shape);

// The strides of row-major elements in bytes, by dimension.
std::vector<int64_t> RowMajorStrides(const Shape& shape);

// The strides of an array in our memory.
std::vector<int64_t> MemoryStrides(const Shape& shape);

// The strides of a layout that the caller requests or has; row-major if it is null. Rejects tiles.
std::vector<int64_t> StridesOf(const Buffer_MemoryLayout* layout, const Shape& shape);

// Whether both put every element at the same offset; strides of dimensions of extent one do not matter.
bool SameStrides(const Shape& shape, const std::vector<int64_t>& left, const std::vector<int64_t>& right);

// Copies every element from its position in one layout to that in another.
void CopyStrided(const Shape& shape, const void* source, const std::vector<int64_t>& source_strides, void* target,
                 const std::vector<int64_t>& target_strides);

// The same for elements of a given number of bytes, whatever their type.
void CopyStrided(const std::vector<int64_t>& dims, size_t element_bytes, const void* source, const std::vector<int64_t>& source_strides,
                 void* target, const std::vector<int64_t>& target_strides);

}  // namespace trivium::pjrt
