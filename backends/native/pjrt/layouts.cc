// The layouts extension.

#include "layouts.h"

#include "buffer.h"
#include "executable.h"
#include "extensions.h"
#include "guard.h"

namespace trivium::pjrt {

Layouts_MemoryLayout LayoutOf(const Shape& shape) {
  std::string text = "{";
  for (const int64_t dimension : MinorToMajor(shape)) text += (text.size() > 1 ? "," : "") + std::to_string(dimension);
  return {text + "}"};
}

namespace {

void Destroy(Layouts_MemoryLayout_Destroy_Args& args) { delete args.layout; }

void Serialize(Layouts_MemoryLayout_Serialize_Args& args) {
  // The opaque structure that the caller deletes is the string itself.
  auto* bytes = new std::string(args.layout->text);
  args.serialized_bytes = bytes->data();
  args.serialized_bytes_size = bytes->size();
  args.serialized_layout = reinterpret_cast<Layouts_SerializedLayout*>(bytes);
  args.serialized_layout_deleter = [](Layouts_SerializedLayout* layout) { delete reinterpret_cast<std::string*>(layout); };
}

void OfBuffer(Layouts_PJRT_Buffer_MemoryLayout_Args& args) { args.layout = new Layouts_MemoryLayout(LayoutOf(args.buffer->shape)); }

// The layout of arrays by default, for clients as well as for topologies.
template <class Args>
void Default(Args& args) {
  // Tokens have no elements, but hosts ask for all arguments alike.
  const Shape shape = args.type == Buffer_Type_TOKEN ? Shape{} : ShapeOf(args.type, args.dims, args.num_dims);
  args.layout = new Layouts_MemoryLayout(LayoutOf(shape));
}

void OfOutputs(Layouts_PJRT_Executable_GetOutputLayouts_Args& args) {
  args.num_outputs = args.executable->result_layouts.size();
  args.layouts = args.executable->result_layouts.data();
}

void OfArguments(Layouts_PJRT_Executable_GetParameterLayouts_Args& args) {
  args.num_parameters = args.executable->argument_layouts.size();
  args.layouts = args.executable->argument_layouts.data();
}

}  // namespace

Extension_Base* LayoutsExtension(Extension_Base* next) {
  static Layouts_Extension extension{
      {sizeof(Layouts_Extension), Extension_Type_Layouts, next},
      Slot<Destroy>,
      Method<Serialize>,
      Method<Default<Layouts_PJRT_Client_GetDefaultLayout_Args>>,
      Method<OfBuffer>,
      Method<Default<Layouts_PJRT_Topology_GetDefaultLayout_Args>>,
      Method<OfOutputs>,
      Method<OfArguments>,
  };
  return &extension.base;
}

}  // namespace trivium::pjrt
