// Python, which compiles: that of this process, or one that starts in it, so that hosts that are no Python programs have a compiler, too.

#pragma once

#include <string>

namespace trivium::pjrt {

// Names the interpreter of the environment in which Trivium is installed, such as /opt/trivium/bin/python, for a process that has no
// Python. Without this, the variable TRIVIUM_PYTHON does.
void ChoosePython(const std::string& executable);

// Has Python register the compiler. Throws, with the reason, if there is no Python or if it has no Trivium.
void RegisterCompiler();

}  // namespace trivium::pjrt
