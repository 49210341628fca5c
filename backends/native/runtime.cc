// What compiled programs call: loops over threads, and functions of the host.

#include <cstdint>

#include "thread_pool.h"

#define TRIVIUM_EXPORT extern "C" __attribute__((visibility("default")))

// Changes whenever a signature below does; the Python side refuses another library.
TRIVIUM_EXPORT int trivium_runtime_version() { return 1; }

TRIVIUM_EXPORT int trivium_num_threads() { return trivium::GlobalThreadPool().threads(); }

TRIVIUM_EXPORT void trivium_parallel_for(trivium::RangeFunction function, void* context, int64_t count, int64_t grain, int32_t limit) {
  trivium::GlobalThreadPool().ParallelFor(function, context, count, grain, limit);
}

// Calls host function `number` through the one entry that the executable was given.
TRIVIUM_EXPORT int32_t trivium_host_call(int32_t (*host)(int64_t number, void** pointers), int64_t number, void** pointers) {
  return host(number, pointers);
}
