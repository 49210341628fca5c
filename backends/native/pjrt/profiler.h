// The profiler, as an extension of PJRT's table.

#pragma once

#include "abi/values.h"

namespace trivium::profiler {

pjrt::Extension_Base* ProfilerExtension();

}  // namespace trivium::profiler
