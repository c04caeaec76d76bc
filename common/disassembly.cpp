#include "common/disassembly.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <vector>

#include "common/device.hpp"
#include "common/programs.hpp"

namespace convladder {
namespace {

namespace fs = std::filesystem;

/// On PATH, beside nvcc, or where the toolkit installs itself.
fs::path find_cuobjdump() {
  std::vector<fs::path> folders;
  const char* const path = std::getenv("PATH");
  std::istringstream entries(path ? path : "");
  for (std::string entry; std::getline(entries, entry, ':');) folders.emplace_back(entry);
  if (const char* const nvcc = std::getenv("CUDACXX")) folders.push_back(fs::path(nvcc).parent_path());
  folders.emplace_back("/usr/local/cuda/bin");
  for (const fs::path& folder : folders) {
    const fs::path file = folder / "cuobjdump";
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  throw MachineError("--sass needs cuobjdump, which was not found: install the CUDA Toolkit, or add its bin to PATH");
}

/// As one word of the shell's.
std::string shell_word(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) throw MachineError("cannot start cuobjdump");
  std::string text;
  std::array<char, 1 << 16> part;
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe.get())) text.append(part.data(), count);
  return text;
}

/// The mangled name of a kernel in an unnamed namespace holds its file: "..._11_tiled_1d_cu_8f3a...".
std::string file_mark(const StageInfo& stage) {
  std::string mark = fmt::format("_{}_cu_", stage.name);
  std::replace(mark.begin(), mark.end(), '-', '_');
  return mark;
}

}  // namespace

std::string sass_of(const StageInfo& stage) {
  const fs::path program = gpu_program();
  const std::string listing =
      output_of(fmt::format("{} --dump-sass {} 2>/dev/null", shell_word(find_cuobjdump()), shell_word(program)));
  const std::string mark = file_mark(stage);
  std::string sass, architecture;
  bool wanted = false;
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("code for sm_") != std::string::npos) architecture = line;
    const bool heading = line.find("Function : ") != std::string::npos;
    if (heading) wanted = line.find(mark) != std::string::npos;
    if (line.starts_with("Fatbin ")) wanted = false;
    if (heading && wanted) sass += architecture + "\n";
    if (wanted) sass += line + "\n";
  }
  if (sass.empty()) {
    throw MachineError(fmt::format("{} holds no machine code of {}; run ./lab build", program.string(), stage.name));
  }
  return sass;
}

}  // namespace convladder
