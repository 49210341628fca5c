// Functions that wait for their host: it receives a callback and its data, and calls it once, when what it promised is there, or with an
// error.

#include "buffer.h"
#include "guard.h"

namespace trivium::pjrt {
namespace {

// The error that a host passes to a callback.
template <class Args>
std::optional<Error> ErrorOfHost(const Args& args) {
  if (args.error_code == Error_Code_OK) return std::nullopt;
  return Error{args.error_code, std::string(View(args.error_message, args.error_message_size))};
}

// What depends on the buffer fails with it, even if the host never calls.
CompletionPtr PromiseAfter(const CompletionPtr& ready) {
  CompletionPtr done = NewPromise();
  if (ready != nullptr) {
    ready->OnDone([done](const Error* error) {
      if (error != nullptr) done->Finish(*error);
    });
  }
  return done;
}

struct HostCopy {
  CompletionPtr ready, done;
  StoragePtr storage;
  size_t offset, size;
};

void CopyToHost(Buffer_CopyRawToHostFuture_Callback_Args* args) {
  if (args == nullptr || args->callback_data == nullptr) return;
  const std::unique_ptr<HostCopy> copy(static_cast<HostCopy*>(args->callback_data));
  std::optional<Error> error = ErrorOfHost(*args);
  if (!error && args->dst == nullptr && copy->size != 0) error = Error{Error_Code_INVALID_ARGUMENT, "the host's memory is null"};
  if (error) {
    copy->done->Finish(std::move(error));
    return;
  }
  FinishAfter(copy->ready, copy->done, [storage = copy->storage, offset = copy->offset, size = copy->size, dst = args->dst] {
    storage->BytesToHost(dst, offset, size);
  });
}

// The copy has the elements that the buffer has now, even if it is deleted before the host knows where to.
void CopyRawToHostFuture(Buffer_CopyRawToHostFuture_Args& args) {
  const Buffer& buffer = *args.buffer;
  CheckRange(buffer.shape, args.offset, args.transfer_size);
  RequireHost(*buffer.memory, "a copy to where the host will say");
  const CompletionPtr done = PromiseAfter(buffer.ready);
  auto copy = std::make_unique<HostCopy>(buffer.ready, done, buffer.storage(), static_cast<size_t>(args.offset),
                                         static_cast<size_t>(args.transfer_size));
  args.event = NewEvent(done);
  args.future_ready_callback = CopyToHost;
  args.callback_data = copy.release();
}

struct Dependency {
  CompletionPtr ready, done;
};

void KeepDependency(Buffer_DonateWithControlDependency_Callback_Args* args) {
  if (args == nullptr || args->callback_data == nullptr) return;
  const std::unique_ptr<Dependency> dependency(static_cast<Dependency*>(args->callback_data));
  if (std::optional<Error> error = ErrorOfHost(*args)) {
    dependency->done->Finish(std::move(error));
  } else {
    FinishAfter(dependency->ready, dependency->done, [] {});
  }
}

// Makes a buffer of the same elements that is ready when the host says so, too.
void DonateWithControlDependency(Buffer_DonateWithControlDependency_Args& args) {
  Buffer& buffer = *args.buffer;
  RequireHost(*buffer.memory, "a buffer that the host makes ready");
  const CompletionPtr done = PromiseAfter(buffer.ready);
  auto dependency = std::make_unique<Dependency>(buffer.ready, done);
  args.out_buffer = new Buffer(buffer.memory, buffer.shape, buffer.Donate(), done);
  args.dependency_ready_callback = KeepDependency;
  args.callback_data = dependency.release();
}

}  // namespace

void BindHostFutures(Api& api) {
  api.Buffer_CopyRawToHostFuture = Method<CopyRawToHostFuture>;
  api.Buffer_DonateWithControlDependency = Method<DonateWithControlDependency>;
}

}  // namespace trivium::pjrt
