#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensors/tree.h"

namespace tutti {

// A quantity over all samples of an evaluation or an epoch. Its whole state is a vector of sums, so that the
// sums of ranks added together are the state over all of them.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual std::string name() const = 0;  // Composer's: "MulticlassAccuracy"
  // NAME of metrics/LABEL/NAME: its own name, unless it was given another to tell it from one of its kind.
  std::string measured_name() const { return measured_name_.empty() ? name() : measured_name_; }
  void set_measured_name(std::string name) { measured_name_ = std::move(name); }
  // outputs: what eval_forward gave; target: the batch's labels.
  virtual void update(const at::Tensor& outputs, const at::Tensor& target) = 0;
  virtual double compute() const = 0;
  virtual std::vector<double>& sums() = 0;
  // The samples of this rank's part of the batch over those of an even part: by it weighs an update that
  // counts as one, however many samples it has. So the ranks' parts come to their batch's mean.
  void set_share(double share) { share_ = share; }
  void reset() { std::fill(sums().begin(), sums().end(), 0.0); }

 protected:
  double share() const { return share_; }

 private:
  std::string measured_name_;
  double share_ = 1.0;
};
using MetricPtr = std::unique_ptr<Metric>;

}  // namespace tutti
