#include "common/harness/device/module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <filesystem>
#include <system_error>

namespace convladder {
namespace {

/// The folder of the program, or of the library that it has loaded and that this function is part of.
std::filesystem::path own_folder(std::error_code& error) {
  Dl_info info{};
  link_map* map = nullptr;
  const auto here = reinterpret_cast<const void*>(&own_folder);
  const bool found = dladdr1(here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
  const bool library = found && map && map->l_name[0] != '\0';
  return std::filesystem::canonical(library ? map->l_name : "/proc/self/exe", error).parent_path();
}

}  // namespace

Module load_module(const ModuleSource& source) {
  std::error_code error;
  const auto file = own_folder(error) / source.file;
  if (error || !std::filesystem::exists(file, error)) {
    return {nullptr, fmt::format("this program was built without {}, or moved without {}; {}, and build again",
                                 source.library, source.file, source.remedy)};
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
