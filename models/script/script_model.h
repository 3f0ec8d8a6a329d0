#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/exported/program_model.h"
#include "models/script/script_layer.h"
#include "models/zoo/options.h"

namespace tutti {

// A TorchScript module (torch.jit.script or trace), whose functions tutti runs operator by operator. Its
// modules are layers with their names, and initial values are the file's.
//
// Dropout, batch norm and other random numbers are as in models/torch/own_operators.h. The attribute
// `training` is the pass's; a module that is in evaluation stays so if others are in training. Of a script
// that was traced in evaluation, dropout and batch norm are in training too.
class ScriptModel final : public ProgramModel {
 public:
  // Throws UserError.
  explicit ScriptModel(const ScriptOptions& options);

  // Throws UserError if samples lack an input. Runs the script on two samples of zeros to plan the targets
  // for [model] loss; a script that fails on them has no plan.
  void fit(const Setting& section, const SampleSpec& samples);

  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "TorchScript"; }

 private:
  using NamedOutputs = std::vector<std::pair<std::string, at::Tensor>>;
  explicit ScriptModel(const ScriptOptions& options, const std::shared_ptr<script::Script>& script);
  static std::vector<std::string> arrays_of(const ScriptOptions& options, const script::Script& script);
  void plan_for(const Setting& section, const SampleSpec& samples, const NamedOutputs& outputs);
  Batch zero_samples(const SampleSpec& samples) const;
  c10::IValue run(const Batch& batch);
  static NamedOutputs outputs_in(const c10::IValue& value);
  std::size_t loss_in(const NamedOutputs& outputs) const;
  std::size_t prediction_in(const NamedOutputs& outputs) const;

  std::shared_ptr<script::Script> script_;
  Slot& net_;
  std::vector<std::string> arrays_;
  std::string prediction_, loss_output_;
  bool losses_are_given_;  // [[model.losses]]
};

}  // namespace tutti
