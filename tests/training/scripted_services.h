#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tensors/norms.h"
#include "training/rank_services.h"

namespace tutti {

// Services with functions of the test's own.
struct ScriptedServices final : RankServices {
  SumOverRanks of_shards, of_ranks;                                   // empty: no other ranks
  std::function<std::optional<std::string>(const Work& work)> trial;  // empty: a single rank's
  bool together = false;                                              // ranks evaluate each batch together

  bool shards() const override { return static_cast<bool>(of_shards); }
  void sum_over_shards(const at::Tensor& values) override { of_shards(values); }
  void sum_over_ranks(const at::Tensor& values) override {
    if (of_ranks) of_ranks(values);
  }
  bool evaluates_together() const override { return together; }
  std::optional<std::string> attempt(const Work& work) override {
    return trial ? trial(work) : RankServices::attempt(work);
  }
};

}  // namespace tutti
