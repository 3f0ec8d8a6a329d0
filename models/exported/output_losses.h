#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "models/loss.h"
#include "models/loss_parts.h"
#include "recipe/setting.h"
#include "tensors/tree.h"

namespace tutti::exported {

// "'a', 'b'"
std::string quoted_list(const std::vector<std::string>& names);

// Of pairs, or of a map: the first items.
std::vector<std::string> names_of(const auto& all) {
  std::vector<std::string> names;
  for (const auto& [name, value] : all) names.push_back(name);
  return names;
}

// True if only the last dimension of outputs, of these sizes a sample, may be that of classes: else it is 1.
bool has_classes_last(const Shape& outputs, const Shape& target);

// [[model.losses]]: the losses of a program's named outputs. A single one counts as [model] loss does. Of
// several, each is the mean over the samples of a sample's mean over its targets, since all parts of a sum
// have one divisor: a sample without a target that counts has a loss of 0, and is a sample.
class OutputLosses {
 public:
  // Of outputs that are tensors: their shapes a sample, by name; a size of -1 is free.
  using Shapes = std::vector<std::pair<std::string, Shape>>;

  // Throws UserError for outputs and arrays that are not there, or do not fit each other. Samples that have
  // none of the targets, as in a prediction, are not looked at.
  OutputLosses(const Setting& losses, const Shapes& outputs, const SampleSpec& samples);

  std::vector<LossParts::Part> parts() const;
  bool is_sum() const { return losses_.size() > 1; }

  // See Model, and LossParts. Outputs: a tensor, or children by name.
  at::Tensor sum(const Outputs& outputs, const Batch& batch) const;
  std::vector<at::Tensor> means(const Outputs& outputs, const Batch& batch) const;
  at::Tensor sample_losses(const Outputs& outputs, const Batch& batch) const;
  double weight(const Batch& batch) const;
  bool takes_dense_targets() const;
  // Throws UserError if a loss has targets that `ignore_index` of [model] does not leave out.
  void require_ignoring(const Setting& ignore_index) const;
  void prepare(c10::Device where) const;
  bool uses_all_ranks() const;
  void set_ranks(AllRanks* ranks) const;
  LossParts::Compared compared(const Outputs& outputs, const Batch& batch, const std::string& output,
                               const std::string& target) const;

  // Of the first; null if the program computes it.
  const LossPtr& first_loss() const { return losses_.front().loss; }
  bool first_has_labels() const { return losses_.front().has_labels; }

 private:
  struct Term {
    Setting table;  // for errors
    std::string name, output, target;
    double weight = 1.0;
    LossPtr loss;  // null: the output is the loss
    bool has_labels = false;
  };

  void name_parts();
  void plan(Term& term, const Shapes& outputs, const SampleSpec& samples);
  at::Tensor output_of(const Outputs& outputs, const std::string& name) const;
  LossParts::Compared compared(const Term& term, const Outputs& outputs, const Batch& batch) const;
  at::Tensor mean(const Term& term, const Outputs& outputs, const Batch& batch) const;
  at::Tensor sample_losses(const Term& term, const Outputs& outputs, const Batch& batch) const;

  std::vector<Term> losses_;
  std::map<std::string, bool> classes_are_last_;  // by output
};

}  // namespace tutti::exported
