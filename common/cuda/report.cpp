#include "common/cuda/report.hpp"

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

namespace simt_cuda {
namespace {

using Json = nlohmann::ordered_json;

struct Kernel {
  std::string name;
  std::int64_t launches = 0, accesses = 0;
  simt::Counters counters;
  std::map<simt::Pc, simt::Counters> by_pc;
  std::vector<simt::FaultRecord> faults;
};

struct HostFault {
  std::string kind, detail, file;
  int line;
  std::int64_t count;
};

struct Report {
  std::vector<Kernel> kernels;
  std::vector<HostFault> faults, notes;
  bool limited = false;
};

Report& report() {
  static auto& instance = *new Report;  // outlives every destructor of the program
  return instance;
}

void add(simt::Counters& sum, const simt::Counters& counters) {
  for (const auto& field : convladder::kCounterFields) sum.*field.member += counters.*field.member;
}

void add(std::vector<HostFault>& faults, const HostFault& fault) {
  for (HostFault& known : faults) {
    if (known.kind == fault.kind && known.file == fault.file && known.line == fault.line) {
      ++known.count;
      return;
    }
  }
  faults.push_back(fault);
}

Json to_json(const simt::Counters& counters) {
  Json json;
  for (const auto& field : convladder::kCounterFields)
    if (field.member != &simt::Counters::flops) json[field.name] = counters.*field.member;
  return json;
}

Json to_json(const simt::ThreadId& id) {
  return {{"block", id.block}, {"thread", id.thread}, {"warp", id.warp}, {"whole_warp", id.whole_warp}};
}

Json to_json(const simt::FaultRecord& fault) {
  Json json{{"kind", simt::to_string(fault.kind)}, {"detail", fault.detail}, {"count", fault.count}};
  const simt::SourceLine line = simt::line_of(fault), other = simt::other_line_of(fault);
  json["file"] = line.file;
  json["line"] = line.line;
  json["access"] = fault.access;
  json["thread"] = to_json(fault.thread);
  if (other.line != 0) {
    json["other"] = {{"file", other.file}, {"line", other.line}, {"access", fault.other_access}};
    json["other"]["thread"] = to_json(fault.other_thread);
  }
  return json;
}

Json to_json(const std::vector<HostFault>& faults) {
  Json json = Json::array();
  for (const HostFault& fault : faults)
    json.push_back({{"kind", fault.kind},
                    {"detail", fault.detail},
                    {"count", fault.count},
                    {"file", fault.file},
                    {"line", fault.line}});
  return json;
}

Json lines_of(const Kernel& kernel) {
  std::vector<simt::Pc> pcs;
  for (const auto& [pc, counters] : kernel.by_pc) pcs.push_back(pc);
  std::map<std::pair<std::string, int>, simt::Counters> lines;
  const auto source = simt::source_lines(pcs);
  for (const auto& [pc, counters] : kernel.by_pc) add(lines[{source.at(pc).file, source.at(pc).line}], counters);
  Json json = Json::array();
  for (const auto& [place, counters] : lines) {
    Json line{{"file", place.first}, {"line", place.second}};
    line["counters"] = to_json(counters);
    json.push_back(std::move(line));
  }
  return json;
}

}  // namespace

void report_host_fault(const char* kind, const std::string& detail, const Place& place) {
  add(report().faults, {kind, detail, place.file, place.line, 1});
}

void report_host_fault(const char* kind, const std::string& detail, simt::Pc pc) {
  static std::map<simt::Pc, simt::SourceLine> known;  // a loop meets the same fault many times
  auto line = known.find(pc);
  if (line == known.end()) line = known.emplace(pc, simt::source_lines({pc}).at(pc)).first;
  add(report().faults, {kind, detail, line->second.file, line->second.line, 1});
}

void report_note(const std::string& text, const Place& place) {
  add(report().notes, {"note", text, place.file, place.line, 1});
}

void note_limit() { report().limited = true; }

void add_launch(const char* name, const simt::Measurement& measured) {
  auto& kernels = report().kernels;
  auto kernel = kernels.begin();
  while (kernel != kernels.end() && kernel->name != name) ++kernel;
  if (kernel == kernels.end()) {
    kernels.emplace_back().name = name;
    kernel = kernels.end() - 1;
  }
  ++kernel->launches;
  kernel->accesses += measured.thread_accesses;
  add(kernel->counters, measured.counters);
  for (const auto& [pc, counters] : measured.by_pc) add(kernel->by_pc[pc], counters);
  for (const simt::FaultRecord& fault : measured.faults) {
    if (fault.kind == simt::FaultKind::invalid_launch) continue;  // an error that the program can read
    const auto same = [&](const simt::FaultRecord& other) {
      return other.kind == fault.kind && other.pc == fault.pc && other.other_pc == fault.other_pc;
    };
    const auto known = std::find_if(kernel->faults.begin(), kernel->faults.end(), same);
    if (known == kernel->faults.end())
      kernel->faults.push_back(fault);
    else
      known->count += fault.count;
  }
}

void write_report() {
  const char* const path = std::getenv("CONVLADDER_SIM_REPORT");
  if (!path) return;
  const bool with_lines = std::getenv("CONVLADDER_SIM_LINES");
  Json json{{"limited", report().limited}, {"kernels", Json::array()}};
  for (const Kernel& kernel : report().kernels) {
    Json row{{"name", kernel.name}, {"launches", kernel.launches}, {"thread_accesses", kernel.accesses}};
    row["counters"] = to_json(kernel.counters);
    row["faults"] = Json::array();
    for (const simt::FaultRecord& fault : kernel.faults) row["faults"].push_back(to_json(fault));
    if (with_lines) row["lines"] = lines_of(kernel);
    json["kernels"].push_back(std::move(row));
  }
  json["host_faults"] = to_json(report().faults);
  json["notes"] = to_json(report().notes);
  std::ofstream(path) << json.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace simt_cuda
