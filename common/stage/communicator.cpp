#include "common/stage/communicator.hpp"

namespace convladder {

Communicator::~Communicator() = default;
LocalRanks::~LocalRanks() = default;

}  // namespace convladder
