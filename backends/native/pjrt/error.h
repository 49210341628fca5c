// Errors: inside the runtime an exception, `Failure`; at the C interface an object that the caller owns.

#pragma once

#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "abi/table.h"

namespace trivium::pjrt {

struct Error {
  Error_Code code;
  std::string message;
};

// Thrown by the runtime, and converted to an `Error` before it can leave through the C interface.
class Failure : public std::exception {
 public:
  Failure(Error_Code code, std::string message) : error{code, std::move(message)} {}
  const char* what() const noexcept override { return error.message.c_str(); }

  Error error;
};

// The error with which `action` ends, if it throws.
template <class Action>
std::optional<Error> ErrorOf(Action&& action) noexcept {
  try {
    action();
    return std::nullopt;
  } catch (Failure& failure) {
    return std::move(failure.error);
  } catch (const std::bad_alloc&) {
    return Error{Error_Code_RESOURCE_EXHAUSTED, "there is not enough memory"};
  } catch (const std::exception& exception) {
    return Error{Error_Code_INTERNAL, exception.what()};
  }
}

// Throws unless `condition` holds: the caller passed something wrong.
inline void Require(bool condition, const char* message) {
  if (!condition) throw Failure(Error_Code_INVALID_ARGUMENT, message);
}

inline std::string_view View(const char* text, size_t size) { return text == nullptr ? std::string_view() : std::string_view(text, size); }

void BindErrors(Api& api);

}  // namespace trivium::pjrt
