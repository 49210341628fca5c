// Programs as bytes: artifacts, which are loaded without Python where their host calls need none.

#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "abi/table.h"
#include "program.h"

namespace trivium::pjrt {

// The format under which the compiler is given artifacts whose host calls are Python's to look up.
inline constexpr std::string_view kArtifactFormat = "trivium-artifact";

// The program in an artifact that embeds its constants. Throws what is wrong with it: damaged bytes, or those for another machine or version.
std::shared_ptr<CompiledProgram> LoadArtifact(std::string_view bytes);

void BindSerialization(Api& api);

}  // namespace trivium::pjrt
