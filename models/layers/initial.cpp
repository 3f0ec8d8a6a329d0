#include "models/layers/initial.h"

#include <cmath>

namespace tutti {

Init constant_init(double value) {
  return [value](at::Tensor& tensor, const at::Generator&) { tensor.fill_(value); };
}

Init normal_init(double standard_deviation) {
  return [=](at::Tensor& tensor, at::Generator generator) {
    tensor.normal_(0.0, standard_deviation, std::move(generator));
  };
}

Init uniform_init(double bound) {
  return [bound](at::Tensor& tensor, at::Generator generator) {
    tensor.uniform_(-bound, bound, std::move(generator));
  };
}

Init kaiming_uniform_init(int64_t fan_in) {
  return uniform_init(1.0 / std::sqrt(static_cast<double>(fan_in)));
}

Init kaiming_normal_init(int64_t fan_out) {
  return normal_init(std::sqrt(2.0 / static_cast<double>(fan_out)));
}

}  // namespace tutti
