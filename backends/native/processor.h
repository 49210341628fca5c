// What the processor can do, by LLVM's names, in which machine code says what it needs.

#pragma once

#include <string>
#include <string_view>

namespace trivium {

// Of features as LLVM writes them, "+avx2,-avx512f,+fma": those with a plus that this processor lacks, or that are not known here, separated
// by commas; empty where code that needs them runs.
std::string LackingFeatures(std::string_view features);

}  // namespace trivium
