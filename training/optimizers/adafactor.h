#pragma once

#include <memory>

#include "training/optimizers/optimizer.h"
#include "training/optimizers/options.h"
#include "training/optimizers/square_sums.h"

namespace tutti {

// torch.optim.Adafactor (Shazeer and Stern 2018, arXiv:1804.04235): running squares of a matrix are kept for
// its rows and columns, over its last two dimensions.
//
// Means and norms are over whole parameters. For shards, sums over ranks are in float64: the result equals
// one rank's but for roundings of float64.
class Adafactor final : public Optimizer {
 public:
  Adafactor(const std::vector<ParamView>& views, Common common, const AdafactorOptions& options);

  const char* name() const override { return "Adafactor"; }

 private:
  bool sums_over_shards() const override { return true; }
  void update(Call call, const at::Tensor& grad_scale) override;
  void views_changed() override;

  // A member of a call, in the precision that is computed in.
  struct Member {
    size_t index;
    at::Tensor weight, grad;
    double newest;      // share of the newest squares in running squares
    at::Tensor summed;  // float64, of a matrix: its column sums of squares, then the sum of row_var
  };
  static SizesOf without_dimension(int64_t from_end);
  static SizesOf vector_sizes();
  template <class Work>
  int64_t for_members(const Call& call, const Work& work);
  void follow_gradient(const Member& member);
  void follow_columns(const Member& member);
  at::Tensor update_of(const Member& member);
  void apply(const Call& call, size_t place, const Member& member, at::Tensor update);
  void blend(at::Tensor& running, const at::Tensor& newest, double share);
  at::Tensor wide(const at::Tensor& tensor, const at::Tensor& scratch) const;

  AdafactorOptions options_;
  StateTensors& row_var_;
  StateTensors& col_var_;
  StateTensors& variance_;
  at::ScalarType dtype_ = at::kFloat;              // that is computed in
  at::Tensor update_, grad_, weight_;              // of the largest view; the latter two only for 16 bits
  at::Tensor squares_;                             // the same in float64
  at::Tensor blend_, sums_of_one_, few_[3];        // of the largest state: two in float64
  at::Tensor sums_;                                // Member::summed of all, on the host
  std::unique_ptr<SquareSums> weights_, updates_;  // of each member
};

}  // namespace tutti
