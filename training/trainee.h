#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "io/checkpoint/tensor_source.h"
#include "models/model.h"
#include "models/zoo/factory.h"
#include "recipe/setting.h"
#include "runtime/log.h"
#include "tensors/device.h"
#include "tensors/rank_topology.h"
#include "tensors/tree.h"
#include "training/optimizers/optimizer.h"
#include "training/precision.h"

namespace tutti {

// Builds the model of a [model] section for samples of this kind. Programs may have their own factory.
using ModelFactory = std::function<std::shared_ptr<Model>(const Setting& section, const SampleSpec& samples)>;

// The model and its optimizer, in training.
struct Trainee {
  // The functions of Model of the same names, under the run's autocast. Metric::measure updates metrics.
  Outputs forward(const Batch& batch) const;
  at::Tensor loss_of(const Outputs& outputs, const Batch& batch) const;
  at::Tensor losses_of(const Outputs& outputs, const Batch& batch) const;
  Outputs eval_forward(const Batch& batch, std::optional<Outputs> outputs = std::nullopt) const;
  void update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) const;
  std::vector<Tokens> generate(const std::vector<Prompt>& prompts, const GenerationOptions& options) const;
  std::string closing_text(const TokenText& text, uint64_t seed) const;  // of models/generation.h
  // The outputs in evaluation mode for a batch that algorithms have changed, before training. Throws
  // UserError if the batch has an empty array or the model rejects it.
  Outputs try_forward(const Batch& batch) const;

  Device device;  // of all tensors
  Precision precision;
  std::shared_ptr<Model> model;
  std::vector<NamedParameter> parameters;
  std::vector<NamedBuffer> buffers;  // persistent buffers
  // [sharding] offload: see ParamView::offloaded_from. Without effect on CPUs.
  bool offloads_optimizer = false;
  bool offloads_parameters = false;  // of a share, and the optimizer's state
  RankTopology topology;             // its share: of the parameters, which this rank updates
  std::vector<ParamView> views;      // of the share, by parameter; gradients are set before each update
  std::unique_ptr<Optimizer> optimizer;
  std::set<std::string> removed;  // parameters and buffers that surgery in `build` took out of the model
  std::string weights_note;       // missing and unused tensors of [model] weights (load_initial_weights)
  std::string precision_note;     // which layers compute in another precision than autocast's
  int64_t surgeries = 0;          // how often follow_surgery found new parameters
  std::vector<RequiredAlgorithm> required_algorithms;  // of the run, for its checkpoints
  // Tensors of algorithms and callbacks (Stateful::state_tensors), which checkpoints save too:
  // "algorithms/EMA/fc.weight".
  std::vector<std::pair<std::string, at::Tensor>> listeners;
};

std::vector<at::Tensor> tensors_of(const Trainee& trainee);  // of all parameters
std::vector<std::string> names_of(const Trainee& trainee);   // of all parameters

// Builds a model on the meta device. Throws UserError, also if parameters and gradients, cut into so many
// pieces, need more memory than the machine has.
std::shared_ptr<Model> build_model(const Setting& section, const SampleSpec& spec,
                                   const ModelFactory& make_model, int pieces = 1);

// Builds and initialises the model and optimizer of a resolved recipe, in the trainee's precision. Parameters
// of [model] freeze are not trained. `operate` may then change the model while its parameters are on the meta
// device, before there is an optimizer. [model] weights are read then (training/initial_weights.h). Throws
// UserError.
void build(Trainee& trainee, const Setting& recipe, const SampleSpec& spec, uint64_t seed,
           const ModelFactory& make_model = tutti::make_model, const std::function<void()>& operate = {});

// Follows surgery on a model that is in training: initialises new tensors as `materialise`, in the trainee's
// precision, and lists parameters, buffers and views anew. Parameters that stay keep gradients, optimizer
// state and weight decay; adopted parameters stay; new parameters have new state. A custom loop may call the
// function at any time outside a step. A run needs no call: parameters may change until AFTER_LOAD, with the
// same names there, and not later.
void follow_surgery(Trainee& trainee, uint64_t seed);

// Called before each step, counted from 1; for debugging.
using StepObserver = std::function<void(int rank, int64_t step, const Trainee& trainee, const Batch& batch)>;

// The parts that this rank saves of all parameters, buffers, optimizer's and listeners' tensors: together the
// ranks save each number once. The pieces alias the tensors.
std::vector<CheckpointPiece> checkpoint_pieces(const Trainee& trainee);

// Differences allowed between a checkpoint and the trainee. Empty functions allow none.
struct RestoreFilter {
  std::function<bool(const std::string& name)> ignored = {};   // tensors that are not restored
  std::function<bool(const std::string& name)> optional = {};  // may be missing in the checkpoint
  // Called for each name that only the checkpoint or only the trainee has; if empty, the name is an error.
  Warn warn = {};
};

// Reads tensors into the trainee by name; parameters and optimizer state also by the name before surgery
// (Parameter::origin). If the trainee has a share, only its rows are read, into the views; whole parameters
// beside their views do not change. Throws UserError with the name of a tensor that is missing, unknown,
// present under both names, or of another shape. The tensors of algorithms and callbacks may be missing or
// unknown; missing tensors keep their values. `from`: names the source in errors.
void restore_tensors(Trainee& trainee, const TensorSource& tensors, const std::string& from,
                     const RestoreFilter& filter = {});
// As restore_tensors, but only parameters and buffers.
void restore_model(Trainee& trainee, const TensorSource& tensors, const std::string& from,
                   const RestoreFilter& filter = {});

}  // namespace tutti
