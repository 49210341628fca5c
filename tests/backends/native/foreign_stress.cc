// Stress test of programs as foreign functions: threads make programs, hosts keep them as the states of calls, run them, and give them up,
// while Python may be too busy to release what they belong to; and hosts register functions and types, and give data to runs.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "interpreter.h"
#include "pjrt/abi/extensions.h"
#include "pjrt/error.h"
#include "pjrt/foreign_api.h"
#include "pjrt_host.h"

using Entry = int32_t(void** arguments, void* arena, void** context);

extern "C" {
void* trivium_new_program(Entry* entry, void** context, void* owner, size_t arena_size, size_t arena_alignment, const char* name);
int64_t trivium_number_of_program(const void* program);
void trivium_release_program(void* program);
trivium::ffi::Error* trivium_instantiate_program(trivium::ffi::CallFrame* frame);
trivium::ffi::Error* trivium_call_program(trivium::ffi::CallFrame* frame);
void trivium_release_objects();
void trivium_set_interpreter(const trivium::Interpreter* interpreter);
}

namespace {

using namespace trivium::ffi;

constexpr int kThreads = 4, kTurns = 400;

std::atomic<int> released{0};
std::atomic<int> asked{0};
std::atomic<int (*)(void*)> later{nullptr};

void ReleaseOwner(void* owner) {
  EXPECT(*static_cast<int*>(owner) == 1);
  *static_cast<int*>(owner) = 0;
  ++released;
}

// Python's list of calls may be full.
int CallLater(int (*function)(void*), void*) {
  if (++asked % 5 == 0) return -1;
  later = function;
  return 0;
}

int32_t AddOne(void** arguments, void* arena, void** context) {
  float* const scratch = static_cast<float*>(arena);
  *scratch = *static_cast<float*>(arguments[0]) + *static_cast<float*>(context[0]);
  *static_cast<float*>(arguments[1]) = *scratch;
  return *scratch < 0 ? -1 : 0;
}

// A call of a program, as a host makes it.
struct Call {
  explicit Call(void* address) : number(trivium_number_of_program(address)), program(reinterpret_cast<int64_t>(address)) {
    frame.api = &ForeignApi();
    frame.ctx = &context;
    frame.attrs.size = 2;
    frame.attrs.attrs = attributes.data();
    frame.args.size = frame.rets.size = 1;
    frame.args.args = &argument_buffer;
    frame.rets.rets = &result_buffer;
  }

  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  ~Call() {
    const State& state = context.states[ExecutionStage_INSTANTIATE];
    if (state.object != nullptr) state.deleter(state.object);
  }

  // The code of the error of one of its stages.
  int32_t Run(Handler* handler) {
    Error* const error = handler(&frame);
    const int32_t code = error == nullptr ? 0 : error->code;
    delete error;
    return code;
  }

  float x = 1, y = 0;
  int64_t number, program;
  Scalar first{{}, &number}, second{{}, &program};
  std::array<void*, 2> attributes{&first, &second};
  Buffer argument{{sizeof(Buffer), nullptr}, {}, &x, 0, nullptr}, result{{sizeof(Buffer), nullptr}, {}, &y, 0, nullptr};
  void *argument_buffer = &argument, *result_buffer = &result;
  ExecutionContext context;
  CallFrame frame{};
};

void UseProgram(int& owner) {
  float one = 1;
  void* context[] = {&one};
  owner = 1;
  void* const address = trivium_new_program(AddOne, context, &owner, sizeof(float), 64, "main");
  Call late(address);
  {
    Call first(address), second(address);
    for (Call* call : {&first, &second}) EXPECT(call->Run(trivium_instantiate_program) == 0);
    trivium_release_program(address);
    EXPECT(first.Run(trivium_call_program) == 0 && first.y == 2);
    second.x = -5;
    EXPECT(second.Run(trivium_call_program) == trivium::pjrt::Error_Code_INTERNAL);
  }
  EXPECT(late.Run(trivium_instantiate_program) == trivium::pjrt::Error_Code_FAILED_PRECONDITION);
}

// What hosts register, and the data of runs.
void UseRegistry(const trivium::pjrt::Api& api, int turn) {
  using namespace trivium::pjrt;
  const std::string name = "test" + std::to_string(turn % 50);
  int64_t type = 0, again = 0;
  for (int64_t* const number : {&type, &again, &type}) RegisterType(name, *number, ReleaseOwner);
  EXPECT(type == again && DeleterOf(type) == ReleaseOwner);
  const Handler_Bundle handlers{nullptr, nullptr, nullptr, trivium_call_program};
  RegisterHandler(name, handlers);
  EXPECT(FindHandler(name)->execute == trivium_call_program && !FindHandler("nobody"));
  const auto context = host::Call(api.ExecuteContext_Create, ExecuteContext_Create_Args{}).context;
  const auto* extension = api.extension_start;
  while (extension->type != Extension_Type_FFI) extension = extension->next;
  const auto add = reinterpret_cast<const FFI_Extension*>(extension)->user_data_add;
  ExecuteOptions options{};
  options.context = context;
  EXPECT(UserDataOf(&options) == nullptr);
  std::thread other([&] { host::Call(add, FFI_UserData_Add_Args{{}, context, {type, &turn}}); });
  const UserDataPtr before = UserDataOf(&options);  // with or without what the other thread adds
  other.join();
  const UserDataPtr data = UserDataOf(&options);
  host::Call(api.ExecuteContext_Destroy, ExecuteContext_Destroy_Args{{}, context});
  const UserDataScope scope(data.get());
  EXPECT(UserDataScope::Current()->at(type) == &turn && (before == nullptr || before == data));
}

}  // namespace

void ForeignPrograms() {
  const trivium::Interpreter interpreter{.release = ReleaseOwner, .call_later = CallLater};
  trivium_set_interpreter(&interpreter);
  std::vector<int> owners(kThreads * kTurns);
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      for (int turn = 0; turn < kTurns; ++turn) {
        UseProgram(owners[number * kTurns + turn]);
        UseRegistry(*GetPjrtApi(), turn);
      }
      --running;
    });
  }
  while (running > 0) {
    if (auto* const function = later.exchange(nullptr)) function(nullptr);
  }
  for (std::thread& thread : threads) thread.join();
  trivium_release_objects();
  EXPECT(released == kThreads * kTurns);
}
