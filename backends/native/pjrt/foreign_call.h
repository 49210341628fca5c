// Calls of foreign functions, as programs make them: a function of the host whose routine is a `ForeignCall`.

#pragma once

#include <cstdint>

#include "abi/ffi.h"

namespace trivium::ffi {

// The structures that backends/plugin/foreign.py has too.

// An argument or a result.
struct ForeignValue {
  int32_t dtype;          // the ABI's DataType
  int32_t element_bytes;
  int64_t rank;
  int64_t* dims;
  const int64_t* strides;  // in bytes, where the handler wants another layout than row-major; null otherwise
  int64_t alias;           // of a result: the argument whose memory the handler expects it in; -1 for none
};

// One call in a program: whom, with what types and attributes. `attributes` is in the ABI's own form. All of it is Python's.
struct ForeignCall {
  Handler_Bundle handlers;
  int64_t num_arguments;
  int64_t num_results;
  const ForeignValue* values;  // arguments, then results
  const Attrs* attributes;
  void* states[4];  // what the handler's stages keep, written by us
};

}  // namespace trivium::ffi
