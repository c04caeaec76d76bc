/// @file
/// What a plain CUDA program did in the simulator, gathered over its life and written as JSON at its end, of which
/// tools/lab/sim.py makes a table.
#pragma once
#include <cstdint>
#include <string>

#include "common/simt/runtime.hpp"

namespace simt_cuda {

/// A place in the program's host code.
struct Place {
  const char* file;  ///< as it was named to the compiler
  int line;          ///< from 1
};

/// A fault of the host code, once for each kind and place.
void report_host_fault(const char* kind, const std::string& detail, const Place& place);
/// The same, at a program counter.
void report_host_fault(const char* kind, const std::string& detail, simt::Pc pc);
/// Something that is worth a look and no fault.
void report_note(const std::string& text, const Place& place);

/// Adds what a launch did to the kernel's row.
/// @param kernel its name, as the program writes it
void add_launch(const char* kernel, const simt::Measurement& measured);
/// Says that the run was ended by its limit.
void note_limit();

/// Writes all of it to the file that CONVLADDER_SIM_REPORT names, if it names one.
void write_report();

}  // namespace simt_cuda
