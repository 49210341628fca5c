// The extensions of PJRT's table: a chain, in which each is followed by the one that `next` begins.

#pragma once

#include "abi/extensions.h"

namespace trivium::pjrt {

Extension_Base* CallbacksExtension(Extension_Base* next);
Extension_Base* ForeignFunctionsExtension(Extension_Base* next);
Extension_Base* LayoutsExtension(Extension_Base* next);
Extension_Base* MemoryDescriptionsExtension(Extension_Base* next);
Extension_Base* ShardingsExtension(Extension_Base* next);

}  // namespace trivium::pjrt
