#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/exported/part.h"
#include "models/exported/program_model.h"
#include "models/zoo/options.h"

namespace tutti {

// A program of torch.export, run node by node by libtorch's operators, in training by autograd. Its layers
// have the names of the program's modules. Initial values are the file's.
//
// Dropout and other random numbers are as in models/torch/own_operators.h, those of alpha dropout and
// bernoulli from libtorch's generator; batch norms are layers. A program exported in evaluation mode drops in
// training too, if the program has its dropout; of a program exported in training mode, batch norms that were
// in evaluation mode stay so. Forward may write no other buffer.
class ExportedModel final : public exported::PartLayer<ProgramModel> {
 public:
  // Throws UserError.
  explicit ExportedModel(const ExportedOptions& options);

  // Throws UserError if samples do not have what the program takes. Plans the targets of losses.
  void fit(const Setting& section, const SampleSpec& samples);

  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "Exported"; }

 private:
  using Meta = exported::Program::Meta;
  struct Input {
    std::string name;   // of forward's argument
    std::string array;  // of the batch
    Meta meta;
  };
  struct Output {
    std::string name;  // "" if the program returns a tensor
    std::size_t place;
    Meta meta;
  };

  ExportedModel(const ExportedOptions& options, const std::shared_ptr<const exported::Archive>& archive);
  ExportedModel(const ExportedOptions& options, const exported::Program& program,
                const std::shared_ptr<const exported::Archive>& archive);
  void require(const Input& input, const SampleSpec& samples) const;

  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::size_t prediction_ = 0;       // which output
  bool writes_in_place_ = false;     // into some tensor, which may be an input
  std::optional<std::size_t> loss_;  // likewise
};

}  // namespace tutti
