// The functions that handlers of foreign functions may call while they run.

#pragma once

#include <array>
#include <string>

#include "abi/ffi.h"
#include "event.h"
#include "foreign_call.h"
#include "foreign_registry.h"

namespace trivium::ffi {

struct Error {
  std::string message;
  int32_t code;
};

struct Future {
  pjrt::CompletionPtr completion = std::make_shared<pjrt::Completion>();
};

// Where a handler's stages keep the state that later ones need.
struct ExecutionContext {
  std::array<State, 4> states{};
  const UserData* user_data = nullptr;
};

const Api& ForeignApi();

}  // namespace trivium::ffi
