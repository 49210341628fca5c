// What the library offers: to compiled programs, loops over threads, functions of the host and a way to hear signals; to Python, runs.

#include <cstdint>

#include "interpreter.h"
#include "thread_pool.h"

#define TRIVIUM_EXPORT extern "C" __attribute__((visibility("default")))

// Changes whenever a signature below does; the Python side refuses another library.
TRIVIUM_EXPORT int trivium_runtime_version() { return 3; }

TRIVIUM_EXPORT int trivium_num_threads() { return trivium::GlobalThreadPool().threads(); }

TRIVIUM_EXPORT void trivium_parallel_for(trivium::RangeFunction function, void* context, int64_t count, int64_t grain, int32_t limit) {
  trivium::GlobalThreadPool().ParallelFor(function, context, count, grain, limit);
}

// Calls a function of Python by its number; see CallPython.
TRIVIUM_EXPORT int32_t trivium_host_call(void* callable, int64_t number, void** pointers) {
  return trivium::CallPython(callable, number, pointers);
}

// Called at launches and turns of loops, after enough work that its cost does not count.
TRIVIUM_EXPORT int32_t trivium_check_signals() { return trivium::CheckSignals(); }

TRIVIUM_EXPORT void trivium_set_interpreter(const trivium::Interpreter* interpreter) { trivium::SetInterpreter(*interpreter); }

TRIVIUM_EXPORT int32_t trivium_run(const trivium::Frame* frame) { return trivium::Run(*frame); }
