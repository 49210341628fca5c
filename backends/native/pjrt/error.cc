#include "error.h"

namespace trivium::pjrt {
namespace {

void Destroy(Error_Destroy_Args* args) { delete args->error; }

void Message(Error_Message_Args* args) {
  args->message = args->error->message.data();
  args->message_size = args->error->message.size();
}

Error* GetCode(Error_GetCode_Args* args) {
  args->code = args->error->code;
  return nullptr;
}

}  // namespace

void BindErrors(Api& api) {
  api.Error_Destroy = Destroy;
  api.Error_Message = Message;
  api.Error_GetCode = GetCode;
}

}  // namespace trivium::pjrt
