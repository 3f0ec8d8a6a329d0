#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/exported/output_losses.h"
#include "models/loss_parts.h"
#include "models/model.h"
#include "runtime/error.h"

namespace tutti {

// A model that a file's program computes, maybe with its loss. Outputs are the prediction, [N, C, ...] with
// classes in dimension 1, where the program may have them in the last; with a loss of the program's own they
// are "prediction" and "loss". With [[model.losses]] they are all tensors that the program returns, by name
// and as they are; one without a name is a leaf.
class ProgramModel : public Classifier, public LossParts {
 public:
  at::Tensor loss(const Outputs& outputs, const Batch& batch) override;
  at::Tensor losses(const Outputs& outputs, const Batch& batch) override;
  bool takes_dense_targets() const override;
  void prepare_loss(c10::Device where) override;
  bool uses_all_ranks() const override;
  void set_ranks(AllRanks* ranks) override;
  double loss_weight(const Batch& batch) const override;
  std::vector<std::string> get_metrics(bool is_train) const override;
  void update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) override;

  std::vector<Part> loss_parts() const override;
  std::vector<at::Tensor> part_means(const Outputs& outputs, const Batch& batch) const override;
  Compared compared(const Outputs& outputs, const Batch& batch, const std::string& output,
                    const std::string& target) const override;

 protected:
  void set_has_loss() { has_loss_ = true; }
  bool has_loss() const { return has_loss_; }
  // [[model.losses]] are planned.
  bool has_losses() const { return losses_.has_value(); }
  // Plans the targets of [model] loss or of [[model.losses]]. `outputs`: their sizes a sample, -1 where one
  // is unknown; `prediction`: which has the scores. Throws UserError.
  void plan(const Setting& section, const SampleSpec& samples, const exported::OutputLosses::Shapes& outputs,
            std::size_t prediction);
  // The arrays of a batch that a program takes: `given` of the recipe, else all that are `needed`. `all`:
  // names of its arguments; `taker`: its name in errors. Throws UserError.
  static std::vector<std::string> input_arrays(const std::vector<std::string>& given,
                                               const std::vector<std::string>& needed,
                                               const std::vector<std::string>& all, const std::string& taker);
  // Places among the outputs `names`: of the output that `key` names, and of the prediction. `owner`: the
  // program's name in errors. Throws UserError.
  static std::size_t output_place(const std::vector<std::string>& names, const std::string& name,
                                  const char* key, const char* owner);
  static std::size_t prediction_place(const std::vector<std::string>& names, const std::string& prediction,
                                      bool losses_are_given, const char* owner);
  // `loss`: if the program computes it.
  TensorTree outputs_of(at::Tensor prediction, at::Tensor loss) const;
  // With [[model.losses]].
  static TensorTree named(std::vector<std::pair<std::string, at::Tensor>> outputs);

 private:
  void plan_losses(const Setting& section, const SampleSpec& samples,
                   const exported::OutputLosses::Shapes& outputs);
  void plan_prediction(const Setting& section, const SampleSpec& samples, Shape outputs);

  bool has_loss_ = false;
  bool classes_are_last_ = false;
  bool has_target_ = true;  // the data
  std::string prediction_;  // its name
  std::optional<exported::OutputLosses> losses_;
};

// A model of the file that `path` names, for samples like these. Throws UserError.
template <class Program>
std::shared_ptr<Program> make_program(const auto& options, const Setting& section,
                                      const SampleSpec& samples) {
  std::shared_ptr<Program> model;
  try {
    model = std::make_shared<Program>(options);
  } catch (const UserError& error) {
    section.at("path").fail(error);
  }
  model->fit(section, samples);
  return model;
}

}  // namespace tutti
