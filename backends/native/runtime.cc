// The library's interface: for compiled programs, loops over threads, functions of the host and checks for signals; for Python, runs.

#include <cstdint>
#include <string>

#include "interpreter.h"
#include "packing.h"
#include "thread_pool.h"

#define TRIVIUM_EXPORT extern "C" __attribute__((visibility("default")))

// Changes whenever a signature below does; the Python side rejects any other version.
TRIVIUM_EXPORT int trivium_runtime_version() { return 12; }

TRIVIUM_EXPORT int trivium_num_threads() { return trivium::GlobalThreadPool().threads(); }

TRIVIUM_EXPORT void trivium_parallel_for(trivium::RangeFunction function, void* context, int64_t count, int64_t grain, int32_t limit) {
  trivium::CurrentThreadPool().ParallelFor(function, context, count, grain, limit);
}

// From now on, programs that this thread calls may use the host's threads.
TRIVIUM_EXPORT void trivium_use_host_threads(const trivium::HostThreads* threads) { trivium::UseHostThreads(*threads); }

// Rearranges a constant; see backends/cpu/packed.py.
TRIVIUM_EXPORT int32_t trivium_pack(const trivium::Packing* packing, const void* source, void* target) {
  return trivium::Pack(*packing, source, target);
}

// Calls a function of the host; see backends/cpu/host.py.
using HostFunction = int32_t (*)(void* routine, void** pointers, const int64_t* attributes);

TRIVIUM_EXPORT int32_t trivium_host_call(HostFunction function, void* routine, void** pointers, const int64_t* attributes) {
  return function(routine, pointers, attributes);
}

// A host function that calls a Python function by its number, the only attribute; see CallPython.
TRIVIUM_EXPORT int32_t trivium_call_python(void* callable, void** pointers, const int64_t* attributes) {
  return trivium::CallPython(callable, attributes[0], pointers);
}

// Called at launches and loop iterations, after enough work that its cost does not matter.
TRIVIUM_EXPORT int32_t trivium_check_signals() { return trivium::CheckSignals(); }

TRIVIUM_EXPORT void trivium_set_interpreter(const trivium::Interpreter* interpreter) { trivium::SetInterpreter(*interpreter); }

// Writes where Python objects have their memory; see Addresses.
TRIVIUM_EXPORT int32_t trivium_addresses(void* list, int64_t count, void** addresses) { return trivium::Addresses(list, count, addresses); }

// For Python, which holds its lock: releases objects that native code has given up, and stops doing so when it exits.
TRIVIUM_EXPORT void trivium_release_objects() { trivium::ReleaseNow(); }

TRIVIUM_EXPORT void trivium_keep_objects() { trivium::KeepObjects(); }

TRIVIUM_EXPORT int32_t trivium_run(trivium::Frame* frame) { return trivium::Run(*frame); }

// The same on the memory of Python objects; see RunOn.
TRIVIUM_EXPORT int32_t trivium_run_on(void* list, int64_t count, trivium::Frame* frame) { return trivium::RunOn(list, count, *frame); }

// The reason why this thread's last run, or last call, returned a status other than 0 without a Python exception. Valid until the next one.
TRIVIUM_EXPORT const char* trivium_exception() {
  static thread_local std::string text;
  text = trivium::TakeException();
  return text.c_str();
}
