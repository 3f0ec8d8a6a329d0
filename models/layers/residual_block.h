#pragma once

#include <optional>
#include <string>

#include "models/layers/layer.h"

namespace tutti {

// A block with a shortcut past its main branch: join(main(x), shortcut(x)). Stochastic depth may leave out
// the main branch (algorithms/surgery/stochastic_depth.h), also of blocks of your own that derive from this
// class and name their branches.
class ResidualBlock : public Layer {
 public:
  // The way to skip the main branch in training, with probability `rate`: for the whole batch on all ranks
  // (the output is then `skip`), or for single samples (a sample's branch is zeros; no draws if the rate is
  // 0). In evaluation the branch counts 1 - rate. Huang et al. 2016, arXiv:1603.09382.
  struct Drop {
    double rate = 0.0;
    bool each_sample = false;
    std::string name;  // that random numbers are drawn by: the block's dotted path
  };

  TensorTree forward(const TensorTree& input) final;
  void set_drop(Drop drop) { drop_ = std::move(drop); }
  void set_drop_rate(double rate) { drop_.value().rate = rate; }
  const std::optional<Drop>& drop() const { return drop_; }  // empty: never left out

 protected:
  virtual at::Tensor main(const at::Tensor& x) = 0;
  virtual at::Tensor shortcut(const at::Tensor& x) { return x; }
  virtual at::Tensor join(at::Tensor main, const at::Tensor& shortcut);  // default: the sum
  virtual at::Tensor skip(const at::Tensor& x) { return shortcut(x); }   // the output without main branch

 private:
  at::Tensor joined(const at::Tensor& x);
  at::Tensor kept_samples(const at::Tensor& main) const;

  std::optional<Drop> drop_;
};

}  // namespace tutti
