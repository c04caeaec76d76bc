/// @file
/// The running program's own symbols: its variables, functions and source lines. runtime.hpp has the lines.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "common/simt/runtime.hpp"

namespace simt {

/// A variable in shared or constant memory, or a function, from the program's symbol table.
struct Variable {
  std::uintptr_t begin, end;
  std::string name;
};
/// The variable that covers `address`, or null. @param variables sorted by address
const Variable* find_variable(const std::vector<Variable>& variables, std::uintptr_t address);

/// What the running program's own ELF file tells of it.
struct Program {
  std::uintptr_t base = 0;            ///< where it was loaded
  std::uintptr_t begin = 0, end = 0;  ///< its mapped segments
  std::uintptr_t tls_begin = 0, tls_end = 0;
  std::uintptr_t constant_begin = 0, constant_end = 0;
  std::uintptr_t device_begin = 0, device_end = 0;  ///< of `__device__` variables
  std::vector<Variable> shared, constants, devices;
};
/// Reads that of this program, or says again what it read. Shared variables are those of the first thread to ask.
const Program& read_program();
/// What it has read, or null.
inline const Program* known_program = nullptr;
/// Of this program: every access asks.
inline const Program& program() { return known_program ? *known_program : read_program(); }

/// Of a return address in the program.
inline Pc relative_pc(const void* return_address) {
  return static_cast<Pc>(reinterpret_cast<std::uintptr_t>(return_address) - program().base);
}

}  // namespace simt
