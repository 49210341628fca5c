// Buffers that callers create: from the host's arrays, from existing memory, and without contents yet.

#include "buffer.h"
#include "guard.h"

namespace trivium::pjrt {
namespace {

// The target of a new buffer: a memory, or the default memory of a device.
Memory& Target(const Client& client, Device* device, Memory* memory) {
  if (memory != nullptr) return *memory;
  return (device != nullptr ? *device : client.device(0)).default_memory();
}

bool IsZeroCopy(HostBufferSemantics semantics) {
  return semantics == HostBufferSemantics_kImmutableZeroCopy || semantics == HostBufferSemantics_kMutableZeroCopy;
}

// Compiled programs accept every array that starts at a multiple of its element's size.
bool IsUsable(const void* data, Buffer_Type type) { return reinterpret_cast<uintptr_t>(data) % std::min<size_t>(BytesOf(type), 8) == 0; }

// The alignment from which on XLA's CPU client borrows the host's memory. Users who write to an array that they have passed in see the same
// effect here as there.
bool IsBorrowed(const void* data) { return reinterpret_cast<uintptr_t>(data) % 64 == 0; }

void BufferFromHostBuffer(Client_BufferFromHostBuffer_Args& args) {
  const Shape shape = WithLayout(ShapeOf(args.type, args.dims, args.num_dims), args.device_layout);
  const size_t bytes = shape.bytes();
  Require(args.data != nullptr || bytes == 0, "the host's buffer is null");
  const std::vector<int64_t> own = MemoryStrides(shape);
  std::vector<int64_t> strides = RowMajorStrides(shape);
  if (args.byte_strides != nullptr && (args.num_byte_strides != 0 || args.num_dims == 0)) {
    Require(args.num_byte_strides == args.num_dims, "the host's buffer has different numbers of strides and dimensions");
    strides.assign(args.byte_strides, args.byte_strides + args.num_byte_strides);
  }
  Memory& memory = Target(*args.client, args.device, args.memory);
  const bool borrowed =
      memory.is_on_host() && IsZeroCopy(args.host_buffer_semantics) && bytes != 0 && SameStrides(shape, strides, own) && IsBorrowed(args.data);
  if (borrowed) {
    auto done = std::make_shared<Completion>();
    StoragePtr storage = Storage::Borrow(memory, const_cast<void*>(args.data), bytes, [done] { done->Finish(); });
    args.done_with_host_buffer = NewEvent(done);
    args.buffer = new Buffer(&memory, shape, std::move(storage), Readiness());
    return;
  }
  StoragePtr storage = Storage::Allocate(memory, bytes);
  const bool at_once = args.host_buffer_semantics == HostBufferSemantics_kImmutableOnlyDuringCall || IsQuickCopy(bytes);
  Readiness done =
      memory.device->Start(at_once, {}, [shape, strides, storage, data = args.data] { storage->FromHost(shape, data, strides); });
  args.done_with_host_buffer = NewEvent(done.for_device);
  args.buffer = new Buffer(&memory, shape, std::move(storage), std::move(done));
}

void CreateViewOfDeviceBuffer(Client_CreateViewOfDeviceBuffer_Args& args) {
  const Shape shape = WithLayout(ShapeOf(args.element_type, args.dims, args.num_dims), args.layout);
  Require(args.device_buffer_ptr != nullptr || shape.bytes() == 0, "the memory of the view is null");
  Require(IsUsable(args.device_buffer_ptr, args.element_type), "the memory of the view does not begin at a multiple of its element's size");
  std::function<void()> release;
  if (args.on_delete_callback != nullptr) {
    release = [callback = args.on_delete_callback, data = args.device_buffer_ptr, argument = args.on_delete_callback_arg] {
      callback(data, argument);
    };
  }
  Memory& memory = Target(*args.client, args.device, args.memory);
  StoragePtr storage = Storage::Borrow(memory, args.device_buffer_ptr, shape.bytes(), std::move(release));
  args.buffer = new Buffer(&memory, shape, std::move(storage), Readiness());
}

void CreateUninitializedBuffer(Client_CreateUninitializedBuffer_Args& args) {
  const Shape shape = WithLayout(ShapeOf(args.shape_element_type, args.shape_dims, args.shape_num_dims), args.shape_layout);
  Memory& memory = Target(*args.client, args.device, args.memory);
  args.buffer = new Buffer(&memory, shape, Storage::Allocate(memory, shape.bytes()), Readiness());
}

// A buffer that has an error instead of elements, which every user of it receives.
void CreateErrorBuffer(Client_CreateErrorBuffer_Args& args) {
  const Shape shape = ShapeOf(args.shape_element_type, args.shape_dims, args.shape_num_dims);
  Memory& memory = Target(*args.client, nullptr, args.memory);
  Error error{args.error_code, std::string(View(args.error_message, args.error_message_size))};
  args.buffer = new Buffer(&memory, shape, Storage::Borrow(memory, nullptr, 0, nullptr), Failed(std::move(error)));
}

}  // namespace

void BindBufferCreation(Api& api) {
  api.Client_BufferFromHostBuffer = Method<BufferFromHostBuffer>;
  api.Client_CreateViewOfDeviceBuffer = Method<CreateViewOfDeviceBuffer>;
  api.Client_CreateUninitializedBuffer = Method<CreateUninitializedBuffer>;
  api.Client_CreateErrorBuffer = Method<CreateErrorBuffer>;
}

}  // namespace trivium::pjrt
