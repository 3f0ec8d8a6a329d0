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
  std::string why_unused(const std::string& moment, const Names& names) const;  // "": used
  std::string why_not_counted(const std::vector<std::string>& trained) const;
  std::vector<std::string> left_of_optimizer() const;
  Names names_by_number();
  std::vector<std::string> trained_in_order() const;
  bool fit(const std::vector<std::string>& names, std::size_t first, std::size_t count) const;

  const std::string path_;
  const RunState& state_;
  const Trainee& trainee_;
  const CheckpointTensors tensors_;
  const NamedWeights weights_;
  Names names_;                               // of weights
  std::map<std::string, std::string> homes_;  // own name -> in the file; "": a count of updates
  std::map<std::string, Shape> known_;        // by name, also before surgery: tensors of the trainee
  // By reason.
  std::map<std::string, std::vector<std::string>> unused_moments_, unused_averages_;
  std::string uncounted_;  // why state by number is of no parameters
};

}  // namespace tutti
