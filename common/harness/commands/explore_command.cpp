#include "common/harness/commands/explore_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/harness/commands/fusion_space.hpp"
#include "common/harness/device/programs.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/integer.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/spelling.hpp"
#include "common/harness/files/text_table.hpp"
#include "common/harness/report/report.hpp"

namespace convladder {
namespace {

using Json = nlohmann::ordered_json;

constexpr Fusion kFusions[] = {Fusion::shmem, Fusion::llc};
constexpr double kMostBytes = 1e12;
constexpr int kMostMultiprocessors = 65536;
constexpr std::int64_t kSourceTbm[] = {16, 32};  // what Tong et al. say remains on their GPU

const char* name_of(Fusion fusion) { return fusion == Fusion::shmem ? "PKF-Shmem" : "PKF-LLC"; }

// ---- Arguments -----------------------------------------------------------------------------------------------------

/// "64K", "5.5M", "65536": K, M and G count in 1024.
std::int64_t parse_bytes(const char* option, const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error == std::errc() && rest + 1 == end) {
    const std::string_view units = "KMG";
    const std::size_t unit = units.find(static_cast<char>(std::toupper(static_cast<unsigned char>(*rest))));
    if (unit != std::string_view::npos) {
      value *= std::pow(1024.0, static_cast<double>(unit + 1));
      ++rest;
    }
  }
  if (error == std::errc() && rest == end && value >= 1 && value <= kMostBytes) return std::llround(value);
  throw UsageError(
      fmt::format("{} must be a number of bytes, as in 65536, 64K or 5.5M; got {}", option, in_quotes(text)));
}

int parse_m(const std::string& text) {
  if (text == "2" || text == "4" || text == "6") return text[0] - '0';
  throw UsageError(fmt::format("--m must be 2, 4 or 6; got {}", in_quotes(text)));
}

int parse_element_bytes(const std::string& type) {
  if (type == "fp16") return 2;
  if (type == "int8") return 1;
  throw UsageError(fmt::format("--type must be fp16 or int8; got {}", in_quotes(type)));
}

FusionGpu chosen_gpu(const ExploreCommand& command) {
  FusionGpu gpu = known_gpu("RTX 2080 Ti");
  if (command.gpu) {
    gpu = known_gpu(*command.gpu);
  } else if (const std::optional<GpuFacts> here = first_gpu()) {
    gpu = {here->name, here->shared_bytes_per_block, here->l2_bytes, here->multiprocessors, 0};
  }
  if (command.smem) gpu.shared_bytes = parse_bytes("--smem", *command.smem);
  if (command.l2) gpu.l2_bytes = parse_bytes("--l2", *command.l2);
  if (command.sms) gpu.multiprocessors = parse_integer("--sms", *command.sms, 1, kMostMultiprocessors);
  if (command.smem && command.l2 && command.sms && !command.gpu) {
    gpu.name = "a GPU as described";
  } else if (command.smem || command.l2 || command.sms) {
    gpu.name += ", changed";
  }
  return gpu;
}

// ---- Text ----------------------------------------------------------------------------------------------------------

/// "64 KB", "5.5 MB", in units of 1024.
std::string size_text(std::int64_t bytes) {
  const double kib = static_cast<double>(bytes) / 1024;
  return kib < 1024 ? fmt::format("{:.4g} KB", kib) : fmt::format("{:.4g} MB", kib / 1024);
}

/// "8-56 64 80": multiples of 8 without a gap as a range.
std::string list_text(const std::vector<std::int64_t>& values) {
  if (values.empty()) return "none";
  std::string text;
  for (std::size_t first = 0, last; first < values.size(); first = last + 1) {
    for (last = first; last + 1 < values.size() && values[last + 1] == values[last] + 8;) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : " ", values[first]);
    if (last > first) text += fmt::format("{}{}", last > first + 1 ? "-" : " ", values[last]);
  }
  return text;
}

/// "a", "b", ...: the rule's letter in the table of rules.
char letter_of(FusionRule rule) { return static_cast<char>('a' + static_cast<int>(rule)); }

/// What rules the tile out, of the rules that count here.
std::vector<FusionRule> reasons(const FusionPoint& point, Fusion fusion, bool source_only) {
  std::vector<FusionRule> broken = point.broken;
  std::erase_if(broken, [&](FusionRule r) { return !concerns(r, fusion) || (source_only && !is_of_source(r)); });
  return broken;
}

/// The first rule that rules out that of `points` which the fewest rule out.
FusionRule main_reason(const std::vector<const FusionPoint*>& points, Fusion fusion, bool source_only) {
  std::vector<FusionRule> fewest;
  for (const FusionPoint* point : points) {
    std::vector<FusionRule> broken = reasons(*point, fusion, source_only);
    if (fewest.empty() || broken.size() < fewest.size()) fewest = std::move(broken);
  }
  return fewest.front();
}

/// What becomes of the tiles of one tbm: "TBK to 48, TBN to 64", or "out: L2".
std::string cell_of(const std::vector<const FusionPoint*>& points, Fusion fusion, bool source_only) {
  std::int64_t tbn = 0, tbk = 0;
  for (const FusionPoint* point : points) {
    if (!point->remains(fusion, source_only)) continue;
    tbn = std::max(tbn, point->tbn);
    tbk = std::max(tbk, point->tbk);
  }
  if (tbn > 0) return fmt::format("TBN to {}, TBK to {}", tbn, tbk);
  return std::string("out: ") + words_of(main_reason(points, fusion, source_only));
}

/// A line for each tbm; one for several where they do not differ.
std::string summary_text(const std::vector<FusionPoint>& space) {
  struct Row {
    std::int64_t first, last;
    std::vector<std::string> cells;
  };
  std::vector<Row> rows;
  for (auto begin = space.begin(); begin != space.end();) {
    const std::int64_t tbm = begin->tbm;
    std::vector<const FusionPoint*> points;
    for (; begin != space.end() && begin->tbm == tbm; ++begin) points.push_back(&*begin);
    Row row{tbm, tbm, {}};
    for (const Fusion fusion : kFusions)
      for (const bool source_only : {true, false}) row.cells.push_back(cell_of(points, fusion, source_only));
    if (!rows.empty() && rows.back().cells == row.cells) {
      rows.back().last = tbm;
    } else {
      rows.push_back(std::move(row));
    }
  }
  TextTable table({"TBM", "PKF-Shmem: published", "all rules", "PKF-LLC: published", "all rules"}, 5);
  for (const Row& row : rows) {
    std::vector<std::string> cells{row.first == row.last ? std::to_string(row.first)
                                                         : fmt::format("{}-{}", row.first, row.last)};
    cells.insert(cells.end(), row.cells.begin(), row.cells.end());
    table.add(std::move(cells));
  }
  return table.text();
}

/// The rule with the layer's and the GPU's numbers.
std::string formula_of(FusionRule rule, const FusionLayer& layer, const FusionGpu& gpu) {
  const std::int64_t pair = layer.pair_bytes();
  const std::string smem = size_text(gpu.shared_bytes), l2 = size_text(gpu.l2_bytes);
  const std::string running = fmt::format("min(blocks, {})", gpu.multiprocessors);
  switch (rule) {
    case FusionRule::shared_input:
      return fmt::format("{} B * TBM * TBK <= {}", pair, smem);
    case FusionRule::few_blocks:
      return fmt::format("blocks = ({}/TBM) * ({}/TBN) >= {}", layer.tiles, layer.k, gpu.multiprocessors);
    case FusionRule::l2_slices:
      return fmt::format("{} B * TBM * TBK * {} <= {}", pair, running, l2);
    case FusionRule::shared_both:
      return fmt::format("{} B * (TBM * TBK + TBN * {}) <= {}", pair, layer.c, smem);
    case FusionRule::accumulators:
      return fmt::format("{} * TBM * TBN / 32 <= 255 registers a thread", layer.side);
    case FusionRule::l2_channels:
      return fmt::format("{} B * (TBM * {} * {} + {} * {}) <= {}", pair, layer.c, running, layer.c, layer.k, l2);
  }
  return "";
}

std::string rules_text(const FusionLayer& layer, const FusionGpu& gpu) {
  TextTable table({"", "rule", "by", "for", "says"}, 5);
  for (const FusionRule rule : kFusionRules) {
    const bool shmem = concerns(rule, Fusion::shmem), llc = concerns(rule, Fusion::llc);
    table.add({std::string(1, letter_of(rule)), words_of(rule), is_of_source(rule) ? "Tong et al." : "left out",
               shmem && llc ? "both" : name_of(shmem ? Fusion::shmem : Fusion::llc), formula_of(rule, layer, gpu)});
  }
  return table.text();
}

std::vector<std::int64_t> whole_divisors(const std::vector<std::int64_t>& tbm, std::int64_t tiles) {
  std::vector<std::int64_t> result;
  for (const std::int64_t value : tbm)
    if (value % 16 == 0 && tiles % value == 0) result.push_back(value);
  return result;
}

std::string findings_text(const std::vector<FusionPoint>& space, const FusionLayer& layer) {
  std::string text;
  for (const Fusion fusion : kFusions) {
    text += fmt::format("{}: TBM that the rules of Tong et al. leave: {}\n", name_of(fusion),
                        list_text(remaining_tbm(space, fusion, true)));
    text += fmt::format("  of these, multiples of 16 that divide {} tiles: {}\n", layer.tiles,
                        list_text(whole_divisors(remaining_tbm(space, fusion, true), layer.tiles)));
    text += fmt::format("  that all rules leave: {}\n", list_text(remaining_tbm(space, fusion, false)));
  }
  const auto has_both = [&](bool source_only) {
    std::string verdict;
    for (const Fusion fusion : kFusions) {
      const auto left = remaining_tbm(space, fusion, source_only);
      const auto in = [&](std::int64_t tbm) { return std::find(left.begin(), left.end(), tbm) != left.end(); };
      verdict += fmt::format("{}{} {}", verdict.empty() ? "" : ", ", name_of(fusion),
                             std::all_of(std::begin(kSourceTbm), std::end(kSourceTbm), in)    ? "both in"
                             : std::none_of(std::begin(kSourceTbm), std::end(kSourceTbm), in) ? "both out"
                             : in(kSourceTbm[0])                                              ? "16 in, 32 out"
                                                                                              : "16 out, 32 in");
    }
    return verdict;
  };
  text += "Tong et al.: TBM = 16 and 32 remain, and no other (RTX 2080 Ti, fp16). These two here:\n";
  text += fmt::format("  by their rules: {}\n  by all rules: {}\n", has_both(true), has_both(false));
  return text;
}

std::string all_text(const std::vector<FusionPoint>& space) {
  TextTable table({"TBM", "TBN", "TBK", "blocks", "a", "d", "c", "f", "e", "PKF-Shmem", "PKF-LLC", ""}, 0);
  const auto verdict = [](const FusionPoint& point, Fusion fusion) {
    const std::vector<FusionRule> broken = reasons(point, fusion, false);
    std::string text = broken.empty() ? "in" : "out:";
    for (const FusionRule rule : broken) text += fmt::format(" {}", letter_of(rule));
    return text;
  };
  for (const FusionPoint& point : space) {
    table.add({std::to_string(point.tbm), std::to_string(point.tbn), std::to_string(point.tbk),
               std::to_string(point.blocks), size_text(point.shared_input_bytes), size_text(point.shared_both_bytes),
               size_text(point.l2_slice_bytes), size_text(point.l2_channel_bytes), std::to_string(point.accumulators),
               verdict(point, Fusion::shmem), verdict(point, Fusion::llc), ""});
  }
  return table.text();
}

// ---- JSON ----------------------------------------------------------------------------------------------------------

Json fusion_json(const std::vector<FusionPoint>& space, Fusion fusion, const FusionLayer& layer) {
  const std::vector<std::int64_t> source = remaining_tbm(space, fusion, true);
  return {{"tbm_by_source", source},
          {"tbm_by_source_dividing", whole_divisors(source, layer.tiles)},
          {"tbm_by_all", remaining_tbm(space, fusion, false)}};
}

Json point_json(const FusionPoint& point) {
  Json broken = Json::array();
  for (const FusionRule rule : point.broken) broken.push_back(key_of(rule));
  return {
      {"tbm", point.tbm},
      {"tbn", point.tbn},
      {"tbk", point.tbk},
      {"blocks", point.blocks},
      {"shared_input_bytes", point.shared_input_bytes},
      {"shared_both_bytes", point.shared_both_bytes},
      {"l2_slice_bytes", point.l2_slice_bytes},
      {"l2_channel_bytes", point.l2_channel_bytes},
      {"accumulators", point.accumulators},
      {"broken", std::move(broken)},
      {"pkf_shmem",
       {{"by_source", point.remains(Fusion::shmem, true)}, {"by_all", point.remains(Fusion::shmem, false)}}},
      {"pkf_llc", {{"by_source", point.remains(Fusion::llc, true)}, {"by_all", point.remains(Fusion::llc, false)}}}};
}

}  // namespace

int explore_command(const ExploreCommand& command) {
  const int m = parse_m(command.m), element_bytes = parse_element_bytes(command.type);
  const ConvProblem problem = parse_fusion_layer(command.shape);
  const FusionGpu gpu = chosen_gpu(command);
  const FusionLayer layer(problem, m, element_bytes);
  const std::vector<FusionPoint> space = fusion_space(layer, gpu);
  if (command.json) {
    Json rules = Json::array();
    for (const FusionRule rule : kFusionRules) {
      rules.push_back({{"key", key_of(rule)},
                       {"by_source", is_of_source(rule)},
                       {"pkf_shmem", concerns(rule, Fusion::shmem)},
                       {"pkf_llc", concerns(rule, Fusion::llc)},
                       {"says", formula_of(rule, layer, gpu)}});
    }
    Json points = Json::array();
    for (const FusionPoint& point : space) points.push_back(point_json(point));
    const Json object = {{"gpu",
                          {{"name", gpu.name},
                           {"shared_bytes", gpu.shared_bytes},
                           {"l2_bytes", gpu.l2_bytes},
                           {"multiprocessors", gpu.multiprocessors}}},
                         {"layer",
                          {{"m", m},
                           {"type", command.type},
                           {"tiles", layer.tiles},
                           {"c", layer.c},
                           {"k", layer.k},
                           {"meets_wmma_rules", layer.meets_wmma_rules()}}},
                         {"rules", std::move(rules)},
                         {"pkf_shmem", fusion_json(space, Fusion::shmem, layer)},
                         {"pkf_llc", fusion_json(space, Fusion::llc, layer)},
                         {"points", std::move(points)}};
    fmt::print("{}", text_of(object));
    return 0;
  }
  fmt::print("{}: {} of shared memory a block, {} of L2, {} multiprocessors\n", gpu.name, size_text(gpu.shared_bytes),
             size_text(gpu.l2_bytes), gpu.multiprocessors);
  fmt::print("F({0}x{0}, 3x3) in {1} on {2}: {3} tiles, {4} products each\n", m, command.type, to_string(problem),
             layer.tiles, layer.side * layer.side);
  fmt::print("WMMA rules of Tong et al. (C a multiple of 16; tiles and K of 8; tiles * K of 256): {}\n\n",
             layer.meets_wmma_rules() ? "met" : "not met; the stages pad");
  fmt::print("{}\n{}\n{}", summary_text(space), rules_text(layer, gpu), findings_text(space, layer));
  if (command.all) {
    fmt::print("\nEvery tile: the left sides of the rules, and those that it breaks\n{}", all_text(space));
  } else {
    fmt::print("--all lists all {} tiles with their figures.\n", space.size());
  }
  return 0;
}

}  // namespace convladder
