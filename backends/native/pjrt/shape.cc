#include "shape.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <sstream>

namespace trivium::pjrt {

size_t BytesOf(Buffer_Type type) {
  switch (type) {
    case Buffer_Type_PRED:
    case Buffer_Type_S8:
    case Buffer_Type_U8:
    case Buffer_Type_F8E5M2:
    case Buffer_Type_F8E4M3FN:
    case Buffer_Type_F8E4M3B11FNUZ:
    case Buffer_Type_F8E5M2FNUZ:
    case Buffer_Type_F8E4M3FNUZ:
    case Buffer_Type_F8E4M3:
    case Buffer_Type_F8E3M4:
    case Buffer_Type_F8E8M0FNU:
    // Elements of fewer bits than a byte take one byte each, on the host as well as here.
    case Buffer_Type_S4:
    case Buffer_Type_U4:
    case Buffer_Type_S2:
    case Buffer_Type_U2:
    case Buffer_Type_F4E2M1FN:
      return 1;
    case Buffer_Type_S16:
    case Buffer_Type_U16:
    case Buffer_Type_F16:
    case Buffer_Type_BF16:
      return 2;
    case Buffer_Type_S32:
    case Buffer_Type_U32:
    case Buffer_Type_F32:
      return 4;
    case Buffer_Type_S64:
    case Buffer_Type_U64:
    case Buffer_Type_F64:
    case Buffer_Type_C64:
      return 8;
    case Buffer_Type_C128:
      return 16;
    default:
      throw Failure(Error_Code_UNIMPLEMENTED, "element type " + std::to_string(type) + " of PJRT is not supported");
  }
}

size_t Shape::bytes() const {
  size_t bytes = BytesOf(type);
  for (int64_t extent : dims) {
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(extent), &bytes) || bytes > std::numeric_limits<int64_t>::max()) {
      throw Failure(Error_Code_RESOURCE_EXHAUSTED, "an array of " + text() + " is larger than any memory");
    }
  }
  return bytes;
}

std::string Shape::text() const {
  static constexpr const char* kNames[] = {"invalid", "pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64",
      "f16", "f32", "f64", "bf16", "c64", "c128", "f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz", "s4", "u4",
      "token", "s2", "u2", "f8e4m3", "f8e3m4", "f8e8m0fnu", "f4e2m1fn"};
  const bool known = type >= 0 && type <= Buffer_Type_F4E2M1FN;
  std::string result = known ? kNames[type] : "type " + std::to_string(type);
  result += '[';
  for (size_t i = 0; i < dims.size(); ++i) result += (i ? "," : "") + std::to_string(dims[i]);
  result += ']';
  for (size_t i = 0; i < minor_to_major.size(); ++i) result += (i ? "," : "{") + std::to_string(minor_to_major[i]);
  return minor_to_major.empty() ? result : result + '}';
}

Shape ShapeOf(Buffer_Type type, const int64_t* dims, size_t num_dims) {
  Require(dims != nullptr || num_dims == 0, "the dimensions are null");
  Shape shape{type, std::vector<int64_t>(dims, dims + num_dims), {}};
  for (int64_t extent : shape.dims) Require(extent >= 0, "a dimension is negative");
  shape.bytes();
  return shape;
}

void CheckRange(const Shape& shape, int64_t offset, int64_t size) {
  const int64_t bytes = static_cast<int64_t>(shape.bytes());
  if (offset >= 0 && size >= 0 && offset <= bytes && size <= bytes - offset) return;
  throw Failure(Error_Code_INVALID_ARGUMENT, std::to_string(size) + " bytes from offset " + std::to_string(offset) + " on are not within the " +
                                                 std::to_string(bytes) + " bytes of " + shape.text());
}

std::span<const int64_t> MinorToMajor(const Shape& shape) {
  static constexpr size_t kMaxRank = 64;
  static const std::vector<int64_t> descending = [] {
    std::vector<int64_t> numbers;
    for (int64_t number = kMaxRank; number-- > 0;) numbers.push_back(number);
    return numbers;
  }();
  if (!shape.minor_to_major.empty()) return shape.minor_to_major;
  const size_t rank = shape.dims.size();
  if (rank > kMaxRank) throw Failure(Error_Code_UNIMPLEMENTED, "an array has more than 64 dimensions");
  return {descending.data() + kMaxRank - rank, rank};
}

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.dims.size());
  int64_t stride = static_cast<int64_t>(BytesOf(shape.type));
  for (size_t i = strides.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape.dims[i] > 0 ? shape.dims[i] : 1;
  }
  return strides;
}

namespace {

// The strides of elements without gaps; throws unless the order is a permutation of the dimensions.
std::vector<int64_t> StridesInOrder(const Shape& shape, const std::vector<int64_t>& minor_to_major) {
  std::vector<int64_t> strides(shape.dims.size(), 0);
  int64_t stride = static_cast<int64_t>(BytesOf(shape.type));
  for (const int64_t dimension : minor_to_major) {
    Require(dimension >= 0 && dimension < static_cast<int64_t>(strides.size()) && strides[dimension] == 0,
            "minor_to_major is not a permutation");
    strides[dimension] = stride;
    stride *= shape.dims[dimension] > 0 ? shape.dims[dimension] : 1;
  }
  return strides;
}

}  // namespace

std::vector<int64_t> StridesOf(const Buffer_MemoryLayout* layout, const Shape& shape) {
  if (layout == nullptr) return RowMajorStrides(shape);
  const size_t rank = shape.dims.size();
  if (layout->type == Buffer_MemoryLayout_Type_Strides) {
    Require(layout->strides.num_byte_strides == rank, "the layout's number of strides is not the array's rank");
    return {layout->strides.byte_strides, layout->strides.byte_strides + rank};
  }
  if (layout->tiled.num_tiles != 0) throw Failure(Error_Code_UNIMPLEMENTED, "layouts with tiles are not supported");
  Require(layout->tiled.minor_to_major_size == rank, "the layout's number of dimensions is not the array's rank");
  return StridesInOrder(shape, {layout->tiled.minor_to_major, layout->tiled.minor_to_major + rank});
}

std::vector<int64_t> MemoryStrides(const Shape& shape) {
  return shape.minor_to_major.empty() ? RowMajorStrides(shape) : StridesInOrder(shape, shape.minor_to_major);
}

bool Shape::Fits(const Shape& other) const {
  if (*this == other) return true;
  return type == other.type && dims == other.dims && SameStrides(*this, MemoryStrides(*this), MemoryStrides(other));
}

Shape InOrder(const Shape& shape, const std::string& minor_to_major) {
  Shape result{shape.type, shape.dims, {}};
  std::istringstream numbers(minor_to_major);
  for (std::string number; std::getline(numbers, number, ',');) result.minor_to_major.push_back(std::atoll(number.c_str()));
  const size_t rank = shape.dims.size();
  Require(result.minor_to_major.size() == rank, "the layout's number of dimensions is not the array's rank");
  StridesInOrder(shape, result.minor_to_major);  // throws unless it is a permutation
  for (size_t i = 0; i < rank; ++i) result.dims[result.minor_to_major[i]] = shape.dims[rank - 1 - i];
  return result;
}

Shape WithLayout(Shape shape, const Buffer_MemoryLayout* layout) {
  if (layout == nullptr) return shape;
  const std::vector<int64_t> strides = StridesOf(layout, shape);
  if (SameStrides(shape, strides, RowMajorStrides(shape))) return shape;
  std::vector<int64_t>& order = shape.minor_to_major;
  for (size_t i = shape.dims.size(); i-- > 0;) order.push_back(static_cast<int64_t>(i));
  std::stable_sort(order.begin(), order.end(), [&](int64_t left, int64_t right) { return strides[left] < strides[right]; });
  if (SameStrides(shape, strides, MemoryStrides(shape))) return shape;
  throw Failure(Error_Code_UNIMPLEMENTED, "elements of buffers have no gaps between them, but other strides were requested for " + shape.text());
}

bool SameStrides(const Shape& shape, const std::vector<int64_t>& left, const std::vector<int64_t>& right) {
  for (int64_t extent : shape.dims) {
    if (extent == 0) return true;
  }
  for (size_t i = 0; i < shape.dims.size(); ++i) {
    if (shape.dims[i] != 1 && left[i] != right[i]) return false;
  }
  return true;
}

void CopyStrided(const Shape& shape, const void* source, const std::vector<int64_t>& source_strides, void* target,
                 const std::vector<int64_t>& target_strides) {
  const size_t bytes = shape.bytes(), element = BytesOf(shape.type);
  if (bytes == 0) return;
  if (SameStrides(shape, source_strides, target_strides) && SameStrides(shape, source_strides, MemoryStrides(shape))) {
    std::memcpy(target, source, bytes);
    return;
  }
  CopyStrided(shape.dims, element, source, source_strides, target, target_strides);
}

void CopyStrided(const std::vector<int64_t>& dims, size_t element_bytes, const void* source, const std::vector<int64_t>& source_strides,
                 void* target, const std::vector<int64_t>& target_strides) {
  int64_t count = 1;
  for (int64_t extent : dims) count *= extent;
  const char* from = static_cast<const char*>(source);
  char* to = static_cast<char*>(target);
  std::vector<int64_t> index(dims.size(), 0);
  while (count-- > 0) {
    std::memcpy(to, from, element_bytes);
    for (size_t i = dims.size(); i-- > 0;) {
      from += source_strides[i];
      to += target_strides[i];
      if (++index[i] < dims[i]) break;
      from -= source_strides[i] * dims[i];
      to -= target_strides[i] * dims[i];
      index[i] = 0;
    }
  }
}

}  // namespace trivium::pjrt
