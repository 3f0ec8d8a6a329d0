#include "training/trainee.h"

#include <ATen/core/grad_mode.h>
#include <unistd.h>

#include <algorithm>
#include <iomanip>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "io/formats/dtypes.h"
#include "models/layers/layer_error.h"
#include "models/layers/lent_zeros.h"
#include "models/losses.h"
#include "models/zoo/catalog.h"
#include "runtime/error.h"
#include "tensors/autograd.h"
#include "tensors/memory/ledger.h"
#include "tensors/memory/torch_error.h"
#include "training/initial_weights.h"
#include "training/saved_tensors.h"

namespace tutti {
namespace {

constexpr double kBytesPerGb = 1e9;

bool belongs_to_listener(const std::string& name) {
  return name.starts_with("algorithms/") || name.starts_with("callbacks/");
}

// Reads what this rank has of a tensor.
void read_in(const SavedTensor& to, const TensorSource& from, const std::string& name,
             const std::string& source) {
  const Shape& shape = from.at(name).shape;
  if (to.shape != shape)
    throw UserError({source}, "'" + name + "' is " + shape_text(shape) + ", the model's is " +
                                  shape_text(to.shape) + "; the tensor is another model's");
  from.read(name, to.region, to.tensor);
}

// A name that only the checkpoint or only the trainee has.
void mismatch(const RestoreFilter& filter, const std::string& from, const std::string& what) {
  if (!filter.warn) throw UserError({from}, what + "; the file is of another model or optimizer");
  filter.warn(from + ": " + what);
}

bool holds(const std::function<bool(const std::string&)>& rule, const std::string& name) {
  return rule && rule(name);
}

// Restores tensors with names that begin with `part`.
void restore(Trainee& trainee, const TensorSource& tensors, const std::string& from, std::string_view part,
             const RestoreFilter& filter) {
  const std::vector<SavedTensor> all = saved_tensors(trainee);
  const SavedNames names(all);
  const auto either = [](const auto& rule, const SavedTensor& saved) {
    return holds(rule, saved.name) || (!saved.before.empty() && holds(rule, saved.before));
  };
  std::set<std::string> used;
  for (const SavedTensor& saved : all) {
    if (!saved.name.starts_with(part) || either(filter.ignored, saved)) continue;
    const std::string name = names.find(tensors, saved, from);
    if (!name.empty()) {
      if (!saved.constant) read_in(saved, tensors, name, from);
      used.insert(name);
    } else if (!saved.constant && !belongs_to_listener(saved.name) && !either(filter.optional, saved)) {
      mismatch(filter, from, "there is no " + saved.text() + ", which the recipe needs");
    }
  }
  for (const auto& [name, entry] : tensors.entries())
    if (name.starts_with(part) && !used.count(name) && !belongs_to_listener(name) &&
        !holds(filter.ignored, name))
      mismatch(filter, from, "it holds '" + name + "', which the recipe does not have");
}

// Checks memory for a rank's parameters and gradients. The system overcommits, and would kill the process
// later.
void require_memory(const Setting& section, Model& model, int pieces) {
  HeldBytes needed;
  needed[HeldFor::kParameters] = needed[HeldFor::kGradients] =
      bytes_of(parameters(model), [](const auto& named) { return named.parameter->tensor; }) / pieces;
  const double bytes = needed.total();
  const double available =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes <= available) return;
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << "its parameters and gradients need " << bytes / kBytesPerGb
       << " GB, this machine has " << available / kBytesPerGb << " GB";
  section.fail(text.str());
}

void require_loss_that_ignores(const Setting& section) {
  const ModelKeys keys = ModelKeys::kind().read(section);
  const Setting& loss = keys.loss;
  if (keys.ignore_index == kIgnoredTarget || loss.is_none() || make_loss(loss)->leaves_targets_out()) return;
  keys.ignore_index.fail((loss.is_text() ? loss : loss.at("kind")).text() +
                         " leaves no target out: an ignored one belongs to no class; cross_entropy does");
}

// New parameters of surgery are trained.
void freeze(Model& model, const Setting& patterns) {
  const auto all = parameters(model);
  for (const Setting& pattern : patterns.array()) {
    bool matches = false;
    for (const auto& saved : all) {
      if (!matches_pattern(pattern.text(), saved.name)) continue;
      saved.parameter->trained = false;
      matches = true;
    }
    if (!matches) patterns.fail("no parameter matches " + pattern.text());
  }
}

void require_trained(Model& model, const Setting& patterns) {
  if (std::ranges::none_of(parameters(model), [](const auto& one) { return one.parameter->trained; }))
    patterns.fail("no parameter is left to train");
}

// Names before surgery of the tensors that are in the model.
std::set<std::string> names_before_surgery(Model& model) {
  std::set<std::string> names;
  for (const auto& named : parameters(model)) names.insert(named.parameter->origin);
  for (const auto& named : buffers(model)) names.insert(named.buffer->origin);
  return names;
}

// The index of the view of this parameter, if it is of the same shape.
std::optional<size_t> find_view(const std::vector<NamedParameter>& parameters,
                                const std::vector<ParamView>& views, const Parameter& parameter) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool same =
        parameters[i].parameter.get() == &parameter || views[i].tensor.is_same(parameter.tensor);
    if (same && views[i].shape == parameter.tensor.sizes()) return i;
  }
  return std::nullopt;
}

// The rows of a new parameter; the whole has memory for a moment, and stays on the meta device.
ParamView rows_of_new(const NamedParameter& named, const Trainee& trainee, const InitialValues& values) {
  at::Tensor whole = values.of(named);
  cast_parameter(whole, trainee.precision);
  whole.set_requires_grad(named.parameter->trained && at::isFloatingType(whole.scalar_type()));
  ParamView view = shared_view(named.name, whole, trainee.topology.share);
  if (!trainee.device.is_cpu() && !trainee.offloads_parameters) {
    const at::NoGradGuard no_grad;
    view.tensor = trainee.device.take(view.tensor).set_requires_grad(view.tensor.requires_grad());
  }
  return view;
}

// The view of a rank that has a share: `before` if the parameter had one.
ParamView shared_view_of(const NamedParameter& named, const Trainee& trainee, const ParamView* before,
                         const InitialValues& values) {
  ParamView view = before ? *before : rows_of_new(named, trainee, values);
  view.name = named.name;
  named.parameter->tensor.set_requires_grad(view.tensor.requires_grad());
  return view;
}

// Lists the model's tensors, and gives new ones their initial values, in the trainee's precision. Returns for
// each view the index of the earlier one.
Optimizer::Kept list_tensors(Trainee& trainee, uint64_t seed) {
  const bool shared = trainee.topology.share.pieces > 1;
  const InitialValues values(*trainee.model, seed);
  if (shared) {
    materialise_buffers(*trainee.model, seed, trainee.device);
  } else {
    materialise(*trainee.model, seed, trainee.device);
    cast(*trainee.model, trainee.precision);
  }
  const auto earlier = std::exchange(trainee.parameters, parameters(*trainee.model));
  const auto views = std::exchange(trainee.views, {});
  TUTTI_ASSERT(earlier.size() == views.size(), "a trainee needs a view of each parameter");
  Optimizer::Kept kept;
  for (const auto& named : trainee.parameters) {
    kept.push_back(find_view(earlier, views, *named.parameter));
    const ParamView* before = kept.back() ? &views[*kept.back()] : nullptr;
    ParamView& view = trainee.views.emplace_back(shared ? shared_view_of(named, trainee, before, values)
                                                        : whole_view(named.name, named.parameter->tensor));
    view.trained = named.parameter->trained;
    if (trainee.offloads_optimizer && !trainee.device.is_cpu()) view.offloaded_from = trainee.device.where;
    if (before) view.grad = before->grad;
  }
  if (shared) cast(*trainee.model, trainee.precision);
  trainee.model->prepare_loss(trainee.device.where);
  trainee.buffers.clear();
  for (const auto& named : buffers(*trainee.model))
    if (named.buffer->persistent) trainee.buffers.push_back(named);
  return kept;
}

// The part of a tensor that this rank saves: of ranks with the same region each saves some rows.
std::optional<CheckpointPiece> piece_to_save(const SavedTensor& saved, const Share& share) {
  const AxisRank copy = copy_of(saved.placement, share);
  CheckpointPiece piece{
      saved.name,  saved.shape, saved.region.offset, saved.region.extent, saved.tensor.scalar_type(),
      saved.tensor};
  if (saved.shape.empty()) return copy.index == 0 ? std::optional(piece) : std::nullopt;
  const TensorRegion part = split(saved.region, 0, copy);
  const bool saves_empty = saved.shape[0] == 0 && share.index == 0 && share.replica == 0;
  if (part.extent[0] == 0 && !saves_empty) return std::nullopt;
  piece.offset = part.offset;
  piece.extent = part.extent;
  piece.tensor = saved.tensor.narrow(0, part.offset[0] - saved.region.offset[0], part.extent[0]);
  return piece;
}

std::string precision_note_of(const Trainee& trainee) {
  const auto& dtype = trainee.precision.autocast;
  if (!dtype || !trainee.device.where.is_cpu() || has_lstm_on_cpus(*dtype)) return "";
  for (const auto& [name, layer] : layers(*trainee.model))
    if (std::string_view(layer->kind()).ends_with("LSTM"))
      return "LSTMs compute in float32: this processor has none of " + dtype_name(*dtype);
  return "";
}

}  // namespace

Outputs Trainee::forward(const Batch& batch) const try {
  const AutocastScope autocast(precision.autocast, device);
  return model->forward(batch);
} catch (const std::exception& error) {
  throw_from_model(model->kind(), error);
}

Outputs Trainee::try_forward(const Batch& batch) const {
  for (const auto& [name, array] : batch.leaves())
    if (array.numel() == 0) throw UserError("nothing of '" + name + "' would be left");
  const at::NoGradGuard no_grad;
  const LentZeros zeros(*model, device);
  const EvaluationMode evaluating(*model);
  try {
    return forward(device.take(batch));
  } catch (const std::exception& error) {
    throw_run_error(error, "the model rejects such a batch: ");
  }
}

at::Tensor Trainee::loss_of(const Outputs& outputs, const Batch& batch) const try {
  const AutocastScope autocast(precision.autocast, device);
  return mean_loss(*model, outputs, batch);
} catch (const std::exception& error) {
  throw_from_model(std::string("the loss of ") + model->kind(), error);
}

at::Tensor Trainee::losses_of(const Outputs& outputs, const Batch& batch) const {
  const AutocastScope autocast(precision.autocast, device);
  return model->losses(outputs, batch);
}

Outputs Trainee::eval_forward(const Batch& batch, std::optional<Outputs> outputs) const try {
  const AutocastScope autocast(precision.autocast, device);
  return model->eval_forward(batch, std::move(outputs));
} catch (const std::exception& error) {
  throw_from_model(std::string("eval_forward of ") + model->kind(), error);
}

void Trainee::update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) const try {
  const AutocastScope autocast(precision.autocast, device);
  metric.measure(*model, batch, outputs);
} catch (const std::exception& error) {
  throw_from_model("the metric " + metric.measured_name(), error);
}

std::vector<Tokens> Trainee::generate(const std::vector<Prompt>& prompts,
                                      const GenerationOptions& options) const {
  const AutocastScope autocast(precision.autocast, device);
  return model->generate(prompts, options);
}

std::string Trainee::closing_text(const TokenText& text, uint64_t seed) const {
  const AutocastScope autocast(precision.autocast, device);
  return tutti::closing_text(*model, text, seed);
}

std::vector<at::Tensor> tensors_of(const Trainee& trainee) {
  std::vector<at::Tensor> tensors;
  for (const auto& named : trainee.parameters) tensors.push_back(named.parameter->tensor);
  return tensors;
}

std::vector<std::string> names_of(const Trainee& trainee) {
  std::vector<std::string> names;
  for (const auto& named : trainee.parameters) names.push_back(named.name);
  return names;
}

std::shared_ptr<Model> build_model(const Setting& section, const SampleSpec& spec,
                                   const ModelFactory& make_model, int pieces) try {
  auto model = make_model(section, spec);
  if (const Setting loss = ModelKeys::kind().read(section).loss; !loss.is_none()) choose_loss(*model, loss);
  require_loss_that_ignores(section);
  require_memory(section, *model, pieces);
  return model;
} catch (const RunError&) {
  throw;
} catch (const std::exception& error) {
  section.fail(run_error(error, "it cannot be built: "));
}

void build(Trainee& trainee, const Setting& recipe, const SampleSpec& spec, uint64_t seed,
           const ModelFactory& make_model, const std::function<void()>& operate) {
  const Setting& model = recipe.at("model");
  trainee.model = build_model(model, spec, make_model, trainee.topology.share.pieces);
  note_names(*trainee.model);
  const ModelKeys keys = ModelKeys::kind().read(model);
  if (!keys.freeze.is_none()) freeze(*trainee.model, keys.freeze);
  trainee.removed = names_before_surgery(*trainee.model);
  if (operate) operate();
  if (!keys.freeze.is_none()) require_trained(*trainee.model, keys.freeze);
  for (const std::string& name : names_before_surgery(*trainee.model)) trainee.removed.erase(name);
  require_positions(model, *trainee.model, spec);
  list_tensors(trainee, seed);
  trainee.precision_note = precision_note_of(trainee);
  if (!keys.weights.is_none()) trainee.weights_note = load_initial_weights(trainee, model, keys.weights);
  trainee.optimizer = make_optimizer(recipe.at("optimizer"), trainee.views);
}

void follow_surgery(Trainee& trainee, uint64_t seed) {
  std::vector<at::Tensor> frozen;  // since training began
  for (const auto& named : trainee.parameters)
    if (!named.parameter->tensor.requires_grad()) frozen.push_back(named.parameter->tensor);
  const auto names = [&trainee] {
    std::vector<std::pair<std::string, const void*>> all;
    for (const auto& view : trainee.views) all.emplace_back(view.name, view.tensor.unsafeGetTensorImpl());
    return all;
  };
  const auto before = names();
  const Optimizer::Kept kept = list_tensors(trainee, seed);
  for (at::Tensor& tensor : frozen) tensor.set_requires_grad(false);
  if (trainee.optimizer) trainee.optimizer->follow(kept);
  if (names() != before) ++trainee.surgeries;
}

std::vector<CheckpointPiece> checkpoint_pieces(const Trainee& trainee) {
  std::vector<CheckpointPiece> pieces;
  for (const SavedTensor& saved : saved_tensors(trainee))
    if (auto piece = piece_to_save(saved, trainee.topology.share)) pieces.push_back(std::move(*piece));
  return pieces;
}

void restore_model(Trainee& trainee, const TensorSource& tensors, const std::string& from,
                   const RestoreFilter& filter) {
  restore(trainee, tensors, from, kModelPrefix, filter);
}

void restore_tensors(Trainee& trainee, const TensorSource& tensors, const std::string& from,
                     const RestoreFilter& filter) {
  restore(trainee, tensors, from, "", filter);
}

}  // namespace tutti
