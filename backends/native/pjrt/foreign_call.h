// Calls of foreign functions by programs: a function of the host whose routine is a `ForeignCall`.

#pragma once

#include <cstdint>

#include "abi/ffi.h"

namespace trivium::ffi {

// The structures that backends/plugin/foreign.py also declares.

// An argument or a result.
struct ForeignValue {
  int32_t dtype;          // the ABI's DataType
  int32_t element_bytes;
  int64_t rank;
  int64_t* dims;
  const int64_t* strides;  // in bytes, if the handler requires another layout than row-major; otherwise null
  int64_t alias;           // of a result: the argument whose memory the handler expects it in; -1 for none
};

// What one of a handler's stages has set, and how it is deleted.
struct State {
  void* object;
  void (*deleter)(void* object);
};

// One call in a program: the handlers, the types and the attributes. `attributes` is in the ABI's own form. Python owns all of it.
struct ForeignCall {
  Handler_Bundle handlers;
  int64_t num_arguments;
  int64_t num_results;
  const ForeignValue* values;  // arguments, then results
  const Attrs* attributes;
  State states[4];  // written by us
};

}  // namespace trivium::ffi
