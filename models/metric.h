#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensors/late_numbers.h"
#include "tensors/norms.h"
#include "tensors/tree.h"

namespace tutti {

class Model;

// A quantity over all samples of an evaluation or an epoch. The whole state is a vector of sums: adding the
// sums of all ranks, after `gather` on each, gives the state over all ranks. Default: two sums, a numerator
// and a denominator.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual std::string name() const = 0;  // Composer's: "MulticlassAccuracy"
  // NAME in metrics/LABEL/NAME: name(), or a name that distinguishes two metrics of one kind.
  std::string measured_name() const { return measured_name_.empty() ? name() : measured_name_; }
  void set_measured_name(std::string name) { measured_name_ = std::move(name); }
  // outputs: the result of eval_forward; target: the labels of the batch.
  virtual void update(const at::Tensor& outputs, const at::Tensor& target) = 0;
  // The update for a model's batch. Default: the model's update_metric.
  virtual void measure(Model& model, const Batch& batch, const Outputs& outputs);
  // Default: the quotient of the sums; the mean over batches of their quotients for a metric of batch means.
  virtual double compute() const;
  // The numbers that are logged, if more than compute(): names behind measured_name() ("/0", "/1"), and
  // values.
  virtual std::vector<std::string> parts() const { return {""}; }
  virtual std::vector<double> values() const { return {compute()}; }
  // Waits for what a device has added.
  std::vector<double>& sums() {
    LateNumbers numbers;
    add_to(numbers);
    numbers.read();
    return sums_;
  }
  // The same by numbers.read().
  void add_to(LateNumbers& numbers);
  // The next updates are parts of batch `index` of `batches`. A metric of batch means has sums for each
  // batch, so that its parts, on any rank, give the value of the whole. Without a call all updates are of one
  // batch.
  void begin_batch(int64_t index, int64_t batches);
  virtual void reset() {
    std::fill(sums_.begin(), sums_.end(), 0.0);
    pending_.clear();
  }
  // From now on the number of sums is fixed, without `gather`: for sums of every step.
  virtual void fix_size() {}
  // True if the measurements are kept, so that `gather` has work. Their order must not matter then.
  virtual bool keeps_measurements() const { return false; }
  // For such a metric: brings the sums of all `world` ranks to one size, each rank's
  // numbers at places of their own. Called by all ranks alike; `sum` sums over ranks, and is empty for one
  // rank.
  virtual void gather(const SumOverRanks& /*sum*/, int /*rank*/, int /*world*/) {}
  // A remark about the value; "" mostly.
  virtual std::string note() const { return ""; }

 protected:
  explicit Metric(std::size_t sums = 2, bool batch_means = false)
      : sums_(sums, 0.0), size_(sums), batch_means_(batch_means) {}
  // Adds a scalar, or a flat tensor to as many sums from `sum` on, to the sums of the current update; of a
  // device without a wait. Throws UserError if there are fewer sums.
  void add(std::size_t sum, const at::Tensor& numbers);
  // Hands flat numbers to `take`, of a device later on.
  void add_late(std::size_t sum, const at::Tensor& numbers);
  // Adds numbers to the sums from `sum` on.
  virtual void take(std::size_t sum, std::span<const double> all);
  // The sums that an update adds to.
  std::span<double> current() { return std::span(sums_).subspan(first_, size_); }
  // The value that the sums of a batch stand for, with batch means.
  virtual double value_of(std::span<const double> sums) const { return sums[0] / sums[1]; }

  std::vector<double> sums_;

 private:
  std::vector<std::pair<std::size_t, at::Tensor>> pending_;  // numbers added by a device, and their first sum
  std::string measured_name_;
  std::size_t size_;  // of the sums, or of one batch's sums
  std::size_t first_ = 0;
  bool batch_means_;
};
using MetricPtr = std::unique_ptr<Metric>;

}  // namespace tutti
