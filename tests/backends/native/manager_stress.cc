// Stress tests of transfer managers, through PJRT's table: threads fill buffers in pieces, while runs that others have added already wait for
// them.

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "promise_host.h"

namespace {

using namespace trivium::pjrt;
using namespace trivium::pjrt::host;

constexpr int64_t kLarge = int64_t{5} << 20;  // elements; each half of them is a long copy

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

}  // namespace

void TransferManagers() {
  const Session session;
  for (int turn = 0; turn < 20; ++turn) {
    CheckPieces(session, turn);
    CheckLongCopies(session);
    CheckFailures(session);
    CheckOrder(session);
  }
}
