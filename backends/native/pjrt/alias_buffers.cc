// Alias buffers: a host makes them before the buffers exist whose elements they will have, so that it can already pass them on.

#include "buffer.h"
#include "guard.h"

namespace trivium::pjrt {

// How the host keeps its promise, once.
struct FulfillAliasBufferCallback {
  const Memory& memory;
  const Shape shape;
  const StoragePtr storage;
  const CompletionPtr ready;
};

namespace {

void CreateAliasBuffer(Client_CreateAliasBuffer_Args& args) {
  Require(args.memory != nullptr, "the memory is null");
  RequireHost(*args.memory, "an alias");
  const Shape shape = WithLayout(ShapeOf(args.shape_element_type, args.shape_dims, args.shape_num_dims), args.shape_layout);
  const StoragePtr storage = Storage::Promise(shape.bytes());
  const CompletionPtr ready = NewPromise();
  auto buffer = std::make_unique<Buffer>(args.memory, shape, storage, ready);
  args.fulfill_alias_buffer_cb = new FulfillAliasBufferCallback{*args.memory, shape, storage, ready};
  args.alias_buffer = buffer.release();
}

// Throws unless an alias may become this buffer.
void CheckSource(const FulfillAliasBufferCallback& alias, const Buffer& source) {
  if (!source.shape.Fits(alias.shape)) {
    throw Failure(Error_Code_INVALID_ARGUMENT, "an alias of " + alias.shape.text() + " cannot become a buffer of " + source.shape.text());
  }
  if (source.memory->device != alias.memory.device) {
    throw Failure(Error_Code_INVALID_ARGUMENT, "an alias in " + alias.memory.text + " cannot become a buffer in " + source.memory->text);
  }
  Require(source.ready != alias.ready, "an alias cannot become itself");
}

// Frees the callback, unless the call fails: then the alias still waits for another one.
void FulfillAliasBuffer(Client_FulfillAliasBuffer_Args& args) {
  Require(args.fulfill_alias_buffer_cb != nullptr, "the callback is null");
  FulfillAliasBufferCallback& alias = *args.fulfill_alias_buffer_cb;
  if (args.status_code != Error_Code_OK) {
    alias.ready->Finish(Error{args.status_code, std::string(View(args.error_message, args.error_message_size))});
  } else {
    Require(args.buffer != nullptr, "the buffer is null");
    CheckSource(alias, *args.buffer);
    auto become = [storage = alias.storage, source = args.buffer->storage()] { storage->Become(source); };
    FinishAfter(args.buffer->ready, alias.ready, std::move(become));
  }
  delete &alias;
}

}  // namespace

void BindAliasBuffers(Api& api) {
  api.Client_CreateAliasBuffer = Method<CreateAliasBuffer>;
  api.Client_FulfillAliasBuffer = Method<FulfillAliasBuffer>;
}

}  // namespace trivium::pjrt
