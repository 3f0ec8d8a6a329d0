#include "training/callbacks/monitors/peak_flops.h"

#include <algorithm>
#include <vector>

#include "runtime/text.h"

namespace tutti {
namespace {

struct Device {
  std::vector<std::string> words;  // all are in the driver's name, in small letters
  double fp32 = 0;
  double fp16 = 0;
  double bf16 = 0;
  double fp8 = 0;
};

constexpr double kTera = 1e12;

// The first that fits; the H200's name does not tell its boards apart.
const std::vector<Device>& devices() {
  static const std::vector<Device> all = {
      {{"h200"}, 67, 989.5, 989.5, 1979},
      {{"h100", "pcie"}, 51, 756.5, 756.5, 1513},
      {{"h100", "hbm2e"}, 51, 756.5, 756.5, 1513},
      {{"h100", "hbm3"}, 67, 989.5, 989.5, 1979},
      {{"a100"}, 19.5, 312, 312},
      {{"a10"}, 31.2, 125, 125},
      {{"v100-sxm"}, 15.7, 125},
      {{"v100s-pcie"}, 16.4, 130},
      {{"v100-pcie"}, 14, 112},
      {{"t4"}, 8.1, 65},
  };
  return all;
}

bool is(const Device& device, const std::string& name) {
  return std::all_of(device.words.begin(), device.words.end(),
                     [&](const std::string& word) { return name.find(word) != std::string::npos; });
}

double peak_of(const Device& device, const std::string& precision) {
  if (precision == "fp32") return device.fp32;
  if (precision == "amp_fp16" || precision == "amp") return device.fp16;
  if (precision == "amp_bf16") return device.bf16;
  if (precision == "amp_fp8") return device.fp8;
  return 0;
}

}  // namespace

double peak_flops(const std::string& device_name, const std::string& precision) {
  const std::string name = lower_case(device_name);
  for (const Device& device : devices())
    if (is(device, name)) return kTera * peak_of(device, precision);
  return 0;
}

}  // namespace tutti
