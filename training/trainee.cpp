#include "training/trainee.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <unistd.h>

#include <iomanip>
#include <new>
#include <set>
#include <sstream>

#include "io/checkpoint/weights.h"
#include "runtime/error.h"
#include "tensors/autograd.h"
#include "tensors/torch_error.h"

namespace tutti {
namespace {

constexpr double kBytesPerGb = 1e9;

// The tensors of a checkpoint, by name.
std::vector<std::pair<std::string, at::Tensor>> saved_tensors(const Trainee& trainee) {
  std::vector<std::pair<std::string, at::Tensor>> saved;
  for (const auto& one : trainee.parameters)
    saved.emplace_back(std::string(kModelPrefix) + one.name, one.parameter->tensor.detach());
  for (const auto& one : trainee.buffers)
    saved.emplace_back(std::string(kModelPrefix) + one.name, one.buffer->tensor);
  for (const auto& one : trainee.optimizer->state())
    saved.emplace_back(std::string(kOptimizersPrefix) + one.view->name + "/" + one.name, one.tensor);
  saved.insert(saved.end(), trainee.listeners.begin(), trainee.listeners.end());
  return saved;
}

bool of_listener(const std::string& name) {
  return name.starts_with("algorithms/") || name.starts_with("callbacks/");
}

void copy_in(at::Tensor to, const at::Tensor& from, const std::string& name, const std::string& source) {
  if (to.sizes() != from.sizes())
    throw UserError(source + ": '" + name + "' is " + shape_text(from.sizes()) + ", the model's is " +
                    shape_text(to.sizes()) + "; this is another model's");
  to.copy_(from);
}

// A name that only the checkpoint or only the trainee has.
void mismatch(const RestoreFilter& filter, const std::string& from, const std::string& what) {
  if (!filter.warn) throw UserError(from + ": " + what + "; this is another model's or optimizer's");
  filter.warn(from + ": " + what);
}

bool holds(const std::function<bool(const std::string&)>& rule, const std::string& name) {
  return rule && rule(name);
}

// Restores tensors with names that begin with `part`.
void restore(Trainee& trainee, const std::map<std::string, at::Tensor>& tensors, const std::string& from,
             const std::string& part, const RestoreFilter& filter) {
  const at::NoGradGuard no_grad;
  std::set<std::string> wanted;
  for (const auto& [name, to] : saved_tensors(trainee)) {
    if (!name.starts_with(part) || holds(filter.ignored, name)) continue;
    const auto found = tensors.find(name);
    if (found != tensors.end()) {
      copy_in(to, found->second, name, from);
      wanted.insert(name);
    } else if (!of_listener(name) && !holds(filter.optional, name)) {
      mismatch(filter, from, "there is no '" + name + "', which the recipe needs");
    }
  }
  for (const auto& [name, tensor] : tensors)
    if (!wanted.count(name) && !of_listener(name) && !holds(filter.ignored, name))
      mismatch(filter, from, "it holds '" + name + "', which the recipe does not have");
}

void load_initial_weights(Trainee& trainee, const std::string& path) {
  const auto tensors = read_weights(path);
  const at::NoGradGuard no_grad;
  std::set<std::string> used;
  const auto load = [&](const std::string& name, const at::Tensor& to) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) throw UserError("it holds no tensor '" + name + "', which the model has");
    copy_in(to, found->second, name, path);
    used.insert(name);
  };
  for (const auto& one : trainee.parameters) load(one.name, one.parameter->tensor);
  for (const auto& one : trainee.buffers)
    if (tensors.count(one.name)) load(one.name, one.buffer->tensor);
  for (const auto& [name, tensor] : tensors)
    if (!used.count(name)) throw UserError("it holds '" + name + "', which the model does not have");
}

// Checks memory for parameters and gradients. The system overcommits, and would kill the process later.
void require_memory(const Setting& section, Model& model) {
  double bytes = 0;
  for (const auto& one : parameters(model))
    bytes += 2.0 * static_cast<double>(one.parameter->tensor.numel() * one.parameter->tensor.element_size());
  const double available =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes <= available) return;
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << "its parameters and gradients need " << bytes / kBytesPerGb
       << " GB, this machine has " << available / kBytesPerGb << " GB";
  section.fail(text.str());
}

void choose_loss(Model& model, const Setting& loss) try {
  tutti::choose_loss(model, loss.text());
} catch (const UserError& error) {
  loss.fail(error.what());
}

void load_initial_weights(Trainee& trainee, const Setting& weights) try {
  load_initial_weights(trainee, weights.text());
} catch (const std::exception& error) {
  weights.fail(one_line(error));
}

}  // namespace

Outputs Trainee::forward(const Batch& batch) const {
  const AutocastScope autocast(precision.autocast);
  return model->forward(batch);
}

at::Tensor Trainee::loss_of(const Outputs& outputs, const Batch& batch) const {
  const AutocastScope autocast(precision.autocast);
  return model->loss(outputs, batch);
}

at::Tensor Trainee::losses_of(const Outputs& outputs, const Batch& batch) const {
  const AutocastScope autocast(precision.autocast);
  return model->losses(outputs, batch);
}

std::shared_ptr<Model> build_model(const Setting& section, const SampleSpec& spec,
                                   const ModelFactory& make_model) try {
  auto model = make_model(section, spec);
  if (section.has("loss")) choose_loss(*model, section.at("loss"));
  require_memory(section, *model);
  return model;
} catch (const c10::Error& error) {
  section.fail("it cannot be built: " + one_line(error));
} catch (const std::bad_alloc& error) {
  section.fail("it cannot be built: " + one_line(error));
}

void build(Trainee& trainee, const Setting& recipe, const SampleSpec& spec, uint64_t seed,
           const ModelFactory& make_model, const std::function<void()>& operate) {
  const Setting& model = recipe.at("model");
  trainee.model = build_model(model, spec, make_model);
  if (operate) operate();
  materialise(*trainee.model, seed);
  cast(*trainee.model, trainee.precision);
  trainee.parameters = parameters(*trainee.model);
  for (const auto& one : buffers(*trainee.model))
    if (one.buffer->persistent) trainee.buffers.push_back(one);
  if (model.has("weights")) load_initial_weights(trainee, model.at("weights"));
  for (const auto& one : trainee.parameters)
    trainee.views.push_back(whole_view(one.name, one.parameter->tensor));
  trainee.optimizer = make_optimizer(recipe.at("optimizer"), trainee.views);
}

std::vector<CheckpointPiece> checkpoint_pieces(const Trainee& trainee, int world, int rank) {
  std::vector<CheckpointPiece> pieces;
  for (const auto& [name, tensor] : saved_tensors(trainee)) {
    CheckpointPiece piece{
        name,  tensor.sizes().vec(), Shape(tensor.dim(), 0), tensor.sizes().vec(), tensor.scalar_type(),
        tensor};
    const Rows rows = rows_of_piece(tensor.dim() == 0 ? 1 : tensor.size(0), world, rank);
    if (rows.count() == 0) continue;
    if (tensor.dim() > 0) {
      piece.offset[0] = rows.begin;
      piece.extent[0] = rows.count();
      piece.tensor = tensor.narrow(0, rows.begin, rows.count());
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

void restore_model(Trainee& trainee, const std::map<std::string, at::Tensor>& tensors,
                   const std::string& from, const RestoreFilter& filter) {
  std::map<std::string, at::Tensor> of_model;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with(kModelPrefix)) of_model.emplace(name, tensor);
  restore(trainee, of_model, from, std::string(kModelPrefix), filter);
}

void restore_tensors(Trainee& trainee, const std::map<std::string, at::Tensor>& tensors,
                     const std::string& from, const RestoreFilter& filter) {
  restore(trainee, tensors, from, "", filter);
}

}  // namespace tutti
