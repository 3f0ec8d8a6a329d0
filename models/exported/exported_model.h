#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/exported/part.h"
#include "models/model.h"
#include "models/zoo/options.h"

namespace tutti {

// A program of torch.export, run node by node by libtorch's operators, in training by autograd. Its layers
// have the names of the program's modules. Initial values are the file's.
//
// Dropout, attention's too, and stochastic depth draw by the places of samples, and do so in training alone;
// batch norm's statistics are tutti's own. A program exported in evaluation mode drops in training too, if it
// has its dropout; one exported in training mode leaves batch norms alone that were in evaluation mode. All
// other random numbers come from libtorch's generator. Forward may write no other buffer.
class ExportedModel final : public exported::PartLayer<Classifier> {
 public:
  // Throws UserError.
  explicit ExportedModel(const ExportedOptions& options);

  // Throws UserError if samples lack an array that the program takes.
  void require_arrays(const SampleSpec& samples) const;

  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "Exported"; }

 private:
  ExportedModel(const ExportedOptions& options, const std::shared_ptr<const exported::Archive>& archive);
  ExportedModel(const ExportedOptions& options, const exported::Program& program,
                const std::shared_ptr<const exported::Archive>& archive);

  std::vector<std::string> arrays_;  // of the batch, for the program's inputs
  std::size_t prediction_ = 0;       // which output
};

}  // namespace tutti
