#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/checkpoint/run_state.h"
#include "io/checkpoint/tensor_source.h"
#include "training/named_weights.h"
#include "training/trainee.h"

namespace tutti {

// The tensors of another program's checkpoint (io/foreign) under the trainee's names. Weights are matched as
// [model] weights are (NamedWeights); averages and the optimizer's state follow their weights. State of an
// optimizer that counts its parameters is matched by their order, and their shapes. Missing counts of updates
// are the checkpoint's.
class ImportedTensors final : public TensorSource {
 public:
  // `model`: the section, for weights_rename and weights_ignore. `disk` and `trainee` must outlive this.
  // Throws UserError with the checkpoint's path.
  ImportedTensors(const Disk& disk, const Checkpoint& checkpoint, const RunState& state,
                  const Trainee& trainee, const Setting& model);

  void read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const override;

  // Lines on what came over, and what did not and why.
  std::vector<std::string> report() const;

 private:
  using Names = std::map<std::string, std::string>;  // in the file -> the trainee's

  void add_weights();
  void add_averages();
  void add_moments();
  Names names_by_number() const;
  std::vector<std::string> trained_in_order() const;
  bool fit(const std::vector<std::string>& names, std::size_t first, std::size_t count) const;

  const std::string path_;
  const RunState& state_;
  const Trainee& trainee_;
  const CheckpointTensors tensors_;
  const NamedWeights weights_;
  Names names_;                               // of weights
  std::map<std::string, std::string> homes_;  // own name -> in the file; "": a count of updates
  std::vector<std::string> unused_;           // of the optimizer and averages
};

}  // namespace tutti
