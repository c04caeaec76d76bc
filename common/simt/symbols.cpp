#include "common/simt/symbols.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

extern "C" char __start_simt_constant[] __attribute__((weak));
extern "C" char __stop_simt_constant[] __attribute__((weak));
extern "C" char __start_simt_device[] __attribute__((weak));
extern "C" char __stop_simt_device[] __attribute__((weak));

namespace simt {
namespace {

/// The guard in its name keeps it from being taken for a variable in shared memory.
thread_local volatile char simt_guard_of_this_thread = 0;

struct Symbols {
  Program program;
  std::string file;                 ///< of the program, or of the library that holds the simulator
  std::vector<Variable> functions;  ///< absolute addresses, mangled names, sorted
};

std::string demangle(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

/// "simt::kernel(float*)::tile" -> "tile".
std::string last_component(const std::string& name) {
  const std::size_t colon = name.rfind("::");
  return colon == std::string::npos ? name : name.substr(colon + 2);
}

/// @return whether these are the headers of what holds this function: the program, or a library that it has loaded
int read_program_headers(dl_phdr_info* info, std::size_t, void* out) {
  auto& symbols = *static_cast<Symbols*>(out);
  Program& program = symbols.program;
  program = {};
  program.base = info->dlpi_addr;
  program.begin = UINTPTR_MAX;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type == PT_LOAD) {
      program.begin = std::min<std::uintptr_t>(program.begin, info->dlpi_addr + header.p_vaddr);
      program.end = std::max<std::uintptr_t>(program.end, info->dlpi_addr + header.p_vaddr + header.p_memsz);
    } else if (header.p_type == PT_TLS) {
      program.tls_begin = reinterpret_cast<std::uintptr_t>(info->dlpi_tls_data);
      program.tls_end = program.tls_begin + header.p_memsz;
    }
  }
  const auto here = reinterpret_cast<std::uintptr_t>(&read_program_headers);
  if (here < program.begin || here >= program.end) return 0;
  symbols.file = info->dlpi_name[0] == '\0' ? "/proc/self/exe" : info->dlpi_name;
  return 1;
}

Symbols read_symbols() {
  Symbols symbols;
  Program& program = symbols.program;
  simt_guard_of_this_thread = 1;  // a library's variables of a thread exist from its first access on
  dl_iterate_phdr(read_program_headers, &symbols);
  program.constant_begin = reinterpret_cast<std::uintptr_t>(__start_simt_constant);
  program.constant_end = reinterpret_cast<std::uintptr_t>(__stop_simt_constant);
  program.device_begin = reinterpret_cast<std::uintptr_t>(__start_simt_device);
  program.device_end = reinterpret_cast<std::uintptr_t>(__stop_simt_device);

  std::ifstream file(symbols.file, std::ios::binary);
  const std::vector<char> image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto* elf = reinterpret_cast<const ElfW(Ehdr)*>(image.data());
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(image.data() + elf->e_shoff);
  const auto* table = std::find_if(sections, sections + elf->e_shnum,
                                   [](const ElfW(Shdr) & section) { return section.sh_type == SHT_SYMTAB; });
  if (table == sections + elf->e_shnum)
    throw std::runtime_error("the simulator needs the symbol table of " + symbols.file +
                             ": build it again without stripping");
  const auto* symbol = reinterpret_cast<const ElfW(Sym)*>(image.data() + table->sh_offset);
  const auto* symbols_end = symbol + table->sh_size / table->sh_entsize;
  const char* names = image.data() + sections[table->sh_link].sh_offset;
  for (; symbol != symbols_end; ++symbol) {
    const int type = symbol->st_info & 0xf;
    const char* name = names + symbol->st_name;
    const bool guard = std::string_view(name).find("simt_guard_") != std::string_view::npos;
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_size == 0 || guard) continue;
    const std::uintptr_t address = program.base + symbol->st_value;
    if (type == STT_TLS) {
      const std::uintptr_t begin = program.tls_begin + symbol->st_value;
      program.shared.push_back({begin, begin + symbol->st_size, demangle(name)});
    } else if (type == STT_OBJECT && address >= program.constant_begin && address < program.constant_end) {
      program.constants.push_back({address, address + symbol->st_size, demangle(name)});
    } else if (type == STT_OBJECT && address >= program.device_begin && address < program.device_end) {
      program.devices.push_back({address, address + symbol->st_size, demangle(name)});
    } else if (type == STT_FUNC) {
      symbols.functions.push_back({address, address + symbol->st_size, name});
    }
  }
  for (auto* variables : {&program.shared, &program.constants, &program.devices}) {
    for (Variable& variable : *variables) variable.name = last_component(variable.name);
  }
  for (auto* list : {&program.shared, &program.constants, &program.devices, &symbols.functions})
    std::sort(list->begin(), list->end(), [](const Variable& a, const Variable& b) { return a.begin < b.begin; });
  return symbols;
}

const Symbols& symbols() {
  static const Symbols instance = read_symbols();
  return instance;
}

/// The position in `name` of the parenthesis that opens the parameter list; those of "(anonymous namespace)" and of
/// template arguments are passed over.
std::size_t parameters_of(const std::string& name) {
  int angle = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++angle;
    if (name[i] == '>') --angle;
    if (name[i] == '(' && angle == 0 && name.compare(i, 21, "(anonymous namespace)") != 0) return i;
  }
  return name.size();
}

std::string shell_quote(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

const Program& read_program() {
  known_program = &symbols().program;
  return *known_program;
}

const Variable* find_variable(const std::vector<Variable>& variables, std::uintptr_t address) {
  auto after = std::upper_bound(variables.begin(), variables.end(), address,
                                [](std::uintptr_t a, const Variable& variable) { return a < variable.begin; });
  return after != variables.begin() && address < std::prev(after)->end ? &*std::prev(after) : nullptr;
}

std::size_t constant_bytes() {
  std::size_t bytes = 0;
  for (const Variable& variable : program().constants) bytes += variable.end - variable.begin;
  return bytes;
}

std::string kernel_name(const void* kernel) {
  const Variable* function = find_variable(symbols().functions, reinterpret_cast<std::uintptr_t>(kernel));
  if (!function) return "?";
  std::string name = demangle(function->name.c_str());
  name.resize(parameters_of(name));
  // A template's name starts with its return type: "void blur<5>".
  int angle = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == '>') ++angle;
    if (name[i] == '<') --angle;
    if (angle == 0 && (name[i] == ' ' || name[i] == ':')) return name.substr(i + 1);
  }
  return name;
}

std::map<Pc, SourceLine> source_lines(const std::vector<Pc>& pcs) {
  std::map<Pc, SourceLine> lines;
  if (pcs.empty()) return lines;
  std::error_code error;
  const std::string path = std::filesystem::canonical(symbols().file, error).string();
  std::string command = "addr2line -i -a -e " + shell_quote(path);
  for (Pc pc : pcs) {
    lines[pc] = {"?", 0};
    char text[16];
    std::snprintf(text, sizeof text, " 0x%x", pc - 1);  // the call, not the instruction after it
    command += text;
  }
  std::FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (!pipe) return lines;
  Pc current = 0;
  char buffer[4096];
  while (std::fgets(buffer, sizeof buffer, pipe)) {
    std::string text(buffer);
    text.erase(text.find_first_of("\r\n"));
    if (text.starts_with("0x")) {
      current = static_cast<Pc>(std::stoull(text, nullptr, 16)) + 1;
      continue;
    }
    const std::size_t colon = text.rfind(':');
    SourceLine& line = lines[current];
    const bool in_library = line.file.starts_with("/usr/");  // whose function is inlined where the next line tells
    if ((line.line != 0 && !in_library) || colon == std::string::npos ||
        text.find("/common/simt/") != std::string::npos || text.find("/common/cuda/") != std::string::npos)
      continue;
    // A compiler that was given a relative path leaves it so, behind its own folder.
    line = {std::filesystem::path(text.substr(0, colon)).lexically_normal(), std::atoi(text.c_str() + colon + 1)};
    constexpr std::string_view root = CONVLADDER_SOURCE_DIR "/";
    if (line.file.starts_with(root)) line.file.erase(0, root.size());
  }
  pclose(pipe);
  return lines;
}

namespace {
SourceLine line_at(Pc pc, int known_line) {
  if (pc == 0) return {};
  SourceLine line = source_lines({pc}).at(pc);
  if (known_line != 0) line.line = known_line;
  return line;
}
}  // namespace

SourceLine line_of(const FaultRecord& fault) { return line_at(fault.pc, fault.line); }
SourceLine other_line_of(const FaultRecord& fault) { return line_at(fault.other_pc, fault.other_line); }

}  // namespace simt
