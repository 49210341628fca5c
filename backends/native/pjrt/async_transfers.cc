// Transfer managers: buffers that a host fills in pieces, in any order, and that it may use before the elements have arrived.

#include <map>
#include <mutex>

#include "buffer.h"
#include "guard.h"
#include "runtime_lock.h"

namespace trivium::pjrt {
namespace {

// The bytes of an array that transfers write.
class Coverage {
 public:
  void Add(size_t begin, size_t end) {
    if (begin == end) return;
    auto next = parts_.upper_bound(begin);
    if (next != parts_.begin() && std::prev(next)->second >= begin) --next;
    while (next != parts_.end() && next->first <= end) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = parts_.erase(next);
    }
    parts_[begin] = end;
  }

  size_t bytes() const {
    size_t total = 0;
    for (const auto& [begin, end] : parts_) total += end - begin;
    return total;
  }

 private:
  std::map<size_t, size_t> parts_;  // their ends, by where they begin; no two touch each other
};

// A buffer of a manager. Transfers that have begun hold it, so that they end after their manager, too.
class IncomingBuffer {
 public:
  IncomingBuffer(Memory& memory, Shape shape)
      : shape(std::move(shape)),
        storage_(Storage::Allocate(memory, this->shape.bytes())),
        buffer_(std::make_unique<Buffer>(&memory, this->shape, storage_, ready_)) {}

  // Hands out the buffer.
  Buffer* Retrieve() {
    const std::lock_guard<std::mutex> lock(LockOf(this));
    if (buffer_ == nullptr) throw Failure(Error_Code_FAILED_PRECONDITION, "the buffer of " + shape.text() + " has already been retrieved");
    return buffer_.release();
  }

  // Announces a transfer, and returns where it writes. The last one must leave no byte unwritten.
  StoragePtr Begin(size_t offset, size_t bytes, bool is_last) {
    const std::lock_guard<std::mutex> lock(LockOf(this));
    if (is_ended_) throw Failure(Error_Code_FAILED_PRECONDITION, "the buffer of " + shape.text() + " takes no more transfers");
    if (is_last) {
      Coverage whole = coverage_;
      whole.Add(offset, offset + bytes);
      if (const size_t missing = shape.bytes() - whole.bytes()) {
        throw Failure(Error_Code_FAILED_PRECONDITION, "the last transfer to the buffer of " + shape.text() + " leaves " +
                                                          std::to_string(missing) + " of its " + std::to_string(shape.bytes()) + " bytes unwritten");
      }
    }
    coverage_.Add(offset, offset + bytes);
    is_ended_ = is_last;
    ++transfers_;
    return storage_;
  }

  // Ends a transfer.
  void End(const Error* error) {
    {
      const std::lock_guard<std::mutex> lock(LockOf(this));
      --transfers_;
      if (error != nullptr) Keep(*error);
    }
    FinishIfEnded();
  }

  // Makes the error the buffer's. Returns false if its last transfer, or another error, came before.
  bool Fail(Error error) {
    {
      const std::lock_guard<std::mutex> lock(LockOf(this));
      if (is_ended_) return false;
      Keep(std::move(error));
    }
    FinishIfEnded();
    return true;
  }

  const Shape shape;

 private:
  void Keep(Error error) {
    is_ended_ = true;
    if (!error_) error_ = std::move(error);
  }

  void FinishIfEnded() {
    std::optional<Error> error;
    StoragePtr dropped;  // released after the lock
    {
      const std::lock_guard<std::mutex> lock(LockOf(this));
      if (!is_ended_ || transfers_ != 0) return;
      error = error_;
      dropped.swap(storage_);
    }
    ready_->Finish(std::move(error));
  }

  const CompletionPtr ready_ = NewPromise();
  // The following are guarded by LockOf(this).
  StoragePtr storage_;
  std::unique_ptr<Buffer> buffer_;  // null once it was retrieved
  Coverage coverage_;
  bool is_ended_ = false;  // its last transfer has begun, or it has failed
  size_t transfers_ = 0;   // that have begun and not ended
  std::optional<Error> error_;
};

}  // namespace

struct AsyncHostToDeviceTransferManager {
  ~AsyncHostToDeviceTransferManager() {
    for (const auto& buffer : buffers) {
      buffer->Fail({Error_Code_CANCELLED, "the transfer manager" + Described() + " was destroyed before the last transfer to " + buffer->shape.text()});
    }
  }

  IncomingBuffer& at(int index) const { return *shared(index); }

  const std::shared_ptr<IncomingBuffer>& shared(int index) const {
    if (index < 0 || static_cast<size_t>(index) >= buffers.size()) {
      throw Failure(Error_Code_INVALID_ARGUMENT,
                    "there is no buffer " + std::to_string(index) + ", the transfer manager has " + std::to_string(buffers.size()));
    }
    return buffers[index];
  }

  // The metadata, for messages.
  std::string Described() const {
    std::string text;
    const std::lock_guard<std::mutex> lock(LockOf(this));
    for (const auto& [name, value] : metadata) text += (text.empty() ? " (" : ", ") + name + "=" + value;
    return text.empty() ? text : text + ")";
  }

  Device& device;
  std::vector<std::shared_ptr<IncomingBuffer>> buffers;
  std::map<std::string, std::string> metadata = {};  // guarded by LockOf(this)
};

namespace {

void CreateBuffers(Client_CreateBuffersForAsyncHostToDevice_Args& args) {
  Require(args.memory != nullptr, "the memory is null");
  RequireHost(*args.memory, "a transfer in parts");
  Require(args.shape_specs != nullptr || args.num_shape_specs == 0, "the shapes are null");
  const bool has_layouts = args.device_layouts != nullptr && args.num_device_layouts != 0;
  Require(!has_layouts || args.num_device_layouts == args.num_shape_specs, "the numbers of layouts and shapes are different");
  std::vector<std::shared_ptr<IncomingBuffer>> buffers;
  for (size_t i = 0; i < args.num_shape_specs; ++i) {
    const ShapeSpec& spec = args.shape_specs[i];
    Shape shape = WithLayout(ShapeOf(spec.element_type, spec.dims, spec.num_dims), has_layouts ? args.device_layouts[i] : nullptr);
    buffers.push_back(std::make_shared<IncomingBuffer>(*args.memory, std::move(shape)));
  }
  args.transfer_manager = new AsyncHostToDeviceTransferManager{*args.memory->device, std::move(buffers)};
}

void Destroy(AsyncHostToDeviceTransferManager_Destroy_Args& args) { delete args.transfer_manager; }

// Runs `copy` on the buffer's memory, and returns an event for its end, which comes before the buffer is ready. A long copy is done by the
// device's thread for transfers: its other thread may be in a run that waits for this buffer.
template <class Copy>
Event* Transfer(const AsyncHostToDeviceTransferManager& manager, int index, size_t offset, size_t bytes, bool is_last, Copy copy) {
  const std::shared_ptr<IncomingBuffer> buffer = manager.shared(index);
  StoragePtr storage = buffer->Begin(offset, bytes, is_last);
  CompletionPtr done;
  const std::optional<Error> error = ErrorOf([&] {
    done = manager.device.transfers.Do(IsQuickCopy(bytes), {}, [storage = std::move(storage), copy = std::move(copy)] { copy(*storage); });
  });
  if (done != nullptr) {
    done->OnDone([buffer](const Error* failure) { buffer->End(failure); });
  } else {
    buffer->End(error ? &*error : nullptr);
  }
  if (error) throw Failure(error->code, error->message);
  return NewEvent(std::move(done));
}

void TransferData(AsyncHostToDeviceTransferManager_TransferData_Args& args) {
  CheckRange(args.transfer_manager->at(args.buffer_index).shape, args.offset, args.transfer_size);
  Require(args.data != nullptr || args.transfer_size == 0, "the host's memory is null");
  const size_t offset = static_cast<size_t>(args.offset), size = static_cast<size_t>(args.transfer_size);
  args.done_with_h2d_transfer = Transfer(*args.transfer_manager, args.buffer_index, offset, size, args.is_last_transfer,
                                         [offset, size, data = args.data](Storage& storage) { storage.BytesFromHost(data, offset, size); });
}

// A whole array, in the layout that the host has.
void TransferLiteral(AsyncHostToDeviceTransferManager_TransferLiteral_Args& args) {
  const Shape& shape = args.transfer_manager->at(args.buffer_index).shape;
  const Shape given = ShapeOf(args.shape_element_type, args.shape_dims, args.shape_num_dims);
  if (given.type != shape.type || given.dims != shape.dims) {
    throw Failure(Error_Code_INVALID_ARGUMENT, "the literal is " + given.text() + ", expected " + shape.text());
  }
  const size_t bytes = shape.bytes();
  Require(args.data != nullptr || bytes == 0, "the host's memory is null");
  auto copy = [shape, strides = StridesOf(args.shape_layout, given), data = args.data](Storage& storage) {
    storage.FromHost(shape, data, strides);
  };
  args.done_with_h2d_transfer = Transfer(*args.transfer_manager, args.buffer_index, 0, bytes, true, std::move(copy));
}

void RetrieveBuffer(AsyncHostToDeviceTransferManager_RetrieveBuffer_Args& args) {
  args.buffer_out = args.transfer_manager->at(args.buffer_index).Retrieve();
}

void GetDevice(AsyncHostToDeviceTransferManager_Device_Args& args) { args.device_out = &args.transfer_manager->device; }

void BufferCount(AsyncHostToDeviceTransferManager_BufferCount_Args& args) { args.buffer_count = args.transfer_manager->buffers.size(); }

void BufferSize(AsyncHostToDeviceTransferManager_BufferSize_Args& args) {
  args.buffer_size = args.transfer_manager->at(args.buffer_index).shape.bytes();
}

void SetBufferError(AsyncHostToDeviceTransferManager_SetBufferError_Args& args) {
  Require(args.error_code != Error_Code_OK, "the error has the code OK");
  IncomingBuffer& buffer = args.transfer_manager->at(args.buffer_index);
  const bool is_first = buffer.Fail({args.error_code, std::string(View(args.error_message, args.error_message_size))});
  if (!is_first) throw Failure(Error_Code_FAILED_PRECONDITION, "the buffer of " + buffer.shape.text() + " takes no more transfers");
}

// What identifies the transfers to people: it is part of the messages of errors.
void AddMetadata(AsyncHostToDeviceTransferManager_AddMetadata_Args& args) {
  Require(args.transfer_metadata != nullptr || args.num_metadata == 0, "the metadata are null");
  std::map<std::string, std::string> added;
  for (size_t i = 0; i < args.num_metadata; ++i) {
    const NamedValue& value = args.transfer_metadata[i];
    Require(value.type == NamedValue_kString, "a value of the metadata is not a string");
    added[std::string(View(value.name, value.name_size))] = View(value.string_value, value.value_size);
  }
  AsyncHostToDeviceTransferManager& manager = *args.transfer_manager;
  const std::lock_guard<std::mutex> lock(LockOf(&manager));
  for (const auto& [name, value] : added) manager.metadata[name] = value;
}

}  // namespace

void BindAsyncTransfers(Api& api) {
  api.Client_CreateBuffersForAsyncHostToDevice = Method<CreateBuffers>;
  api.AsyncHostToDeviceTransferManager_Destroy = Slot<Destroy>;
  api.AsyncHostToDeviceTransferManager_TransferData = Method<TransferData>;
  api.AsyncHostToDeviceTransferManager_TransferLiteral = Method<TransferLiteral>;
  api.AsyncHostToDeviceTransferManager_RetrieveBuffer = Method<RetrieveBuffer>;
  api.AsyncHostToDeviceTransferManager_Device = Method<GetDevice>;
  api.AsyncHostToDeviceTransferManager_BufferCount = Method<BufferCount>;
  api.AsyncHostToDeviceTransferManager_BufferSize = Method<BufferSize>;
  api.AsyncHostToDeviceTransferManager_SetBufferError = Method<SetBufferError>;
  api.AsyncHostToDeviceTransferManager_AddMetadata = Method<AddMetadata>;
}

}  // namespace trivium::pjrt
