// What the library offers: to compiled programs, loops over threads, functions of the host and a way to hear signals; to Python, runs.

#include <cstdint>
#include <string>

#include "interpreter.h"
#include "packing.h"
#include "thread_pool.h"

#define TRIVIUM_EXPORT extern "C" __attribute__((visibility("default")))

// Changes whenever a signature below does; the Python side refuses another library.
TRIVIUM_EXPORT int trivium_runtime_version() { return 7; }

TRIVIUM_EXPORT int trivium_num_threads() { return trivium::GlobalThreadPool().threads(); }

TRIVIUM_EXPORT void trivium_parallel_for(trivium::RangeFunction function, void* context, int64_t count, int64_t grain, int32_t limit) {
  trivium::GlobalThreadPool().ParallelFor(function, context, count, grain, limit);
}

// Rearranges a constant; see backends/cpu/packed.py.
TRIVIUM_EXPORT int32_t trivium_pack(const trivium::Packing* packing, const void* source, void* target) {
  return trivium::Pack(*packing, source, target);
}

// Calls a function of the host; see backends/cpu/host.py.
using HostFunction = int32_t (*)(void* routine, void** pointers, const int64_t* attributes);

TRIVIUM_EXPORT int32_t trivium_host_call(HostFunction function, void* routine, void** pointers, const int64_t* attributes) {
  return function(routine, pointers, attributes);
}

// A function of the host that calls a function of Python by its number, the one attribute; see CallPython.
TRIVIUM_EXPORT int32_t trivium_call_python(void* callable, void** pointers, const int64_t* attributes) {
  return trivium::CallPython(callable, attributes[0], pointers);
}

// Called at launches and turns of loops, after enough work that its cost does not count.
TRIVIUM_EXPORT int32_t trivium_check_signals() { return trivium::CheckSignals(); }

TRIVIUM_EXPORT void trivium_set_interpreter(const trivium::Interpreter* interpreter) { trivium::SetInterpreter(*interpreter); }

TRIVIUM_EXPORT int32_t trivium_run(const trivium::Frame* frame) { return trivium::Run(*frame); }

// What ended this thread's last run, or last call, that gave another status than 0 without a Python exception. Lives until the next one.
TRIVIUM_EXPORT const char* trivium_exception() {
  static thread_local std::string text;
  text = trivium::TakeException();
  return text.c_str();
}
