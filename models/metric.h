#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensors/tree.h"

namespace tutti {

// A quantity over all samples of an evaluation or an epoch. The whole state is a vector of sums: adding the
// sums of all ranks gives the state over all ranks. Default: two sums, a numerator and a denominator.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual std::string name() const = 0;  // Composer's: "MulticlassAccuracy"
  // NAME in metrics/LABEL/NAME: name(), or a name given to tell two metrics of one kind apart.
  std::string measured_name() const { return measured_name_.empty() ? name() : measured_name_; }
  void set_measured_name(std::string name) { measured_name_ = std::move(name); }
  // outputs: the result of eval_forward; target: the labels of the batch.
  virtual void update(const at::Tensor& outputs, const at::Tensor& target) = 0;
  virtual double compute() const { return sums_[0] / sums_[1]; }
  std::vector<double>& sums() { return sums_; }
  // Ratio of this rank's samples to an even part of the batch: the weight of an update that counts once
  // whatever its size. Weighted so, the updates of all ranks add up to the mean of the batch.
  void set_share(double share) { share_ = share; }
  void reset() { std::fill(sums_.begin(), sums_.end(), 0.0); }

 protected:
  explicit Metric(std::size_t sums = 2) : sums_(sums, 0.0) {}
  double share() const { return share_; }

  std::vector<double> sums_;

 private:
  std::string measured_name_;
  double share_ = 1.0;
};
using MetricPtr = std::unique_ptr<Metric>;

}  // namespace tutti
