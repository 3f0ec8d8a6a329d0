#pragma once

#include "training/optimizers/options.h"
#include "training/optimizers/partwise_optimizer.h"

namespace tutti {

// torch.optim.Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): the momentum of a matrix is
// orthogonalised by Newton-Schulz iterations in bfloat16. Kernels of convolutions count as matrices of
// [filters, all else], as in Jordan's code. Other parameters, and parameters with names of `adamw_match`, are
// updated by AdamW with the keys adamw_*, as in Jordan's MuonWithAuxAdam.
//
// Shards of a matrix are gathered by a sum over ranks, and each rank orthogonalises the whole: results have
// the bits of one rank.
class Muon final : public PartwiseOptimizer {
 public:
  Muon(const std::vector<ParamView>& views, Common common, const MuonOptions& options);

  const char* name() const override { return "Muon"; }

 private:
  bool sums_over_shards() const override { return true; }
  void update(Call call, const at::Tensor& grad_scale) override;
  void update_part(const InParts::Part& part, const Call& call, size_t view) override;
  void views_changed() override;
  static SizesOf matrix_sizes(const MuonOptions& options, bool only_matrices);
  void update_matrix(const Call& call, const at::Tensor& grad_scale);
  void gather(const ParamView& view, const at::Tensor& own);
  void orthogonalise(int64_t rows, int64_t columns);
  void round(const at::Tensor& product);

  MuonOptions options_;
  StateTensors& momentum_;  // of matrices
  StateTensors& exp_avg_;   // of others
  StateTensors& exp_avg_sq_;
  at::Tensor own_, weight_;                 // float32, of the largest view; weight_ only for 16 bits
  at::Tensor whole_;                        // float64, of the largest matrix, if ranks have its rows
  at::Tensor matrix_;                       // bfloat16, of the largest matrix
  at::Tensor iterate_[2], gram_[2], norm_;  // numbers in bfloat16, of it
};

}  // namespace tutti
