// The Python interpreter, as used by runs of compiled programs: they release its lock, check whether a signal has arrived, and call Python
// functions. The library does not link Python: a process that has one passes in the C functions. Without them nothing here does anything.

#pragma once

#include <cstdint>
#include <string>

namespace trivium {

// The functions of Python's C API that are used, all of which belong to its stable ABI, and the thread in which Python handles signals.
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
  int (*call_later)(int (*function)(void*), void* argument);   // Py_AddPendingCall
  void* (*item)(void* list, intptr_t index);                   // PyList_GetItem
  int (*lend)(void* object, void* buffer, int flags);          // PyObject_GetBuffer
  void (*give_back)(void* buffer);                             // PyBuffer_Release
  uint64_t main_thread;                                        // pthread_self() of Python's main thread
};

// One run: the entry of the program, and that function's parameters.
struct Frame {
  int32_t (*entry)(void** arguments, void* arena, void** context);
  void** arguments;
  void* arena;
  void** context;
  int64_t threads;  // the most that a loop of an earlier run has asked for: a run's own record, 0 before the first
};

void SetInterpreter(const Interpreter& interpreter);

// Runs a program without the interpreter's lock, which the caller holds. Returns the program's status; if it is not 0, a Python exception
// may be set.
int32_t Run(Frame& frame);

// Runs a program on the memory of the first `count` objects of a list, whose addresses it writes to the frame's arguments. Returns -1 if an
// object does not lend its memory; then the exception is set.
int32_t RunOn(void* list, int64_t count, Frame& frame);

// Called from a run: lets Python handle signals if the last check was long enough ago. Returns 0, or -1 if a handler raised; then the
// exception is set, and the run must end.
int32_t CheckSignals();

// Called from a run: calls `callable(number, address of pointers)`. Returns 0, or -1 if it raised. If the run was called from Python, by
// `Run`, the exception is set; in any other run its text is kept for `TakeException`.
int32_t CallPython(void* callable, int64_t number, void** pointers);

// Writes where each of the first `count` objects of a list has its memory. The caller holds the interpreter's lock, and the objects. Returns
// 0, or -1 if an object does not lend its memory; then the exception is set.
int32_t Addresses(void* list, int64_t count, void** addresses);

// Gives up a reference to a Python object, from any thread and without the interpreter's lock: Python's main thread does it soon. Nothing
// is given up any more after `KeepObjects`, which an interpreter that exits calls.
void ReleaseLater(void* object);
void KeepObjects();

// Does now what is left to do of that. The caller holds the interpreter's lock.
void ReleaseNow();

// Keeps a text for `TakeException` in the same way.
void KeepException(const char* text);

// The text of the exception that ended this thread's last run that was not called from Python, returned once; empty if there was none.
std::string TakeException();

}  // namespace trivium
