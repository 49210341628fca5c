// The extension for foreign functions: hosts register handlers and types, and pass data to handlers by the context of a run. Python registers
// those of hosts that have another interface for it, such as JAX.

#include <algorithm>
#include <mutex>
#include <string>

#include "../interpreter.h"
#include "extensions.h"
#include "foreign_registry.h"
#include "guard.h"
#include "runtime_lock.h"

#define TRIVIUM_EXPORT extern "C" __attribute__((visibility("default")))

namespace trivium::pjrt {

// A run takes the data that its context has when it is started, whether or not it has to wait.
struct ExecuteContext {
  ffi::UserDataPtr data;  // guarded by LockOf(this)
};

namespace {

void Create(ExecuteContext_Create_Args& args) { args.context = new ExecuteContext; }

void Destroy(ExecuteContext_Destroy_Args& args) { delete args.context; }

void AddUserData(FFI_UserData_Add_Args& args) {
  Require(args.user_data.data != nullptr, "the data for foreign functions is null");
  const std::lock_guard<std::mutex> lock(LockOf(args.context));
  auto data = args.context->data == nullptr ? std::make_shared<ffi::UserData>() : std::make_shared<ffi::UserData>(*args.context->data);
  if (!data->emplace(args.user_data.type_id, args.user_data.data).second) {
    throw Failure(Error_Code_ALREADY_EXISTS, "the context has data of type " + std::to_string(args.user_data.type_id));
  }
  args.context->data = std::move(data);
}

void RegisterType(FFI_Type_Register_Args& args) {
  const ffi::Deleter deleter = args.type_info == nullptr ? nullptr : args.type_info->deleter;
  ffi::RegisterType(View(args.type_name, args.type_name_size), args.type_id, deleter);
}

// Whether both are the same name of a platform, in which case does not matter.
bool IsPlatform(std::string_view left, std::string_view right) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 'a' - 'A') : c; };
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), [&](char a, char b) { return lower(a) == lower(b); });
}

void RegisterHandler(FFI_Register_Handler_Args& args) {
  const std::string_view platform = View(args.platform_name, args.platform_name_size);
  if (!IsPlatform(platform, "trivium")) {
    throw Failure(Error_Code_INVALID_ARGUMENT, "a foreign function is for platform '" + std::string(platform) + "', expected 'trivium'");
  }
  ffi::Handler_Bundle handlers{};
  handlers.execute = reinterpret_cast<ffi::Handler*>(args.handler);
  ffi::RegisterHandler(View(args.target_name, args.target_name_size), handlers);
}

}  // namespace

void BindExecuteContexts(Api& api) {
  api.ExecuteContext_Create = Slot<Create>;
  api.ExecuteContext_Destroy = Slot<Destroy>;
}

Extension_Base* ForeignFunctionsExtension(Extension_Base* next) {
  static FFI_Extension extension{
      {sizeof(FFI_Extension), Extension_Type_FFI, next}, Slot<RegisterType>, Method<AddUserData>, Slot<RegisterHandler>};
  return &extension.base;
}

}  // namespace trivium::pjrt

namespace trivium::ffi {

UserDataPtr UserDataOf(const pjrt::ExecuteOptions* options) {
  if (options == nullptr || options->context == nullptr) return nullptr;
  const std::lock_guard<std::mutex> lock(pjrt::LockOf(options->context));
  return options->context->data;
}

namespace {

// Keeps the text of a failure for Python. Returns whether there was none.
template <class Action>
int32_t Succeeds(Action&& action) noexcept {
  const auto error = pjrt::ErrorOf(action);
  if (error) KeepException(error->message.c_str());
  return error ? 0 : 1;
}

}  // namespace
}  // namespace trivium::ffi

// Registers a foreign function with the handlers of its stages. Returns whether that is possible; trivium_exception() says why not.
TRIVIUM_EXPORT int32_t trivium_register_foreign_function(const char* name, const trivium::ffi::Handler_Bundle* handlers) {
  return trivium::ffi::Succeeds([&] { trivium::ffi::RegisterHandler(name, *handlers); });
}

// Returns whether hosts have registered a foreign function.
TRIVIUM_EXPORT int32_t trivium_find_foreign_function(const char* name, trivium::ffi::Handler_Bundle* handlers) {
  const auto found = trivium::ffi::FindHandler(name);
  if (found) *handlers = *found;
  return found ? 1 : 0;
}

// The same for types, whose number is zero if it is not known yet.
TRIVIUM_EXPORT int32_t trivium_register_foreign_type(const char* name, trivium::ffi::TypeId* type, const trivium::ffi::TypeInfo* info) {
  return trivium::ffi::Succeeds(
      [&] { trivium::ffi::RegisterType(name, type->type_id, info == nullptr ? nullptr : info->deleter); });
}
