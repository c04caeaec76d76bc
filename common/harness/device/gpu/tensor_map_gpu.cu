/// @file
/// Tensor maps of hopper.hpp, encoded by the driver.
#include <string>

#include "common/harness/device/device.hpp"
#include "common/kernel/hopper.hpp"

namespace convladder {

TensorMap make_tensor_map(const void* global, const TensorForm& form) {
  check_tensor(global, form);
  TensorMap map;
  const cudaError_t status = encode_tensor_map(&map, global, form);
  if (status == cudaErrorNotSupported) throw MachineError("the NVIDIA driver has no tensor maps: update it");
  if (status != cudaSuccess)
    throw DeviceError("the NVIDIA driver refuses the tensor map: error " + std::to_string(status));
  return map;
}

}  // namespace convladder
