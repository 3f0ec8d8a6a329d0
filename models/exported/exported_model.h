#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/exported/output_losses.h"
#include "models/exported/part.h"
#include "models/loss_parts.h"
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
//
// Outputs are the prediction, [N, C, ...] with classes in dimension 1, where the program may have them in the
// last; with a loss of the program's own they are "prediction" and "loss". With [[model.losses]] they are all
// tensors that the program returns, by name and as they are; one without a name is a leaf.
class ExportedModel final : public exported::PartLayer<Classifier>, public LossParts {
 public:
  // Throws UserError.
  explicit ExportedModel(const ExportedOptions& options);

  // Throws UserError if samples do not have what the program takes. Plans the targets of losses.
  void fit(const Setting& section, const SampleSpec& samples);

  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "Exported"; }
  at::Tensor loss(const Outputs& outputs, const Batch& batch) override;
  at::Tensor losses(const Outputs& outputs, const Batch& batch) override;
  bool takes_dense_targets() const override;
  void prepare_loss(c10::Device where) override;
  double loss_weight(const Batch& batch) const override;
  std::vector<std::string> get_metrics(bool is_train) const override;
  void update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) override;

  std::vector<Part> loss_parts() const override;
  std::vector<at::Tensor> part_means(const Outputs& outputs, const Batch& batch) const override;
  Compared compared(const Outputs& outputs, const Batch& batch, const std::string& output,
                    const std::string& target) const override;

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

  TensorTree named(const exported::Values& found) const;
  void fit_prediction(const Setting& section, const SampleSpec& samples);
  void fit_losses(const Setting& section, const SampleSpec& samples);

  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::size_t prediction_ = 0;       // which output
  std::optional<std::size_t> loss_;  // likewise
  bool classes_are_last_ = false;
  bool has_target_ = true;  // the data
  std::optional<exported::OutputLosses> losses_;
};

}  // namespace tutti
