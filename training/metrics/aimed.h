#pragma once

#include <string>
#include <utility>

#include "models/loss_parts.h"
#include "models/metric.h"
#include "recipe/setting.h"

namespace tutti {

// Which output of a model a metric compares with which array of the batch: `output` and `target` of its
// table.
class Aim {
 public:
  explicit Aim(const Setting& keys) : keys_(keys) {}
  bool given() const { return keys_.has("output") || keys_.has("target"); }
  // Throws UserError at the line of the key.
  LossParts::Compared compared(const Model& model, const Batch& batch, const Outputs& outputs) const;

 private:
  Setting keys_;
};

// A metric with an aim.
template <class Base>
class Aimed final : public Base {
 public:
  template <class... Args>
  explicit Aimed(Aim aim, Args&&... args) : Base(std::forward<Args>(args)...), aim_(std::move(aim)) {}

  void measure(Model& model, const Batch& batch, const Outputs& outputs) override {
    const auto [output, target] = aim_.compared(model, batch, outputs);
    this->update(output, target);
  }

 private:
  Aim aim_;
};

}  // namespace tutti
