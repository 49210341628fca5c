// The Python interpreter, as runs of compiled programs meet it: they leave its lock, ask whether a signal has come, and call functions of
// Python. The library links no Python: whoever has one gives the C functions. Without them nothing here does anything.

#pragma once

#include <cstdint>
#include <string>

namespace trivium {

// The functions of Python's C API that are used, all of its stable ABI, and the thread in which Python handles signals.
struct Interpreter {
  void* (*save_thread)();                                      // PyEval_SaveThread
  void (*restore_thread)(void* state);                         // PyEval_RestoreThread
  int (*check_signals)();                                      // PyErr_CheckSignals
  void* (*call)(void* callable, const char* format, ...);      // PyObject_CallFunction
  void (*release)(void* object);                               // Py_DecRef
  int (*ensure)();                                             // PyGILState_Ensure
  void (*leave)(int state);                                    // PyGILState_Release
  void (*fetch)(void** type, void** value, void** traceback);  // PyErr_Fetch
  void* (*text)(void* object);                                 // PyObject_Str
  const char* (*utf8)(void* text, intptr_t* size);             // PyUnicode_AsUTF8AndSize
  void (*clear)();                                             // PyErr_Clear
  uint64_t main_thread;                                        // pthread_self() of Python's main thread
};

// What one run needs: the entry of the program, and what it is given.
struct Frame {
  int32_t (*entry)(void** arguments, void* arena, void** context);
  void** arguments;
  void* arena;
  void** context;
};

void SetInterpreter(const Interpreter& interpreter);

// Runs a program without the interpreter's lock, which the caller holds. Returns the program's status; where that is not 0, a Python
// exception may be set.
int32_t Run(const Frame& frame);

// Called from a run: lets Python handle signals if it has not been asked for a while. Returns 0, or -1 when a handler raised; the
// exception is set, and the run must end.
int32_t CheckSignals();

// Called from a run: calls `callable(number, address of pointers)`. Returns 0, or -1 when it raised. Where the run was called from Python,
// by `Run`, the exception is set; in any other run its text is kept for `TakeException`.
int32_t CallPython(void* callable, int64_t number, void** pointers);

// Keeps a text for `TakeException` in the same way.
void KeepException(const char* text);

// What Python said in this thread's last run that was not called from Python, once; empty if it said nothing.
std::string TakeException();

}  // namespace trivium
