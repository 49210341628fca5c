// The C ABI of plugins' profilers: a table of functions in an extension of PJRT's table.

#pragma once

#include <cstddef>
#include <cstdint>

#include "values.h"

namespace trivium::profiler {

struct Error;
struct Profiler;

struct Error_Destroy_Args { size_t struct_size; void* priv; Error* error; };
struct Error_Message_Args { size_t struct_size; void* priv; const Error* error; const char* message; size_t message_size; };
struct Error_GetCode_Args { size_t struct_size; void* priv; const Error* error; int code; };
struct Create_Args { size_t struct_size; const char* options; size_t options_size; Profiler* profiler; };
struct Destroy_Args { size_t struct_size; Profiler* profiler; };
struct Start_Args { size_t struct_size; Profiler* profiler; };
struct Stop_Args { size_t struct_size; Profiler* profiler; };
// Called twice: for the size, and then with memory of that size.
struct CollectData_Args { size_t struct_size; Profiler* profiler; uint8_t* buffer; size_t buffer_size_in_bytes; };

struct Api {
  size_t struct_size;
  void* priv;
  void (*error_destroy)(Error_Destroy_Args*);
  void (*error_message)(Error_Message_Args*);
  Error* (*error_get_code)(Error_GetCode_Args*);
  Error* (*create)(Create_Args*);
  Error* (*destroy)(Destroy_Args*);
  Error* (*start)(Start_Args*);
  Error* (*stop)(Stop_Args*);
  Error* (*collect_data)(CollectData_Args*);
};

struct Extension {
  pjrt::Extension_Base base;
  Api* profiler_api;
  int64_t traceme_context_id;
};

}  // namespace trivium::profiler
