#include "common/harness/device/module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace convladder {

Module load_module(const ModuleSource& source) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto file = program.parent_path() / source.file;
  if (error || !std::filesystem::exists(file, error)) {
    return {nullptr,
            fmt::format("this program was built without {}; {}, and build again", source.library, source.remedy)};
  }
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    return {nullptr, fmt::format("{} is not installed: {}; {}, or add the folder of {} to LD_LIBRARY_PATH",
                                 source.library, dlerror(), source.remedy, source.soname)};
  }
  void* const function = dlsym(library, source.function);
  if (!function) return {nullptr, fmt::format("{} is not of this build: {}; build again", file.string(), dlerror())};
  return {function, ""};
}

}  // namespace convladder
