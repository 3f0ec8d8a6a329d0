#include "training/initial_weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <set>
#include <vector>

#include "io/formats/dtypes.h"
#include "io/weights/weights.h"
#include "models/weight_names.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"
#include "tensors/memory/torch_error.h"
#include "training/named_weights.h"
#include "training/saved_tensors.h"

namespace tutti {
namespace {

constexpr std::size_t kListed = 3;

// "'a', 'b', 'c' and 4 more"
std::string listed(const std::vector<std::string>& texts) {
  std::string text;
  for (std::size_t i = 0; i < std::min(texts.size(), kListed); ++i) text += (i > 0 ? ", " : "") + texts[i];
  return texts.size() <= kListed ? text : text + " and " + std::to_string(texts.size() - kListed) + " more";
}

std::string in_quotes(const std::string& name) { return "'" + name + "'"; }

std::set<std::string> names_of_all(const std::vector<SavedTensor>& weights) {
  std::set<std::string> names;
  for (const SavedTensor& saved : weights) {
    names.insert(saved.name);
    if (!saved.before.empty()) names.insert(saved.before);
  }
  return names;
}

// Weights [in, out], where other programs have those of linear layers, [out, in].
std::set<std::string> weights_of_projections(Model& model) {
  std::set<std::string> names;
  for (const auto& [name, layer] : layers(model))
    if (layer->kind() == std::string("Conv1D")) names.insert(name + "." + layer->own_parameters()[0]->name);
  return names;
}

bool is_turned(const Shape& shape, const Shape& other) {
  return shape.size() == 2 && other.size() == 2 && shape[0] == other[1] && shape[1] == other[0] &&
         shape[0] != shape[1];
}

class InitialWeights {
 public:
  InitialWeights(Trainee& trainee, const std::string& path, const WeightsOptions& options)
      : trainee_(trainee),
        path_(path),
        options_(options),
        weights_(weights_of(trainee)),
        projections_(weights_of_projections(*trainee.model)),
        tensors_(open_weights(disk_, path, trainee.topology.share.on(Axis::kShard)), path_, known(), options),
        names_(weights_),
        before_surgery_(std::ranges::none_of(
            weights_, [this](const auto& one) { return added(one) && tensors_.contains(one.name); })) {}

  std::string load(Lacking lacking) {
    turned_ = std::ranges::any_of(weights_, [this](const auto& saved) {
      const std::string name = names_.find(tensors_, saved, path_);
      return projections_.contains(saved.name) && !name.empty() &&
             is_turned(saved.shape, tensors_.at(name).shape);
    });
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const bool is_parameter = i < trainee_.parameters.size();
      const bool is_lacking = !load(weights_[i], is_parameter);
      if (is_lacking && is_parameter && !trainee_.parameters[i].parameter->trained)
        untrained_.push_back(weights_[i].text());
    }
    for (const auto& [name, entry] : tensors_.entries())
      if (!used_.count(name) && !(before_surgery_ && trainee_.removed.count(name)))
        unused_.push_back(tensors_.name_in_file(name));
    compare_tied();
    if (lacking == Lacking::kNothing) require_learned();
    if (options_.strict) require_all();
    if (used_.empty())
      throw UserError({path_}, "none of its " + std::to_string(tensors_.file().entries().size()) +
                                   " tensors has a name that the model has" + beside());
    return note();
  }

 private:
  std::set<std::string> known() const {
    std::set<std::string> names = names_of_all(weights_);
    names.insert(trainee_.removed.begin(), trainee_.removed.end());
    return names;
  }

  // A new tensor with the name of a removed one says nothing about the file.
  bool added(const SavedTensor& saved) const {
    return saved.before.empty() && trainee_.removed.count(saved.name) == 0;
  }

  // False if the file should have it, and it stays as initialised.
  bool load(const SavedTensor& saved, bool is_parameter) {
    const std::string name = names_.find(tensors_, saved, path_);
    const bool is_new = before_surgery_ && saved.before.empty();
    const bool is_ignored = options_.ignored.fit(saved.name) || options_.ignored.fit(saved.before);
    if (name.empty() || is_ignored) {
      if (is_ignored)
        fresh_.push_back(in_quotes(saved.name));
      else if (!is_new && !saved.constant && (is_parameter || !is_batch_count(saved.name)))
        missing_.push_back(saved);
      return is_new || saved.constant;
    }
    used_.insert(name);
    if (saved.constant) return true;
    if (is_new && saved.shape != tensors_.at(name).shape) return true;  // the removed one's
    read(saved, name);
    return true;
  }

  void read(const SavedTensor& saved, const std::string& name) const {
    const TensorSource::Entry& entry = tensors_.at(name);
    const bool is_turned = turned_ && projections_.contains(saved.name);
    Shape shape = entry.shape;
    if (is_turned) std::ranges::reverse(shape);
    if (saved.shape != shape) refuse(saved, name, shape_text(shape), shape_text(saved.shape));
    if (c10::isFloatingType(entry.dtype) != c10::isFloatingType(saved.tensor.scalar_type()))
      refuse(saved, name, dtype_name(entry.dtype), dtype_name(saved.tensor.scalar_type()));
    if (!is_turned) return tensors_.read(name, saved.region, saved.tensor);
    const at::Tensor whole = at::empty(entry.shape, saved.tensor.scalar_type());
    tensors_.read(name, whole_region(entry.shape), whole);
    const at::NoGradGuard no_grad;
    at::Tensor(saved.tensor).copy_(narrowed(whole.t(), saved.region));
  }

  [[noreturn]] void refuse(const SavedTensor& saved, const std::string& name, const std::string& theirs,
                           const std::string& own) const {
    const std::string& file_name = tensors_.name_in_file(name);
    throw UserError({path_}, in_quotes(file_name) + " is " + theirs + ", the model's " +
                                 (file_name == name ? "" : in_quotes(saved.name) + " ") + "is " + own +
                                 "; weights_ignore = [\"" + saved.name +
                                 "\"] leaves it as it is initialised");
  }

  // Of what the file holds twice, the two are one in the model.
  void compare_tied() {
    for (const NamedWeights::Tied& tied : tensors_.tied())
      for (const SavedTensor& saved : weights_)
        if (used_.contains(tied.name) && (saved.name == tied.name || saved.before == tied.name) &&
            !holds(saved, tied.file_name))
          differing_.push_back(in_quotes(tied.file_name) + " is not '" + tensors_.name_in_file(tied.name) +
                               "', to which the model ties it");
  }

  bool holds(const SavedTensor& saved, const std::string& file_name) const {
    const TensorSource& file = tensors_.file();
    if (saved.shape != file.at(file_name).shape) return false;
    const at::Tensor other = at::empty_like(saved.tensor);
    file.read(file_name, saved.region, other);
    return at::equal(saved.tensor, other);
  }

  // Of a model that is not trained.
  void require_learned() const {
    if (const auto fresh = fresh_texts(); !fresh.empty())
      throw UserError({path_}, "it lacks " + listed(fresh) + ", which a teacher must have" + beside());
  }

  void require_all() const {
    if (!missing_.empty())
      throw UserError({path_},
                      "it holds no tensor " + listed(missing_texts()) + ", which the model has" + beside());
    if (!unused_.empty())
      throw UserError({path_},
                      "it holds " + listed(unused_texts()) + ", which the model does not have; " + kRemedy);
    if (!differing_.empty()) throw UserError({path_}, differing_[0] + "; " + kRemedy);
  }

  std::vector<std::string> missing_texts() const {
    std::vector<std::string> texts;
    for (const SavedTensor& saved : missing_) texts.push_back(saved.text());
    return texts;
  }

  std::vector<std::string> fresh_texts() const {
    std::vector<std::string> texts = missing_texts();
    texts.insert(texts.end(), fresh_.begin(), fresh_.end());
    return texts;
  }

  std::vector<std::string> unused_texts() const {
    std::vector<std::string> texts;
    for (const std::string& name : unused_) texts.push_back(in_quotes(name));
    return texts;
  }

  // What the file has in place of what is missing.
  std::string beside() const {
    if (unused_.empty()) return std::string("; ") + kRemedy;
    std::string near = missing_.empty() ? "" : nearest_name(missing_[0].name, unused_);
    if (near.empty()) near = unused_[0];
    std::string text = "; it holds " + in_quotes(near);
    if (unused_.size() > 1) text += " and " + std::to_string(unused_.size() - 1) + " more";
    return text + ", which the model does not have; " + kRemedy;
  }

  std::string note() const {
    std::vector<std::string> parts;
    const std::vector<std::string> fresh = fresh_texts();
    if (!fresh.empty()) parts.push_back("not read, so as initialised: " + listed(fresh));
    if (!untrained_.empty())
      parts.push_back("neither read nor trained (freeze, or modules_to_save of lora): " + listed(untrained_));
    if (!unused_.empty()) parts.push_back("not used of the file: " + listed(unused_texts()));
    if (!differing_.empty()) parts.push_back(listed(differing_));
    for (const std::string& pattern : tensors_.idle_patterns())
      parts.push_back("'" + pattern + "' of weights_ignore or weights_rename fits no name");
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? path_ + ": " : "; ") + part;
    return text;
  }

  static constexpr const char* kRemedy =
      "weights_rename, weights_ignore or weights_strict = false allow other names, fewer and more";

  Trainee& trainee_;
  const std::string& path_;
  const WeightsOptions& options_;
  const PosixDisk disk_;
  const std::vector<SavedTensor> weights_;
  const std::set<std::string> projections_;
  const NamedWeights tensors_;
  const SavedNames names_;
  const bool before_surgery_;
  bool turned_ = false;  // the file has the projections of linear layers
  std::set<std::string> used_;
  std::vector<SavedTensor> missing_;
  std::vector<std::string> fresh_, untrained_, unused_, differing_;
};

}  // namespace

std::string load_initial_weights(Trainee& trainee, const Setting& model, const Setting& weights,
                                 Lacking lacking) try {
  const WeightsOptions options = WeightsOptions::read(model);
  return InitialWeights(trainee, weights.text(), options).load(lacking);
} catch (const std::exception& error) {
  weights.fail(run_error(error));
}

}  // namespace tutti
