/// @file
/// The command explore: the design space of partial fusion for a GPU and a layer, with the reason why each tile is in
/// or out. The model is in fusion_space.hpp.
#pragma once
#include <optional>
#include <string>

namespace convladder {

/// What `explore` was asked for.
struct ExploreCommand {
  std::optional<std::string> gpu;               ///< by name; default: this machine's, else the RTX 2080 Ti
  std::optional<std::string> smem, l2;          ///< bytes, as in 64K or 5.5M, instead of the GPU's
  std::optional<std::string> sms;               ///< multiprocessors, instead of the GPU's
  std::string type = "fp16";                    ///< or int8
  std::string shape = "c=64,h=224,w=224,k=64";  ///< r = s = 3 unless it says otherwise
  std::string m = "4";                          ///< outputs along a tile's side: 2, 4 or 6
  bool all = false, json = false;
};

/// Prints the design space. @return 0 @throws UsageError
int explore_command(const ExploreCommand& command);

}  // namespace convladder
