#pragma once

#include <string>

namespace tutti {

// Floating-point operations a second that a GPU's maker promises (NVIDIA's data sheets, dense) at a precision
// ("fp32", "amp_bf16"), by the name that its driver gives ("NVIDIA A100-SXM4-40GB"). 0 where not known.
double peak_flops(const std::string& device_name, const std::string& precision);

}  // namespace tutti
