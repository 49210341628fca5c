// Buffers: arrays in a memory.

#pragma once

#include "client.h"
#include "event.h"
#include "shape.h"
#include "storage.h"

namespace trivium::pjrt {

// Deleting a buffer takes its storage away from it; runs and views that use the storage keep it. Readers of the elements must wait for
// `ready` first.
struct Buffer {
  Buffer(Memory* memory, Shape shape, StoragePtr storage, Readiness readiness)
      : memory(memory),
        shape(std::move(shape)),
        ready(std::move(readiness.for_all)),
        ready_for_device(std::move(readiness.for_device)),
        storage_(std::move(storage)) {}

  // Throws if the buffer has been deleted or donated.
  StoragePtr storage() const;
  bool is_deleted() const;
  void Delete();
  // `storage` and `Delete` in one step: if a buffer is donated to two runs, one of them gets it.
  StoragePtr Donate();

  void AddExternalReference();
  void DropExternalReference();

  Memory* const memory;
  const Shape shape;
  const CompletionPtr ready;
  const CompletionPtr ready_for_device;  // for work of the same device

  // What work of a device must wait for, or fails with; null if there is nothing.
  CompletionPtr PendingFor(const Device& device) const {
    const CompletionPtr& completion = memory->device == &device ? ready_for_device : ready;
    return IsPending(completion) ? completion : nullptr;
  }

 private:
  StoragePtr Present(StoragePtr storage) const;

  // The following are guarded by LockOf(this).
  StoragePtr storage_;
  // The references of others that read the memory outside PJRT. They keep it even if the buffer is deleted.
  StoragePtr shared_;
  int64_t external_references_ = 0;
};

// An event of `completion` for a caller, which owns it.
inline Event* NewEvent(CompletionPtr completion = nullptr) { return new Event{std::move(completion)}; }

void BindBuffers(Api& api);
void BindBufferCreation(Api& api);
void BindAsyncTransfers(Api& api);
void BindAliasBuffers(Api& api);
void BindHostFutures(Api& api);

}  // namespace trivium::pjrt
