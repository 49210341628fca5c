// Stress tests of buffers whose elements the host promises, through PJRT's table: threads fill them in pieces, while runs that others have
// added already wait for them.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "pjrt_host.h"
#include "trace.h"

namespace {

using namespace trivium::pjrt;
using namespace trivium::pjrt::host;

constexpr int64_t kBytes = kSize * sizeof(float);
constexpr int64_t kLarge = int64_t{5} << 20;  // elements; each half of them is a long copy

std::atomic<int> runs{0};

int32_t AddOne(void** arguments, void*, void**) {
  ++runs;
  const auto* x = static_cast<const float*>(arguments[0]);
  auto* y = static_cast<float*>(arguments[1]);
  for (int64_t i = 0; i < kSize; ++i) y[i] = x[i] + 1;
  return 0;
}

// A program `y = x + 1`, which says that it takes long.
int32_t CompileAddOne(const CompileRequest* request, CompileReply* reply, void*) {
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
  reply->flops = std::string(request->code, request->code_size) == "quick" ? 0 : 1e15;
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

bool IsReady(Buffer* buffer) {
  Event* event = Call(api.Buffer_ReadyEvent, Buffer_ReadyEvent_Args{{}, buffer, nullptr}).event;
  const bool is_ready = Call(api.Event_IsReady, Event_IsReady_Args{{}, event, false}).is_ready;
  Call(api.Event_Destroy, Event_Destroy_Args{{}, event});
  return is_ready;
}

Error_Code ErrorOfBuffer(Buffer* buffer, std::string* text = nullptr) {
  return Awaited(Call(api.Buffer_ReadyEvent, Buffer_ReadyEvent_Args{{}, buffer, nullptr}).event, text);
}

// A transfer manager of arrays of f32.
class Manager {
 public:
  Manager(const Session& session, std::vector<int64_t> sizes) {
    std::vector<ShapeSpec> specs;
    for (const int64_t& size : sizes) specs.push_back({{sizeof(ShapeSpec), nullptr}, &size, 1, Buffer_Type_F32});
    Client_CreateBuffersForAsyncHostToDevice_Args args{};
    args.client = session.client;
    args.shape_specs = specs.data();
    args.num_shape_specs = specs.size();
    args.memory = session.memory;
    handle_ = Call(api.Client_CreateBuffersForAsyncHostToDevice, args).transfer_manager;
  }
  ~Manager() { Destroy(); }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  void Destroy() {
    Call(api.AsyncHostToDeviceTransferManager_Destroy, AsyncHostToDeviceTransferManager_Destroy_Args{{}, handle_});
    handle_ = nullptr;
  }

  Buffer* Retrieve(int index) const {
    const AsyncHostToDeviceTransferManager_RetrieveBuffer_Args args{{}, handle_, index, nullptr};
    return Call(api.AsyncHostToDeviceTransferManager_RetrieveBuffer, args).buffer_out;
  }

  // Transfers, and waits until the host's memory is no longer used. `after` is called in between.
  template <class After>
  Error_Code Transfer(int index, const void* data, int64_t offset, int64_t size, bool is_last, After after) const {
    AsyncHostToDeviceTransferManager_TransferData_Args args{{sizeof(args), nullptr}, handle_, index, data, offset, size, is_last, nullptr};
    if (const Error_Code code = CodeOf(api.AsyncHostToDeviceTransferManager_TransferData(&args))) return code;
    after();
    return Awaited(args.done_with_h2d_transfer);
  }
  Error_Code Transfer(int index, const void* data, int64_t offset, int64_t size, bool is_last) const {
    return Transfer(index, data, offset, size, is_last, [] {});
  }

  Error_Code Fail(int index, Error_Code code, const std::string& text) const {
    return Refusal(api.AsyncHostToDeviceTransferManager_SetBufferError,
                   AsyncHostToDeviceTransferManager_SetBufferError_Args{{}, handle_, index, code, text.data(), text.size()});
  }

  void AddMetadata(const NamedValue& value) const {
    Call(api.AsyncHostToDeviceTransferManager_AddMetadata, AsyncHostToDeviceTransferManager_AddMetadata_Args{{}, handle_, &value, 1});
  }

 private:
  AsyncHostToDeviceTransferManager* handle_;
};

// Threads write the pieces of several buffers in random order; runs on the buffers, which were added before, have their elements.
void CheckPieces(const Session& session, int turn) {
  constexpr int kBuffers = 4;
  const Manager manager(session, std::vector<int64_t>(kBuffers, kSize));
  std::vector<Buffer*> results;
  for (int index = 0; index < kBuffers; ++index) {
    Buffer *x = manager.Retrieve(index), *y = session.Run(x);
    EXPECT(!IsReady(x) && !IsReady(y));
    DestroyBuffer(x);
    results.push_back(y);
  }
  std::vector<std::thread> writers;
  for (int index = 0; index < kBuffers; ++index) {
    writers.emplace_back([&, index] {
      std::vector<int64_t> pieces(20);
      std::iota(pieces.begin(), pieces.end(), 0);
      std::shuffle(pieces.begin(), pieces.end(), std::mt19937(turn * kBuffers + index));
      constexpr int64_t kPiece = kBytes / 20;
      for (const int64_t piece : pieces) {
        std::vector<float> data(kPiece / sizeof(float), static_cast<float>(index));
        const bool is_last = piece == pieces.back();
        EXPECT(manager.Transfer(index, data.data(), piece * kPiece, kPiece, is_last) == Error_Code_OK);
      }
    });
  }
  for (int index = 0; index < kBuffers; ++index) ExpectElements(results[index], static_cast<float>(index) + 1);
  for (std::thread& writer : writers) writer.join();
  for (Buffer* result : results) DestroyBuffer(result);
}

// Long copies are done while runs that need them have been added before, and after their manager has been destroyed.
void CheckLongCopies(const Session& session) {
  Manager manager(session, {kLarge, kSize});
  const std::vector<float> data(kLarge, 3);
  Buffer *large = manager.Retrieve(0), *small = manager.Retrieve(1), *result = session.Run(small);
  constexpr int64_t kHalf = kLarge / 2 * sizeof(float);
  EXPECT(manager.Transfer(0, data.data(), kHalf, kHalf, false) == Error_Code_OK);
  EXPECT(!IsReady(large));
  EXPECT(manager.Transfer(0, data.data(), 0, kHalf, true, [&] {
    EXPECT(manager.Transfer(1, data.data(), 0, kBytes, true) == Error_Code_OK);
    manager.Destroy();
  }) == Error_Code_OK);
  EXPECT(ErrorOfBuffer(large) == Error_Code_OK);
  std::vector<float> found(2);
  Buffer_CopyRawToHost_Args copy{};
  copy.buffer = large;
  copy.dst = found.data();
  copy.offset = kHalf - sizeof(float);
  copy.transfer_size = 2 * sizeof(float);
  EXPECT(Awaited(Call(api.Buffer_CopyRawToHost, copy).event) == Error_Code_OK && found == std::vector<float>({3, 3}));
  ExpectElements(result, 4);
  for (Buffer* buffer : {large, small, result}) DestroyBuffer(buffer);
}

// Errors reach everything that depends on the buffer, and nothing of that runs.
void CheckFailures(const Session& session) {
  Manager manager(session, {kSize, kSize, kSize});
  std::vector<Buffer*> buffers, results;
  for (int index = 0; index < 3; ++index) {
    buffers.push_back(manager.Retrieve(index));
    results.push_back(session.Run(buffers.back()));
  }
  const int before = runs;
  const std::vector<float> data(kSize, 1);
  std::string text;
  EXPECT(manager.Fail(0, Error_Code_DATA_LOSS, "no disk") == Error_Code_OK);
  EXPECT(manager.Fail(0, Error_Code_DATA_LOSS, "no disk") == Error_Code_FAILED_PRECONDITION);
  EXPECT(manager.Transfer(0, data.data(), 0, kBytes, true) == Error_Code_FAILED_PRECONDITION);
  EXPECT(ErrorOfBuffer(results[0], &text) == Error_Code_DATA_LOSS && text == "no disk");
  EXPECT(manager.Transfer(1, data.data(), 0, 8, false) == Error_Code_OK);
  EXPECT(manager.Transfer(1, data.data(), 8, 8, true) == Error_Code_FAILED_PRECONDITION);
  EXPECT(manager.Transfer(1, data.data(), 8, kBytes, false) == Error_Code_INVALID_ARGUMENT);
  EXPECT(manager.Transfer(3, data.data(), 0, 8, false) == Error_Code_INVALID_ARGUMENT);
  EXPECT(runs == before);
  EXPECT(manager.Transfer(1, data.data(), 8, kBytes - 8, true) == Error_Code_OK);
  NamedValue name{};
  name.struct_size = sizeof(name);
  name.name = "request";
  name.name_size = 7;
  name.type = NamedValue_kString;
  name.string_value = "17";
  name.value_size = 2;
  manager.AddMetadata(name);
  manager.Destroy();
  EXPECT(ErrorOfBuffer(results[2], &text) == Error_Code_CANCELLED && text.find("(request=17)") != std::string::npos);
  ExpectElements(results[1], 2);
  EXPECT(runs == before + 1);
  for (Buffer* buffer : buffers) DestroyBuffer(buffer);
  for (Buffer* result : results) DestroyBuffer(result);
}

// More runs than a queue holds wait for a buffer; those that were added later, and do not need it, are done before.
void CheckOrder(const Session& session) {
  const Manager manager(session, {kSize});
  Buffer *promised = manager.Retrieve(0), *present = NewBuffer(session.client, 5);
  std::vector<Buffer*> waiting{session.Run(promised)};
  for (int i = 1; i < 40; ++i) waiting.push_back(session.Run(waiting.back()));
  Buffer* other = session.Run(present);
  ExpectElements(other, 6);
  EXPECT(!IsReady(waiting.front()));
  const std::vector<float> data(kSize, 1);
  EXPECT(manager.Transfer(0, data.data(), 0, kBytes, true) == Error_Code_OK);
  ExpectElements(waiting.back(), 41);
  for (Buffer* buffer : {promised, present, other}) DestroyBuffer(buffer);
  for (Buffer* buffer : waiting) DestroyBuffer(buffer);
}

std::pair<Buffer*, FulfillAliasBufferCallback*> NewAlias(const Session& session) {
  Client_CreateAliasBuffer_Args args{};
  args.client = session.client;
  args.memory = session.memory;
  args.shape_dims = &kSize;
  args.shape_num_dims = 1;
  args.shape_element_type = Buffer_Type_F32;
  args = Call(api.Client_CreateAliasBuffer, args);
  return {args.alias_buffer, args.fulfill_alias_buffer_cb};
}

Error_Code Fulfill(const Session& session, FulfillAliasBufferCallback* alias, Buffer* source, Error_Code code = Error_Code_OK) {
  return Refusal(api.Client_FulfillAliasBuffer, Client_FulfillAliasBuffer_Args{{}, session.client, source, code, "stop", 4, alias});
}

// Threads use an alias, and drop it, while others compute what it becomes: of an alias again, and after wrong attempts.
void CheckAliases(const Session& session) {
  const auto [first, first_callback] = NewAlias(session);
  const auto [second, second_callback] = NewAlias(session);
  std::vector<std::thread> users;
  for (int number = 0; number < 3; ++number) {
    users.emplace_back([&, alias = number % 2 ? first : second] {
      Buffer *y = session.Run(alias), *z = session.Run(y);
      ExpectElements(z, 9);
      ExpectElements(alias, 7);
      for (Buffer* buffer : {y, z}) DestroyBuffer(buffer);
    });
  }
  EXPECT(Refusal(api.Buffer_UnsafePointer, Buffer_UnsafePointer_Args{{}, first, 0}) == Error_Code_FAILED_PRECONDITION || IsReady(first));
  Buffer *small = NewBuffer(session.client, 1, 3), *six = NewBuffer(session.client, 6), *gone = NewBuffer(session.client, 1);
  Call(api.Buffer_Delete, Buffer_Delete_Args{{}, gone});
  for (Buffer* wrong : {small, gone, first, static_cast<Buffer*>(nullptr)}) {
    EXPECT(Fulfill(session, first_callback, wrong) == Error_Code_INVALID_ARGUMENT);
  }
  EXPECT(Fulfill(session, second_callback, first) == Error_Code_OK);
  Buffer* source = session.Run(six);
  EXPECT(Fulfill(session, first_callback, source) == Error_Code_OK);
  Call(api.Buffer_Delete, Buffer_Delete_Args{{}, source});
  for (std::thread& user : users) user.join();
  EXPECT(Call(api.Buffer_UnsafePointer, Buffer_UnsafePointer_Args{{}, first, 0}).buffer_pointer ==
         Call(api.Buffer_UnsafePointer, Buffer_UnsafePointer_Args{{}, second, 0}).buffer_pointer);
  for (Buffer* buffer : {first, second, small, six, gone, source}) DestroyBuffer(buffer);
}

// An error instead of a buffer reaches those that use the alias, even if the alias is no more.
void CheckAliasesThatFail(const Session& session) {
  const auto [alias, callback] = NewAlias(session);
  Buffer* result = session.Run(alias);
  DestroyBuffer(alias);
  const int before = runs;
  std::string text;
  EXPECT(Fulfill(session, callback, nullptr, Error_Code_ABORTED) == Error_Code_OK);
  EXPECT(ErrorOfBuffer(result, &text) == Error_Code_ABORTED && text == "stop" && runs == before);
  DestroyBuffer(result);
}

// Copies to memory that another thread names later; the buffer is deleted, or fails, before that.
void CheckCopiesToCome(const Session& session, Error_Code code) {
  Buffer *x = NewBuffer(session.client, 1), *y = session.Run(x);
  Buffer_CopyRawToHostFuture_Args args{};
  args.buffer = y;
  args.offset = 8;
  args.transfer_size = 3 * sizeof(float);
  args = Call(api.Buffer_CopyRawToHostFuture, args);
  DestroyBuffer(y);
  std::vector<float> found(4, -1);
  std::thread host([&] {
    Buffer_CopyRawToHostFuture_Callback_Args answer{sizeof(answer), args.callback_data, code, "stop", 4, found.data()};
    args.future_ready_callback(&answer);
  });
  EXPECT(Awaited(args.event) == code);
  host.join();
  EXPECT(found == (code == Error_Code_OK ? std::vector<float>({2, 2, 2, -1}) : std::vector<float>(4, -1)));
  args.offset = kBytes - 8;
  args.buffer = x;
  EXPECT(Refusal(api.Buffer_CopyRawToHostFuture, args) == Error_Code_INVALID_ARGUMENT);
  DestroyBuffer(x);
}

// A donated buffer whose elements are there before the host allows their use.
void CheckDependencies(const Session& session, Error_Code code) {
  Buffer* x = NewBuffer(session.client, 1);
  const auto args = Call(api.Buffer_DonateWithControlDependency, Buffer_DonateWithControlDependency_Args{{}, x, nullptr, nullptr, nullptr});
  EXPECT(Call(api.Buffer_IsDeleted, Buffer_IsDeleted_Args{{}, x, false}).is_deleted);
  EXPECT(Refusal(api.Buffer_DonateWithControlDependency, Buffer_DonateWithControlDependency_Args{{}, x, nullptr, nullptr, nullptr}) ==
         Error_Code_INVALID_ARGUMENT);
  Buffer* y = session.Run(args.out_buffer);
  EXPECT(!IsReady(args.out_buffer) && !IsReady(y));
  std::thread host([&] {
    Buffer_DonateWithControlDependency_Callback_Args answer{sizeof(answer), args.callback_data, code, "stop", 4};
    args.dependency_ready_callback(&answer);
  });
  if (code == Error_Code_OK) ExpectElements(y, 2);
  EXPECT(ErrorOfBuffer(y) == code && ErrorOfBuffer(args.out_buffer) == code);
  host.join();
  for (Buffer* buffer : {x, y, args.out_buffer}) DestroyBuffer(buffer);
}

Buffer* RunNumbered(const Session& session, Buffer* x, int number) {
  ExecuteOptions options{};
  options.struct_size = sizeof(options);
  options.launch_id = number;
  Buffer *y = nullptr, **made = &y, *const* list = &x;
  LoadedExecutable_Execute_Args args{};
  args.executable = session.add_one;
  args.options = &options;
  args.argument_lists = &list;
  args.num_devices = args.num_args = 1;
  args.output_lists = &made;
  Call(api.LoadedExecutable_Execute, args);
  return y;
}

// Threads poison the runs of one number while these finish: each is poisoned by at most one thread, and then its result is an error.
void CheckPoison(const Session& session) {
  const auto [alias, callback] = NewAlias(session);
  std::vector<Buffer*> results;
  for (int i = 0; i < 6; ++i) results.push_back(RunNumbered(session, alias, 5));
  Buffer* other = RunNumbered(session, alias, 6);
  std::atomic<int> poisoned{0};
  const auto poison = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const Device_PoisonExecution_Args args{{}, session.device, 5, Error_Code_DATA_LOSS, "gone", 4, false};
      poisoned += Call(api.Device_PoisonExecution, args).poisoned;
    }
  };
  poison(1);
  EXPECT(poisoned == 1 && ErrorOfBuffer(results[0]) == Error_Code_DATA_LOSS);
  std::vector<std::thread> threads;
  for (int number = 0; number < 2; ++number) threads.emplace_back(poison, 3);
  Buffer* source = NewBuffer(session.client, 1);
  EXPECT(Fulfill(session, callback, source) == Error_Code_OK);
  for (std::thread& thread : threads) thread.join();
  int failed = 0;
  for (Buffer* result : results) failed += ErrorOfBuffer(result) == Error_Code_DATA_LOSS;
  EXPECT(failed == poisoned);
  ExpectElements(other, 2);
  poison(1);
  EXPECT(failed == poisoned);
  for (Buffer* result : results) DestroyBuffer(result);
  for (Buffer* buffer : {alias, other, source}) DestroyBuffer(buffer);
}

void CheckTrackingEvents(const Session& session) {
  const auto args = Call(api.Device_CreateAsyncTrackingEvent, Device_CreateAsyncTrackingEvent_Args{{}, session.device, "work", 4, nullptr});
  trivium::trace::Start();
  Call(api.AsyncTrackingEvent_Destroy, AsyncTrackingEvent_Destroy_Args{{}, args.event});
  trivium::trace::Stop();
  const auto events = trivium::trace::Events();
  EXPECT(events.size() == 1 && events[0].name == "work" && events[0].source == "TriviumDevice(id=0)");
  Call(api.AsyncTrackingEvent_Destroy, AsyncTrackingEvent_Destroy_Args{});
}

}  // namespace

void PromisedBuffers() {
  const Session session;
  for (int turn = 0; turn < 20; ++turn) {
    CheckPieces(session, turn);
    CheckLongCopies(session);
    CheckFailures(session);
    CheckOrder(session);
    CheckAliases(session);
    CheckAliasesThatFail(session);
    for (const Error_Code code : {Error_Code_OK, Error_Code_ABORTED}) {
      CheckCopiesToCome(session, code);
      CheckDependencies(session, code);
    }
    CheckPoison(session);
    CheckTrackingEvents(session);
  }
}
