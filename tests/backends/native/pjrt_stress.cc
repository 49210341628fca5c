// Stress tests of the runtime through PJRT's table, as a host would use it: a compiler that is a C function, executables that many threads
// share, buffers and events that come and go, and every kind of wrong use that must end in an error.

#include <atomic>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "pjrt_host.h"

namespace {

using namespace trivium::pjrt;
using namespace trivium::pjrt::host;

// The compiler. A program `y = x + 1`, whose argument may be donated, and its result be there; a negative first element ends the run early.

std::atomic<int> programs{0};

int32_t AddOne(void** arguments, void* arena, void**) {
  const auto* x = static_cast<const float*>(arguments[0]);
  auto* scratch = static_cast<float*>(arena);
  auto* y = static_cast<float*>(arguments[1]);
  if (x[0] < 0) return -1;
  for (int64_t i = 0; i < kSize; ++i) scratch[i] = x[i] + 1;
  std::memcpy(y, scratch, kSize * sizeof(float));
  return 0;
}

int32_t CompileProgram(const CompileRequest* request, CompileReply* reply, void* failure) {
  static const int64_t dims[] = {kSize};
  static const SlotType slots[] = {{Buffer_Type_F32, 1, dims}, {Buffer_Type_F32, 1, dims}};
  static const uint8_t keep[] = {0}, donate[] = {1};
  static const int32_t first[] = {0};
  const std::string code(request->code, request->code_size);
  if (code == "wrong") {
    trivium_pjrt_fail(failure, "no program", 10);
    return Error_Code_INVALID_ARGUMENT;
  }
  reply->handle = 1;
  reply->entry = AddOne;
  reply->arena_size = kSize * sizeof(float);
  reply->arena_alignment = 64;
  reply->num_arguments = reply->num_results = 1;
  reply->slots = slots;
  reply->donated = code == "donate" ? donate : keep;
  reply->aliases = code == "donate" ? first : nullptr;
  reply->name = "add_one";
  reply->fingerprint = "0";
  ++programs;
  return 0;
}

void Release(uint64_t) { --programs; }

Client* NewClient() {
  trivium_pjrt_set_compiler(CompileProgram, Release);
  return Call(api.Client_Create, Client_Create_Args{}).client;
}

// No slot is empty, and objects that are null are refused.
void CheckTable() {
  const auto* slots = reinterpret_cast<void* const*>(&api.Error_Destroy);
  const size_t count = (sizeof(Api) - offsetof(Api, Error_Destroy)) / sizeof(void*);
  EXPECT(count > 120);
  for (size_t i = 0; i < count; ++i) EXPECT(slots[i] != nullptr);
  EXPECT(Refusal(api.Buffer_Delete, Buffer_Delete_Args{}) == Error_Code_INVALID_ARGUMENT);
  EXPECT(CodeOf(api.Buffer_Delete(nullptr)) == Error_Code_INVALID_ARGUMENT);
}

// A caller of an older version does not know the last fields of a record: they are neither read nor written.
void CheckOlderCallers(Client* client) {
  Client_PlatformName_Args args{{offsetof(Client_PlatformName_Args, platform_name_size), nullptr}, client, nullptr, 12345};
  EXPECT(CodeOf(api.Client_PlatformName(&args)) == Error_Code_OK);
  EXPECT(std::strncmp(args.platform_name, "trivium", 7) == 0 && args.platform_name_size == 12345);
  args.struct_size = 3;
  EXPECT(CodeOf(api.Client_PlatformName(&args)) == Error_Code_INVALID_ARGUMENT);
}

void CheckWrongUse(Client* client, LoadedExecutable* add_one, LoadedExecutable* donating) {
  std::string text;
  std::string wrong = "wrong";
  const Program program{{sizeof(Program), nullptr}, wrong.data(), wrong.size(), "mlir", 4};
  EXPECT(Refusal(api.Client_Compile, Client_Compile_Args{{}, client, &program, nullptr, 0, nullptr}, &text) == Error_Code_INVALID_ARGUMENT);
  EXPECT(text == "no program");
  const Client_Compile_Args garbage{{}, client, &program, "\xff\xff", 2, nullptr};
  EXPECT(Refusal(api.Client_Compile, garbage) == Error_Code_INVALID_ARGUMENT);
  Buffer *x = NewBuffer(client, 1), *small = NewBuffer(client, 1, 3), *bad = NewBuffer(client, -1), *y = nullptr;
  EXPECT(Execute(add_one, {}, &y) == Error_Code_INVALID_ARGUMENT);
  EXPECT(Execute(add_one, {x, x}, &y) == Error_Code_INVALID_ARGUMENT);
  EXPECT(Execute(add_one, {small}, &y, &text) == Error_Code_INVALID_ARGUMENT);
  EXPECT(text.find("f32[3], expected f32[100]") != std::string::npos);
  EXPECT(Execute(add_one, {bad}, &y) == Error_Code_INTERNAL);
  const uintptr_t place = AddressOf(x);
  EXPECT(Execute(donating, {x}, &y) == Error_Code_OK);
  EXPECT(AddressOf(y) == place);
  DestroyBuffer(y);
  EXPECT(Call(api.Buffer_IsDeleted, Buffer_IsDeleted_Args{{}, x, false}).is_deleted);
  EXPECT(Execute(donating, {x}, &y, &text) == Error_Code_INVALID_ARGUMENT);
  EXPECT(text.find("deleted or donated") != std::string::npos);
  EXPECT(Refusal(api.Buffer_DecreaseExternalReferenceCount, Buffer_DecreaseExternalReferenceCount_Args{{}, small}) ==
         Error_Code_FAILED_PRECONDITION);
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  Client_CreateUninitializedBuffer_Args large{};
  large.client = client;
  large.shape_dims = huge;
  large.shape_num_dims = 2;
  large.shape_element_type = Buffer_Type_F64;
  EXPECT(Refusal(api.Client_CreateUninitializedBuffer, large) == Error_Code_RESOURCE_EXHAUSTED);
  for (Buffer* buffer : {x, small, bad}) DestroyBuffer(buffer);
}

// A result is not in the memory of an argument that somebody else uses, or that its caller keeps.
void CheckSharedArguments(Client* client, LoadedExecutable* donating) {
  Buffer *x = NewBuffer(client, 1), *y = nullptr;
  const uintptr_t place = AddressOf(x);
  Call(api.Buffer_IncreaseExternalReferenceCount, Buffer_IncreaseExternalReferenceCount_Args{{}, x});
  EXPECT(Execute(donating, {x}, &y) == Error_Code_OK);
  EXPECT(AddressOf(y) != place && *reinterpret_cast<const float*>(place) == 1);
  Call(api.Buffer_DecreaseExternalReferenceCount, Buffer_DecreaseExternalReferenceCount_Args{{}, x});
  DestroyBuffer(x);
  DestroyBuffer(y);
}

// One thread sets the event while others wait for it, query it and add callbacks.
void CheckEvents(int turn) {
  Event* event = Call(api.Event_Create, Event_Create_Args{}).event;
  std::atomic<int> called{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < 3; ++number) {
    threads.emplace_back([&] {
      Call(api.Event_OnReady, Event_OnReady_Args{{}, event, [](Error* error, void* count) {
                                                   CodeOf(error);
                                                   ++*static_cast<std::atomic<int>*>(count);
                                                 },
                                                 &called});
      const Error_Code code = Refusal(api.Event_Await, Event_Await_Args{{}, event});
      EXPECT(code == (turn % 2 ? Error_Code_ABORTED : Error_Code_OK));
    });
  }
  Call(api.Event_Set, Event_Set_Args{{}, event, turn % 2 ? Error_Code_ABORTED : Error_Code_OK, "stop", 4});
  EXPECT(Refusal(api.Event_Set, Event_Set_Args{{}, event, Error_Code_OK, nullptr, 0}) == Error_Code_FAILED_PRECONDITION);
  for (std::thread& thread : threads) thread.join();
  while (called != 3) std::this_thread::yield();
  Call(api.Event_Destroy, Event_Destroy_Args{{}, event});
}

}  // namespace

void PjrtObjects() {
  CheckTable();
  Client* client = NewClient();
  CheckOlderCallers(client);
  LoadedExecutable *add_one = Compile(client, "keep"), *donating = Compile(client, "donate");
  CheckWrongUse(client, add_one, donating);
  CheckSharedArguments(client, donating);
  for (LoadedExecutable* executable : {add_one, donating}) {
    Call(api.LoadedExecutable_Destroy, LoadedExecutable_Destroy_Args{{}, executable});
  }
  EXPECT(programs == 0);
  for (int turn = 0; turn < 100; ++turn) CheckEvents(turn);
  Call(api.Client_Destroy, Client_Destroy_Args{{}, client});
}

// Threads share an executable and a buffer, and each makes and drops buffers of its own; if several donate one buffer, one gets it.
void PjrtExecutions() {
  Client* client = NewClient();
  LoadedExecutable *add_one = Compile(client, "keep"), *donating = Compile(client, "donate");
  Buffer* shared = NewBuffer(client, 5);
  for (int turn = 0; turn < 20; ++turn) {
    Buffer* once = NewBuffer(client, 7);
    std::atomic<int> winners{0};
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; ++number) {
      threads.emplace_back([&, number] {
        for (int repeat = 0; repeat < 25; ++repeat) {
          Buffer *y = nullptr, *z = nullptr;
          EXPECT(Execute(add_one, {shared}, &y) == Error_Code_OK);
          EXPECT(Execute(number % 2 ? donating : add_one, {y}, &z) == Error_Code_OK);
          ExpectElements(z, 7);
          DestroyBuffer(y);
          DestroyBuffer(z);
        }
        Buffer* mine = nullptr;
        if (Execute(donating, {once}, &mine) != Error_Code_OK) return;
        ++winners;
        ExpectElements(mine, 8);
        DestroyBuffer(mine);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT(winners == 1);
    DestroyBuffer(once);
  }
  DestroyBuffer(shared);
  Device* device = Call(api.Client_LookupDevice, Client_LookupDevice_Args{{}, client, 0, nullptr}).device;
  Device_MemoryStats_Args statistics{};
  statistics.device = device;
  EXPECT(Call(api.Device_MemoryStats, statistics).bytes_in_use == 0);
  for (LoadedExecutable* executable : {add_one, donating}) {
    Call(api.LoadedExecutable_Destroy, LoadedExecutable_Destroy_Args{{}, executable});
  }
  EXPECT(programs == 0);
  Call(api.Client_Destroy, Client_Destroy_Args{{}, client});
  trivium_pjrt_set_compiler(nullptr, nullptr);
}
