#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/surgery/options.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/checkpoint/run_state.h"
#include "models/hub/adapter.h"
#include "recipe/setting.h"
#include "tensors/param_view.h"

namespace tutti {

// A checkpoint's weights, those that evaluations use, under the names that they had before surgery. Adapters
// of LoRA are merged into the weights of their layers, W + scaling * B A, or written by themselves.
class ExportedWeights {
 public:
  // `trained`: the weights that are trained, also if evaluations use an average of EMA's. Throws UserError.
  ExportedWeights(const Disk& disk, const Checkpoint& checkpoint, bool trained);

  const RunState& state() const { return state_; }
  bool is_averaged() const { return averaged_; }
  std::size_t size() const { return sources_.size(); }
  std::map<std::string, Shape> shapes() const;

  // Writes a weight under another name too.
  void repeat(const std::string& name, const std::string& other);
  // By the exported names.
  TensorSource::Entries entries() const { return entries_of(sources_); }
  // A weight, with its adapter merged. Needs memory for the tensor, and for adapters of one layer. Throws
  // OperatingError.
  at::Tensor merged(const std::string& name) const;

  // Writes PEFT's folder (models/hub/adapter.h): adapters, and other layers that LoRA trains as a whole.
  // Returns the number of tensors. Throws UserError without LoRA.
  std::size_t write_adapter(Disk& disk, const std::string& folder) const;

 private:
  using Sources = std::map<std::string, std::string>;  // by the exported name: the checkpoint's

  // The adapter of a layer: names of the checkpoint's tensors.
  struct Adapter {
    std::string a, b;
  };

  std::string exported_name(const std::string& name) const;
  std::string source_of(const std::string& name) const;
  void read_lora(const Checkpoint& checkpoint);
  void add(const Checkpoint& checkpoint, const std::string& name);
  Setting model_section() const;
  NamedShapes model_shapes() const;  // with adapters, by the model's names
  const TensorSource::Entry& entry(const std::string& name) const { return tensors_.at(sources_.at(name)); }
  at::Tensor read(const std::string& source) const;
  TensorSource::Entries entries_of(const Sources& sources) const;

  const RunState state_;
  const CheckpointTensors tensors_;
  bool averaged_ = false;
  std::optional<LoraOptions> lora_;
  Setting lora_table_;
  bool fan_in_fan_out_ = false;
  Sources sources_;
  std::map<std::string, Adapter> adapters_;  // by the exported name of the weight
};

}  // namespace tutti
