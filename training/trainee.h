#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "models/model.h"
#include "models/zoo/factory.h"
#include "recipe/setting.h"
#include "tensors/tree.h"
#include "training/optimizers/optimizer.h"
#include "training/precision.h"

namespace tutti {

// Builds the model that [model] describes to fit the samples; a program with a model of its own passes
// another.
using ModelFactory = std::function<std::shared_ptr<Model>(const Setting& section, const SampleSpec& samples)>;

// What is trained, and what a checkpoint holds of it.
struct Trainee {
  Precision precision;
  std::shared_ptr<Model> model;
  std::vector<NamedParameter> parameters;
  std::vector<NamedBuffer> buffers;  // the persistent ones
  std::vector<ParamView> views;  // of the parameters, in their order; gradients are set before each update
  std::unique_ptr<Optimizer> optimizer;
  // Of algorithms and callbacks, whose state a checkpoint holds too: "algorithms/EMA/fc.weight".
  std::vector<std::pair<std::string, at::Tensor>> listeners;
};

// The model on the meta device. Throws UserError, also where this machine's memory is too small for it.
std::shared_ptr<Model> build_model(const Setting& section, const SampleSpec& spec,
                                   const ModelFactory& make_model);

// Builds and initialises model and optimizer from a resolved recipe; [model] weights are read by parameter
// name. `operate` may change the model while its parameters are on the meta device and there is no optimizer.
// Throws UserError.
void build(Trainee& trainee, const Setting& recipe, const SampleSpec& spec, uint64_t seed,
           const ModelFactory& make_model = tutti::make_model, const std::function<void()>& operate = {});

// Is shown what is about to be trained, and on what, before step `step` (from 1): for a debugger's eyes.
using StepObserver = std::function<void(int rank, int64_t step, const Trainee& trainee, const Batch& batch)>;

// This rank's rows of every parameter, buffer and optimizer tensor; they alias the live ones.
std::vector<CheckpointPiece> checkpoint_pieces(const Trainee& trainee, int world, int rank);

// What a checkpoint and the trainee need not have alike.
struct RestoreFilter {
  std::function<bool(const std::string& name)> ignored = {};   // tensors that stay as they are
  std::function<bool(const std::string& name)> optional = {};  // those that the checkpoint need not have
  // Where names that only one of the two has are no error: is told each.
  std::function<void(const std::string& what)> tell = {};
};

// Copies whole tensors in, by name. Throws UserError naming the first tensor that is missing, left over, or
// of another shape: a checkpoint of another model. Algorithms and callbacks may have come or gone: those that
// the checkpoint knows nothing of keep what they have.
void restore_tensors(Trainee& trainee, const std::map<std::string, at::Tensor>& tensors,
                     const std::string& from, const RestoreFilter& filter = {});
// The same of parameters and buffers alone: the optimizer's part is passed over.
void restore_model(Trainee& trainee, const std::map<std::string, at::Tensor>& tensors,
                   const std::string& from, const RestoreFilter& filter = {});

}  // namespace tutti
