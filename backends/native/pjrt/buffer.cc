#include "buffer.h"

#include "guard.h"
#include "runtime_lock.h"

namespace trivium::pjrt {

StoragePtr Buffer::Present(StoragePtr storage) const {
  if (storage == nullptr) throw Failure(Error_Code_INVALID_ARGUMENT, "the buffer of " + shape.text() + " has been deleted or donated");
  return storage;
}

StoragePtr Buffer::storage() const {
  const std::lock_guard<std::mutex> lock(LockOf(this));
  return Present(storage_);
}

bool Buffer::is_deleted() const {
  const std::lock_guard<std::mutex> lock(LockOf(this));
  return storage_ == nullptr;
}

StoragePtr Buffer::Donate() {
  const std::lock_guard<std::mutex> lock(LockOf(this));
  return Present(std::move(storage_));
}

void Buffer::Delete() {
  StoragePtr dropped;  // freed after the lock is released
  const std::lock_guard<std::mutex> lock(LockOf(this));
  dropped.swap(storage_);
}

void Buffer::AddExternalReference() {
  const std::lock_guard<std::mutex> lock(LockOf(this));
  if (external_references_ == 0) shared_ = Present(storage_);
  ++external_references_;
}

void Buffer::DropExternalReference() {
  StoragePtr dropped;
  const std::lock_guard<std::mutex> lock(LockOf(this));
  if (external_references_ == 0) throw Failure(Error_Code_FAILED_PRECONDITION, "the buffer has no external reference");
  if (--external_references_ == 0) dropped.swap(shared_);
}

namespace {

void Destroy(Buffer_Destroy_Args& args) { delete args.buffer; }

void ElementType(Buffer_ElementType_Args& args) { args.type = args.buffer->shape.type; }

void Dimensions(Buffer_Dimensions_Args& args) {
  args.dims = args.buffer->shape.dims.data();
  args.num_dims = args.buffer->shape.dims.size();
}

void UnpaddedDimensions(Buffer_UnpaddedDimensions_Args& args) {
  args.unpadded_dims = args.buffer->shape.dims.data();
  args.num_dims = args.buffer->shape.dims.size();
}

void DynamicDimensionIndices(Buffer_DynamicDimensionIndices_Args& args) {
  args.dynamic_dim_indices = nullptr;
  args.num_dynamic_dims = 0;
}

void GetMemoryLayout(Buffer_GetMemoryLayout_Args& args) {
  const std::span<const int64_t> order = MinorToMajor(args.buffer->shape);
  args.layout.type = Buffer_MemoryLayout_Type_Tiled;
  args.layout.tiled = Buffer_MemoryLayout_Tiled{
      {sizeof(Buffer_MemoryLayout_Tiled), nullptr}, order.data(), order.size(), nullptr, nullptr, 0};
}

void OnDeviceSizeInBytes(Buffer_OnDeviceSizeInBytes_Args& args) { args.on_device_size_in_bytes = args.buffer->storage()->bytes(); }

void GetDevice(Buffer_Device_Args& args) { args.device = args.buffer->memory->device; }

void GetMemory(Buffer_Memory_Args& args) { args.memory = args.buffer->memory; }

void Delete(Buffer_Delete_Args& args) { args.buffer->Delete(); }

void IsDeleted(Buffer_IsDeleted_Args& args) { args.is_deleted = args.buffer->is_deleted(); }

void IsOnCpu(Buffer_IsOnCpu_Args& args) { args.is_on_cpu = args.buffer->memory->is_on_host(); }

void ReadyEvent(Buffer_ReadyEvent_Args& args) { args.event = NewEvent(args.buffer->ready); }

// Does not wait for the elements: hosts call this with locks held that a run in flight may need. They wait for the ready event before they
// read.
void* Address(const Buffer& buffer) {
  const bool is_done = IsDone(buffer.ready);
  if (is_done) WaitFor(buffer.ready);
  const StoragePtr storage = buffer.storage();
  if (!is_done && storage->is_promise()) {
    throw Failure(Error_Code_FAILED_PRECONDITION, "the alias of " + buffer.shape.text() + " has no address before it is fulfilled");
  }
  return storage->address();
}

void UnsafePointer(Buffer_UnsafePointer_Args& args) { args.buffer_pointer = reinterpret_cast<uintptr_t>(Address(*args.buffer)); }

void OpaquePointer(Buffer_OpaqueDeviceMemoryDataPointer_Args& args) { args.device_memory_ptr = Address(*args.buffer); }

void IncreaseExternalReferenceCount(Buffer_IncreaseExternalReferenceCount_Args& args) { args.buffer->AddExternalReference(); }

void DecreaseExternalReferenceCount(Buffer_DecreaseExternalReferenceCount_Args& args) { args.buffer->DropExternalReference(); }

// Runs `copy` when the elements are ready, and returns an event for its completion.
Event* WhenReady(const CompletionPtr& ready, std::function<void()> copy) {
  if (IsDone(ready)) {
    WaitFor(ready);
    copy();
    return NewEvent();
  }
  auto done = std::make_shared<Completion>();
  FinishAfter(ready, done, std::move(copy));
  return NewEvent(done);
}

// What a copy to the host must wait for. An accelerator copies in the order in which it is told.
const CompletionPtr& ReadyToCopy(const Buffer& buffer) {
  return buffer.memory->device->accelerator == nullptr ? buffer.ready : buffer.ready_for_device;
}

void ToHostBuffer(Buffer_ToHostBuffer_Args& args) {
  const Buffer& buffer = *args.src;
  const size_t bytes = buffer.shape.bytes();
  if (args.dst == nullptr) {
    args.dst_size = bytes;
    return;
  }
  if (args.dst_size < bytes) {
    throw Failure(Error_Code_INVALID_ARGUMENT, "the host's buffer has " + std::to_string(args.dst_size) + " bytes, " +
                                                   buffer.shape.text() + " needs " + std::to_string(bytes));
  }
  std::vector<int64_t> strides = args.host_layout == nullptr ? MemoryStrides(buffer.shape) : StridesOf(args.host_layout, buffer.shape);
  auto copy = [shape = buffer.shape, storage = buffer.storage(), strides = std::move(strides), dst = args.dst] {
    storage->ToHost(shape, dst, strides);
  };
  args.event = WhenReady(ReadyToCopy(buffer), std::move(copy));
}

void CopyRawToHost(Buffer_CopyRawToHost_Args& args) {
  const Buffer& buffer = *args.buffer;
  CheckRange(buffer.shape, args.offset, args.transfer_size);
  Require(args.dst != nullptr || args.transfer_size == 0, "the host's memory is null");
  args.event = WhenReady(ReadyToCopy(buffer), [storage = buffer.storage(), dst = args.dst, offset = args.offset, size = args.transfer_size] {
    storage->BytesToHost(dst, offset, size);
  });
}

// Copies to another memory: a view if it is the same memory of the same device, with the same lifetime; otherwise a copy, so that
// each device's statistics count only its own memory.
Buffer* CopyTo(const Buffer& buffer, Memory& memory) {
  if (buffer.memory->device == memory.device && buffer.memory->is_on_host() == memory.is_on_host()) {
    return new Buffer(&memory, buffer.shape, buffer.storage(), {buffer.ready_for_device, buffer.ready});
  }
  StoragePtr source = buffer.storage();
  StoragePtr target = Storage::Allocate(memory, buffer.shape.bytes());
  std::vector<CompletionPtr> inputs;
  if (const CompletionPtr& ready = ReadyToCopy(buffer); IsPending(ready)) inputs.push_back(ready);
  Readiness done = memory.device->Start(IsQuickCopy(target->bytes()), std::move(inputs), [source, target] { target->CopyFrom(*source); });
  return new Buffer(&memory, buffer.shape, std::move(target), std::move(done));
}

void CopyToDevice(Buffer_CopyToDevice_Args& args) {
  Require(args.dst_device != nullptr, "the device is null");
  args.dst_buffer = CopyTo(*args.buffer, args.dst_device->default_memory());
}

void CopyToMemory(Buffer_CopyToMemory_Args& args) {
  Require(args.dst_memory != nullptr, "the memory is null");
  args.dst_buffer = CopyTo(*args.buffer, *args.dst_memory);
}

}  // namespace

void BindBuffers(Api& api) {
  api.Buffer_Destroy = Slot<Destroy>;
  api.Buffer_ElementType = Method<ElementType>;
  api.Buffer_Dimensions = Method<Dimensions>;
  api.Buffer_UnpaddedDimensions = Method<UnpaddedDimensions>;
  api.Buffer_DynamicDimensionIndices = Method<DynamicDimensionIndices>;
  api.Buffer_GetMemoryLayout = Method<GetMemoryLayout>;
  api.Buffer_OnDeviceSizeInBytes = Method<OnDeviceSizeInBytes>;
  api.Buffer_Device = Method<GetDevice>;
  api.Buffer_Memory = Method<GetMemory>;
  api.Buffer_Delete = Method<Delete>;
  api.Buffer_IsDeleted = Method<IsDeleted>;
  api.Buffer_IsOnCpu = Method<IsOnCpu>;
  api.Buffer_ReadyEvent = Method<ReadyEvent>;
  api.Buffer_UnsafePointer = Method<UnsafePointer>;
  api.Buffer_OpaqueDeviceMemoryDataPointer = Method<OpaquePointer>;
  api.Buffer_IncreaseExternalReferenceCount = Method<IncreaseExternalReferenceCount>;
  api.Buffer_DecreaseExternalReferenceCount = Method<DecreaseExternalReferenceCount>;
  api.Buffer_ToHostBuffer = Method<ToHostBuffer>;
  api.Buffer_CopyRawToHost = Method<CopyRawToHost>;
  api.Buffer_CopyToDevice = Method<CopyToDevice>;
  api.Buffer_CopyToMemory = Method<CopyToMemory>;
}

}  // namespace trivium::pjrt
