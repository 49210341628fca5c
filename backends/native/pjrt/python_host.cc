#include "python_host.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <sstream>

#include "error.h"
#include "runtime_lock.h"

namespace trivium::pjrt {
namespace {

constexpr const char* kVariable = "TRIVIUM_PYTHON";

// Prints where the library of the interpreter that runs this may be, a line for each place.
constexpr const char* kPlaces =
    "import os, sys, sysconfig\n"
    "name = sysconfig.get_config_var('INSTSONAME')\n"
    "for folder in sysconfig.get_config_var('LIBDIR'), os.path.join(sys.base_prefix, 'lib'), '':\n"
    "    print(os.path.join(folder, name))\n";

[[noreturn]] void Fail(const std::string& message) { throw Failure(Error_Code_FAILED_PRECONDITION, message); }

template <class Function>
Function* Symbol(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// The part of Python's limited interface that is used here. It is the same for all versions.
struct Interpreter {
  int (*ensure)() = Symbol<int()>("PyGILState_Ensure");
  void (*leave)(int) = Symbol<void(int)>("PyGILState_Release");
  void* (*import)(const char*) = Symbol<void*(const char*)>("PyImport_ImportModule");
  void* (*attribute)(void*, const char*) = Symbol<void*(void*, const char*)>("PyObject_GetAttrString");
  void* (*call)(void*, void*) = Symbol<void*(void*, void*)>("PyObject_CallObject");
  void (*fetch)(void**, void**, void**) = Symbol<void(void**, void**, void**)>("PyErr_Fetch");
  void* (*text)(void*) = Symbol<void*(void*)>("PyObject_Str");
  const char* (*characters)(void*, ptrdiff_t*) = Symbol<const char*(void*, ptrdiff_t*)>("PyUnicode_AsUTF8AndSize");
  void (*clear)() = Symbol<void()>("PyErr_Clear");
  void (*release)(void*) = Symbol<void(void*)>("Py_DecRef");
};

// Holds the interpreter's lock. This thread may hold it already.
class PythonLock {
 public:
  explicit PythonLock(const Interpreter& python) : python_(python), state_(python.ensure()) {}
  ~PythonLock() { python_.leave(state_); }
  PythonLock(const PythonLock&) = delete;
  PythonLock& operator=(const PythonLock&) = delete;

 private:
  const Interpreter& python_;
  const int state_;
};

// The text of the exception that this thread has in Python, which is cleared.
std::string TakeText(const Interpreter& python) {
  void *type = nullptr, *value = nullptr, *trace = nullptr;
  python.fetch(&type, &value, &trace);
  void* const text = value == nullptr ? nullptr : python.text(value);
  ptrdiff_t size = 0;
  const char* const characters = text == nullptr ? nullptr : python.characters(text, &size);
  const std::string found = characters == nullptr ? "an exception without a text" : std::string(characters, static_cast<size_t>(size));
  python.clear();
  for (void* object : {text, type, value, trace}) {
    if (object != nullptr) python.release(object);
  }
  return found;
}

// Calls a function of a module of ours; its result is not used.
void CallModule(const char* module, const char* function) {
  static const Interpreter python;
  const PythonLock lock(python);
  void* const imported = python.import(module);
  void* const callable = imported == nullptr ? nullptr : python.attribute(imported, function);
  void* const result = callable == nullptr ? nullptr : python.call(callable, nullptr);
  const std::optional<std::string> failure = result == nullptr ? std::optional(TakeText(python)) : std::nullopt;
  for (void* object : {result, callable, imported}) {
    if (object != nullptr) python.release(object);
  }
  if (failure) Fail(std::string("Python cannot start Trivium's compiler, ") + module + ": " + *failure);
}

// What an interpreter prints when it runs a script, in a process of its own.
std::string Printed(const std::string& executable, const char* script) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) Fail(std::string("there is no pipe to another process: ") + std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const char* const arguments[] = {executable.c_str(), "-I", "-c", script, nullptr};
  pid_t child = 0;
  const int error = posix_spawn(&child, executable.c_str(), &actions, nullptr, const_cast<char* const*>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t size; error == 0 && (size = TEMP_FAILURE_RETRY(read(ends[0], part, sizeof(part)))) > 0;) text.append(part, size);
  close(ends[0]);
  if (error != 0) Fail("Python at " + executable + " does not start: " + std::strerror(error));
  TEMP_FAILURE_RETRY(waitpid(child, nullptr, 0));  // what it printed tells whether it worked
  return text;
}

// Loads the library of an interpreter, for modules in C, too: these expect its symbols in the process.
void LoadLibrary(const std::string& executable) {
  std::istringstream places(Printed(executable, kPlaces));
  std::string reasons;
  for (std::string place; std::getline(places, place);) {
    if (dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
    reasons += std::string(reasons.empty() ? ": " : "; ") + dlerror();
  }
  Fail("Python at " + executable + " has no library that another process can load, or is no Python" + reasons);
}

std::string chosen;  // guarded by RuntimeLock()

std::string Chosen() {
  {
    const std::lock_guard<std::mutex> lock(RuntimeLock());
    if (!chosen.empty()) return chosen;
  }
  if (const char* variable = std::getenv(kVariable); variable != nullptr && *variable != 0) return variable;
  Fail(std::string("there is no compiler, which is written in Python: expected ") + kVariable +
       ", or the option python of the client, to name the interpreter of an environment in which Trivium is installed, such as "
       "/opt/trivium/bin/python");
}

// Starts the interpreter, which finds its environment by its own path. This thread becomes its main thread. It is never ended.
void StartPython(const std::string& executable) {
  LoadLibrary(executable);
  const auto decode = Symbol<wchar_t*(const char*, size_t*)>("Py_DecodeLocale");
  const auto set_name = Symbol<void(const wchar_t*)>("Py_SetProgramName");
  const auto initialize = Symbol<void(int)>("Py_InitializeEx");
  const auto save = Symbol<void*()>("PyEval_SaveThread");
  if (decode == nullptr || set_name == nullptr || initialize == nullptr || save == nullptr) {
    Fail("the library of Python at " + executable + " lacks functions of its limited interface");
  }
  wchar_t* const name = decode(executable.c_str(), nullptr);
  if (name == nullptr) Fail("the path of Python, " + executable + ", cannot be decoded");
  set_name(name);  // which Python keeps
  constexpr int kNoSignalHandlers = 0;
  initialize(kNoSignalHandlers);
  save();
}

}  // namespace

void ChoosePython(const std::string& executable) {
  const std::lock_guard<std::mutex> lock(RuntimeLock());
  chosen = executable;
}

void RegisterCompiler() {
  {
    // Whoever waits for this does not hold the interpreter's lock: there is no interpreter yet.
    static std::mutex mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    const auto is_started = Symbol<int()>("Py_IsInitialized");
    if (is_started == nullptr) {
      StartPython(Chosen());
    } else if (is_started() == 0) {
      Fail("the Python of this process has ended, or has not started");
    }
  }
  CallModule("trivium.backends.plugin", "api");
}

}  // namespace trivium::pjrt
