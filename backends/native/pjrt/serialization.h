// Programs as bytes: artifacts, which are loaded without Python if their host calls need none.

#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "abi/table.h"
#include "program.h"

namespace trivium::pjrt {

// The format under which the compiler receives artifacts for accelerators, and those whose host calls must be looked up in Python.
inline constexpr std::string_view kArtifactFormat = "trivium-artifact";

// Returns the program in an artifact that embeds its constants, for accelerators (`AcceleratorNames`) or, if none are named, for this
// machine's processors. Throws if the bytes are damaged, or for another machine or version.
std::shared_ptr<CompiledProgram> LoadArtifact(std::string_view bytes, const std::string& accelerators = "");

void BindSerialization(Api& api);

}  // namespace trivium::pjrt
