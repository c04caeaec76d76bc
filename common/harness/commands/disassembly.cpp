#include "common/harness/commands/disassembly.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string_view>
#include <vector>

#include "common/harness/device/device.hpp"
#include "common/harness/device/programs.hpp"

namespace convladder {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPiece = "Fatbin ";

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

std::string last_line(std::string text) {
  text.erase(text.find_last_not_of(" \n") + 1);
  return text.substr(text.rfind('\n') + 1);
}

/// Of cuobjdump, which says on its standard output what is wrong where it fails.
std::string output_of(const std::string& command) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) throw MachineError("cannot start cuobjdump");
  std::string text;
  std::array<char, 1 << 16> part;
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe.get())) text.append(part.data(), count);
  if (pclose(pipe.release()) != 0) throw MachineError("cuobjdump failed: " + last_line(text));
  return text;
}

}  // namespace

std::string sass_of(const StageInfo& stage) {
  const fs::path program = gpu_program();
  const fs::path tool = find_cuobjdump();  // it starts nvdisasm, which lies beside it
  const std::string listing =
      output_of(fmt::format("PATH={}:\"$PATH\" {} --dump-sass {} 2>&1", shell_word(tool.parent_path()),
                            shell_word(tool), shell_word(program)));
  // Each source file has a piece of its own: "Fatbin elf code:", facts with its name, then its functions. The steps of
  // a chapter lie in folders within its own.
  const std::string folder = fmt::format("/{}/", stage.folder);
  const auto is_of_stage = [&](const std::string& piece) {
    const std::size_t at = piece.find(folder);
    return at != std::string::npos && piece.find_first_of("/\n", at + folder.size()) == piece.find('\n', at);
  };
  std::string sass;
  for (std::size_t begin = listing.find(kPiece); begin != std::string::npos;) {
    const std::size_t end = listing.find(kPiece, begin + kPiece.size());
    const std::string piece = listing.substr(begin, end - begin);
    if (is_of_stage(piece) && piece.find("Function : ") != std::string::npos) sass += piece;
    begin = end;
  }
  if (sass.empty()) {
    throw MachineError(fmt::format("{} holds no machine code of {}; run ./lab build", program.string(), stage.name));
  }
  return sass;
}

}  // namespace convladder
