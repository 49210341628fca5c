#include "executable.h"

#include <cstring>

#include "guard.h"

namespace trivium::pjrt {
namespace {

constexpr std::string_view kMemoryKind = "device", kFormat = "hlo_with_config";

NamedValue Cost(std::string_view name, double value) {
  NamedValue cost{};
  cost.struct_size = sizeof(NamedValue);
  cost.name = name.data();
  cost.name_size = name.size();
  cost.type = NamedValue_kFloat;
  cost.float_value = static_cast<float>(value);
  cost.value_size = 1;
  return cost;
}

}  // namespace

Executable::Executable(std::shared_ptr<CompiledProgram> compiled) : program(std::move(compiled)) {
  for (const Shape& shape : program->results) {
    result_types.push_back(shape.type);
    result_dims.insert(result_dims.end(), shape.dims.begin(), shape.dims.end());
    result_ranks.push_back(shape.dims.size());
    result_memory_kinds.push_back(kMemoryKind.data());
    result_memory_kind_sizes.push_back(kMemoryKind.size());
    layouts_.push_back(LayoutOf(shape));
  }
  for (const Shape& shape : program->arguments) layouts_.push_back(LayoutOf(shape));
  for (size_t i = 0; i < layouts_.size(); ++i) (i < program->results.size() ? result_layouts : argument_layouts).push_back(&layouts_[i]);
  for (const std::string& sharding : program->shardings) {
    shardings.push_back(sharding.data());
    sharding_sizes.push_back(sharding.size());
  }
  costs = {Cost("flops", program->flops), Cost("transcendentals", program->transcendentals),
           Cost("bytes accessed", program->bytes_accessed)};
}

namespace {

int64_t TotalBytes(const std::vector<Shape>& shapes) {
  int64_t total = 0;
  for (const Shape& shape : shapes) total += static_cast<int64_t>(shape.bytes());
  return total;
}

void Destroy(Executable_Destroy_Args& args) { delete args.executable; }

void Name(Executable_Name_Args& args) {
  args.executable_name = args.executable->program->name.data();
  args.executable_name_size = args.executable->program->name.size();
}

void NumReplicas(Executable_NumReplicas_Args& args) { args.num_replicas = args.executable->program->num_replicas; }

void NumPartitions(Executable_NumPartitions_Args& args) { args.num_partitions = args.executable->program->num_partitions; }

void NumOutputs(Executable_NumOutputs_Args& args) { args.num_outputs = args.executable->program->results.size(); }

void SizeOfGeneratedCode(Executable_SizeOfGeneratedCodeInBytes_Args& args) {
  args.size_in_bytes = args.executable->program->generated_code_size;
}

void Fingerprint(Executable_Fingerprint_Args& args) {
  args.executable_fingerprint = args.executable->program->fingerprint.data();
  args.executable_fingerprint_size = args.executable->program->fingerprint.size();
}

// Called twice: for the size, and then with memory of that size.
void OptimizedProgram(Executable_OptimizedProgram_Args& args) {
  Require(args.program != nullptr, "the program is null");
  const CompiledProgram& program = *args.executable->program;
  const std::shared_ptr<const std::string> bytes = program.Described();
  args.program->format = kFormat.data();
  args.program->format_size = kFormat.size();
  if (args.program->code != nullptr) {
    Require(args.program->code_size >= bytes->size(), "the memory for the program is too small");
    std::memcpy(args.program->code, bytes->data(), bytes->size());
    program.ForgetDescribed();
  }
  args.program->code_size = bytes->size();
}

void GetCostAnalysis(Executable_GetCostAnalysis_Args& args) {
  args.properties = args.executable->costs.data();
  args.num_properties = args.executable->costs.size();
}

void GetCompiledMemoryStats(Executable_GetCompiledMemoryStats_Args& args) {
  const CompiledProgram& program = *args.executable->program;
  args.generated_code_size_in_bytes = program.generated_code_size;
  args.argument_size_in_bytes = TotalBytes(program.arguments);
  args.output_size_in_bytes = TotalBytes(program.results);
  args.temp_size_in_bytes = program.arena_size;
  args.alias_size_in_bytes = 0;
  for (size_t i = 0; i < program.results.size(); ++i) args.alias_size_in_bytes += program.aliases[i] < 0 ? 0 : program.results[i].bytes();
  args.host_generated_code_size_in_bytes = args.host_argument_size_in_bytes = args.host_output_size_in_bytes = 0;
  args.host_alias_size_in_bytes = args.host_temp_size_in_bytes = 0;
  args.total_size_in_bytes = args.argument_size_in_bytes + args.output_size_in_bytes + args.temp_size_in_bytes + program.constant_size;
  args.total_size_in_bytes -= args.alias_size_in_bytes;
  args.peak_memory_in_bytes = args.total_size_in_bytes;
}

void OutputElementTypes(Executable_OutputElementTypes_Args& args) {
  args.output_types = args.executable->result_types.data();
  args.num_output_types = args.executable->result_types.size();
}

void OutputDimensions(Executable_OutputDimensions_Args& args) {
  args.num_outputs = args.executable->result_ranks.size();
  args.dims = args.executable->result_dims.data();
  args.dim_sizes = args.executable->result_ranks.data();
}

void OutputMemoryKinds(Executable_OutputMemoryKinds_Args& args) {
  args.num_outputs = args.executable->result_memory_kinds.size();
  args.memory_kinds = args.executable->result_memory_kinds.data();
  args.memory_kind_sizes = args.executable->result_memory_kind_sizes.data();
}

}  // namespace

void BindExecutables(Api& api) {
  api.Executable_Destroy = Slot<Destroy>;
  api.Executable_Name = Method<Name>;
  api.Executable_NumReplicas = Method<NumReplicas>;
  api.Executable_NumPartitions = Method<NumPartitions>;
  api.Executable_NumOutputs = Method<NumOutputs>;
  api.Executable_SizeOfGeneratedCodeInBytes = Method<SizeOfGeneratedCode>;
  api.Executable_Fingerprint = Method<Fingerprint>;
  api.Executable_OptimizedProgram = Method<OptimizedProgram>;
  api.Executable_GetCostAnalysis = Method<GetCostAnalysis>;
  api.Executable_GetCompiledMemoryStats = Method<GetCompiledMemoryStats>;
  api.Executable_OutputElementTypes = Method<OutputElementTypes>;
  api.Executable_OutputDimensions = Method<OutputDimensions>;
  api.Executable_OutputMemoryKinds = Method<OutputMemoryKinds>;
}

}  // namespace trivium::pjrt
