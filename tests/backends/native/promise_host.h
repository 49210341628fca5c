// What the stress tests of promised buffers share: a client, and a program that takes long, so that its runs are done by the device's queue.

#pragma once

#include <atomic>
#include <string>

#include "pjrt_host.h"

namespace trivium::pjrt::host {

constexpr int64_t kBytes = kSize * sizeof(float);

inline std::atomic<int> runs{0};

inline int32_t AddOne(void** arguments, void*, void**) {
  ++runs;
  const auto* x = static_cast<const float*>(arguments[0]);
  auto* y = static_cast<float*>(arguments[1]);
  for (int64_t i = 0; i < kSize; ++i) y[i] = x[i] + 1;
  return 0;
}

// A program `y = x + 1`, which says that it takes long.
inline int32_t CompileAddOne(const CompileRequest*, CompileReply* reply, void*) {
  static const int64_t dims[] = {kSize};
  static const SlotType slots[] = {{Buffer_Type_F32, 1, dims}, {Buffer_Type_F32, 1, dims}};
  static const uint8_t keep[] = {0};
  reply->entry = AddOne;
  reply->arena_alignment = 64;
  reply->num_arguments = reply->num_results = 1;
  reply->slots = slots;
  reply->donated = keep;
  reply->name = "add_one";
  reply->fingerprint = "0";
  reply->flops = 1e15;
  return 0;
}

class Session {
 public:
  Session() {
    trivium_pjrt_set_compiler(CompileAddOne, [](uint64_t) {});
    client = Call(api.Client_Create, Client_Create_Args{}).client;
    device = Call(api.Client_LookupDevice, Client_LookupDevice_Args{{}, client, 0, nullptr}).device;
    memory = Call(api.Device_DefaultMemory, Device_DefaultMemory_Args{{}, device, nullptr}).memory;
    add_one = Compile(client, "slow");
  }
  ~Session() {
    Call(api.LoadedExecutable_Destroy, LoadedExecutable_Destroy_Args{{}, add_one});
    Device_MemoryStats_Args statistics{};
    statistics.device = device;
    EXPECT(Call(api.Device_MemoryStats, statistics).bytes_in_use == 0);
    Call(api.Client_Destroy, Client_Destroy_Args{{}, client});
    trivium_pjrt_set_compiler(nullptr, nullptr);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Buffer* Run(Buffer* x) const {
    Buffer* y = nullptr;
    EXPECT(Launch(add_one, {x}, &y, nullptr) == Error_Code_OK);
    return y;
  }

  Client* client;
  Device* device;
  Memory* memory;
  LoadedExecutable* add_one;
};

inline bool IsReady(Buffer* buffer) {
  Event* event = Call(api.Buffer_ReadyEvent, Buffer_ReadyEvent_Args{{}, buffer, nullptr}).event;
  const bool is_ready = Call(api.Event_IsReady, Event_IsReady_Args{{}, event, false}).is_ready;
  Call(api.Event_Destroy, Event_Destroy_Args{{}, event});
  return is_ready;
}

inline Error_Code ErrorOfBuffer(Buffer* buffer, std::string* text = nullptr) {
  return Awaited(Call(api.Buffer_ReadyEvent, Buffer_ReadyEvent_Args{{}, buffer, nullptr}).event, text);
}

}  // namespace trivium::pjrt::host
