#pragma once

#include <cstdint>
#include <string>

#include "recipe/setting.h"
#include "runtime/disk.h"
#include "training/callbacks/options.h"
#include "training/engine/periodic_callback.h"

namespace tutti {

// Writes config.json and model.safetensors, for from_pretrained of transformers, into a folder at every
// interval and at the end of training: the weights that evaluations use. Rank 0 only. For models of
// hub_folder (models/hub/config.h) without surgery. With LoRA, the adapters alone, for
// PeftModel.from_pretrained (models/hub/adapter.h). llmfoundry.callbacks.HuggingFaceCheckpointer.
class HfCheckpointer final : public PeriodicCallback {
 public:
  // `key`: the callback's section, for errors; `model`: the resolved [model] section.
  HfCheckpointer(Disk& disk, const HfCheckpointerOptions& options, Setting key, Setting model);

  std::string name() const override { return "HfCheckpointer"; }
  // Throws UserError if the hub has no such model.
  void require(const State& state) const override;
  void fit_end(State& state, Logger&) override { interval_passed(state); }

 private:
  void interval_passed(const State& state) override;
  void write_configs(const State& state, const std::string& folder) const;

  Disk& disk_;
  const HfCheckpointerOptions options_;
  const Setting key_;
  const Setting model_;
  int64_t last_batch_ = -1;  // number of batches when a folder was last written
};

}  // namespace tutti
