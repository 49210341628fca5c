// Layouts of arrays as objects of the layouts extension.

#pragma once

#include <string>

#include "abi/extensions.h"
#include "shape.h"

namespace trivium::pjrt {

struct Layouts_MemoryLayout {
  std::string text;  // in XLA's notation, which is also the serialized form
};

// The layout of all arrays of this shape.
Layouts_MemoryLayout LayoutOf(const Shape& shape);

}  // namespace trivium::pjrt
