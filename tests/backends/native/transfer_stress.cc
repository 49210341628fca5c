// Stress tests of transfers between programs and their host, through PJRT's table: threads share an executable whose runs wait for chunks
// that other threads write, and hosts that fail in every way.

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "pjrt_host.h"

extern "C" {
int32_t trivium_send(void* routine, void** values, const int64_t* numbers);
int32_t trivium_recv(void* routine, void** values, const int64_t* numbers);
}

namespace {

using namespace trivium::pjrt;
using namespace trivium::pjrt::host;

constexpr int64_t kBytes = kSize * sizeof(float);

// Sends its argument on channel 1, and returns what it then receives on channel 2.
int32_t Exchange(void** arguments, void*, void**) {
  const int64_t sent[] = {1, 1, kBytes}, received[] = {2, 1, kBytes};
  if (const int32_t status = trivium_send(nullptr, arguments, sent)) return status;
  return trivium_recv(nullptr, arguments + 1, received);
}

int32_t CompileExchange(const CompileRequest*, CompileReply* reply, void*) {
  static const int64_t dims[] = {kSize};
  static const SlotType slots[] = {{Buffer_Type_F32, 1, dims}, {Buffer_Type_F32, 1, dims}};
  static const uint8_t keep[] = {0};
  reply->handle = 1;
  reply->entry = Exchange;
  reply->arena_alignment = 64;
  reply->num_arguments = reply->num_results = 1;
  reply->slots = slots;
  reply->donated = keep;
  reply->name = "exchange";
  reply->fingerprint = "0";
  reply->transfers = "send 1\nrecv 2";
  return 0;
}

void Release(uint64_t) {}

// The host of one run: it adds 1 to what it receives, and writes that in chunks from a thread of its own.
struct Host {
  enum Kind { kGood, kFails, kClosesEarly, kWritesTooMuch } kind;
  std::vector<float> data;
  std::thread writer;
  std::atomic<int> freed{0};

  ~Host() {
    if (writer.joinable()) writer.join();
  }
};

Error* Receive(Chunk* chunk, CallbackError* new_error, size_t total, bool is_last, void* argument) {
  Host& host = *static_cast<Host*>(argument);
  EXPECT(total == kBytes && is_last && chunk->size == total);
  const auto* elements = static_cast<const float*>(chunk->data);
  host.data.assign(elements, elements + kSize);
  chunk->deleter(chunk->data, chunk->deleter_arg);
  return host.kind == Host::kFails ? (*new_error)(Error_Code_ABORTED, "no more", 7) : nullptr;
}

Error_Code Add(CopyToDeviceStream* stream, Host& host, const void* data, size_t size) {
  Chunk chunk{const_cast<void*>(data), size, [](void*, void* host) { ++static_cast<Host*>(host)->freed; }, &host};
  CopyToDeviceStream_AddChunk_Args args{{sizeof(args), nullptr}, stream, &chunk, nullptr};
  const Error_Code code = CodeOf(api.CopyToDeviceStream_AddChunk(&args));
  if (code == Error_Code_OK) Call(api.Event_Destroy, Event_Destroy_Args{{}, args.transfer_complete});
  return code;
}

void Write(CopyToDeviceStream* stream, Host& host) {
  for (float& element : host.data) element += 1;
  const char* bytes = reinterpret_cast<const char*>(host.data.data());
  const int64_t end = host.kind == Host::kClosesEarly ? kBytes / 2 : kBytes;
  if (host.kind == Host::kWritesTooMuch) EXPECT(Add(stream, host, bytes, kBytes + 1) == Error_Code_INVALID_ARGUMENT);
  for (int64_t begin = 0; begin < end; begin += 72) {
    EXPECT(Add(stream, host, bytes + begin, std::min<int64_t>(72, end - begin)) == Error_Code_OK);
  }
  EXPECT(Call(api.CopyToDeviceStream_TotalBytes, CopyToDeviceStream_TotalBytes_Args{{}, stream, 0}).total_bytes == kBytes);
  EXPECT(Call(api.CopyToDeviceStream_CurrentBytes, CopyToDeviceStream_CurrentBytes_Args{{}, stream, 0}).current_bytes == end);
  EXPECT(Call(api.CopyToDeviceStream_GranuleSize, CopyToDeviceStream_GranuleSize_Args{{}, stream, 0}).granule_size_in_bytes == 1);
  Call(api.CopyToDeviceStream_Destroy, CopyToDeviceStream_Destroy_Args{{}, stream});
}

void Send(CopyToDeviceStream* stream, void* argument) {
  Host& host = *static_cast<Host*>(argument);
  host.writer = std::thread([stream, &host] { Write(stream, host); });
}

void RunOnce(Client* client, LoadedExecutable* executable, Host::Kind kind, float first) {
  Host host{kind, {}, {}};
  SendCallbackInfo send{1, &host, Receive}, *sends = &send;
  RecvCallbackInfo receive{2, &host, Send}, *receives = &receive;
  ExecuteOptions options{};
  options.struct_size = sizeof(options);
  options.send_callbacks = &sends;
  options.recv_callbacks = &receives;
  options.num_send_ops = options.num_recv_ops = 1;
  Buffer *argument = NewBuffer(client, first), *result = nullptr, *const* list = &argument, **made = &result;
  Event* done = nullptr;
  LoadedExecutable_Execute_Args args{};
  args.executable = executable;
  args.options = &options;
  args.argument_lists = &list;
  args.num_devices = args.num_args = 1;
  args.output_lists = &made;
  args.device_complete_events = &done;
  Call(api.LoadedExecutable_Execute, args);
  send.send_callback = nullptr;  // the run has its own copy
  std::string text;
  const Error_Code code = Awaited(done, &text);
  const bool is_good = kind == Host::kGood || kind == Host::kWritesTooMuch;
  EXPECT(code == (is_good ? Error_Code_OK : kind == Host::kFails ? Error_Code_ABORTED : Error_Code_DATA_LOSS));
  if (is_good) ExpectElements(result, first + 1);
  if (!is_good) EXPECT(text == (kind == Host::kFails ? "no more" : "channel 2 was given 200 of 400 bytes before the host destroyed its stream"));
  DestroyBuffer(result);
  DestroyBuffer(argument);
}

}  // namespace

void TransfersWithHosts() {
  constexpr int kThreads = 4, kRuns = 40;
  trivium_pjrt_set_compiler(CompileExchange, Release);
  Client* const client = Call(api.Client_Create, Client_Create_Args{}).client;
  LoadedExecutable* const executable = Compile(client, "exchange");
  std::string text;
  Buffer *argument = NewBuffer(client, 1), *result = nullptr;
  EXPECT(Execute(executable, {argument}, &result, &text) == Error_Code_INVALID_ARGUMENT);
  EXPECT(text.find("sends on channel 1") != std::string::npos);
  DestroyBuffer(argument);
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([=] {
      for (int run = 0; run < kRuns; ++run) RunOnce(client, executable, static_cast<Host::Kind>((run + number) % 4), static_cast<float>(run));
    });
  }
  for (std::thread& thread : threads) thread.join();
  Call(api.LoadedExecutable_Destroy, LoadedExecutable_Destroy_Args{{}, executable});
  Call(api.Client_Destroy, Client_Destroy_Args{{}, client});
}
