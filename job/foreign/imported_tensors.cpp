#include "job/foreign/imported_tensors.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "runtime/error.h"
#include "training/saved_tensors.h"

namespace tutti {
namespace {

constexpr std::string_view kAlgorithmsPrefix = "algorithms/";
constexpr const char* kAveraging[] = {"EMA", "SWA"};
constexpr std::string_view kStepState = "/step";
constexpr std::size_t kListed = 3;

std::set<std::string> names_of_weights(const Trainee& trainee) {
  std::set<std::string> names = trainee.removed;
  for (const SavedTensor& saved : weights_of(trainee)) {
    names.insert(saved.name);
    if (!saved.before.empty()) names.insert(saved.before);
  }
  return names;
}

// "optimizers/fc.weight/exp_avg" without its first and last part.
std::string parameter_in(const std::string& name) {
  const std::size_t begin = kOptimizersPrefix.size();
  return name.substr(begin, name.rfind('/') - begin);
}

std::string state_in(const std::string& name) { return name.substr(name.rfind('/')); }

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kListed, names.size()); ++i)
    text += (i == 0 ? "'" : ", '") + names[i] + "'";
  return names.size() <= kListed ? text : text + " and " + std::to_string(names.size() - kListed) + " more";
}

bool has_below(const std::map<std::string, Shape>& names, const std::string& prefix) {
  const auto first = names.lower_bound(prefix);
  return first != names.end() && first->first.starts_with(prefix);
}

std::string counted(std::size_t count, const std::string& of) { return std::to_string(count) + ' ' + of; }

std::size_t count_with(const TensorSource::Entries& entries, std::string_view prefix) {
  return static_cast<std::size_t>(
      std::ranges::count_if(entries, [&](const auto& entry) { return entry.first.starts_with(prefix); }));
}

}  // namespace

ImportedTensors::ImportedTensors(const Disk& disk, const Checkpoint& checkpoint, const RunState& state,
                                 const Trainee& trainee, const Setting& model)
    : path_(state.imported.path),
      state_(state),
      trainee_(trainee),
      tensors_(disk, checkpoint),
      weights_(std::make_unique<CheckpointTensors>(disk, checkpoint, kModelPrefix), path_,
               names_of_weights(trainee), WeightsOptions::read(model)) {
  for (const SavedTensor& saved : saved_tensors(trainee))
    for (const std::string& name : {saved.name, saved.before})
      if (!name.empty()) known_.emplace(name, saved.shape);
  add_weights();
  add_averages();
  add_moments();
  for (const auto& [name, home] : homes_)
    entries_[name] = home.empty() ? Entry{{}, at::kLong} : tensors_.at(home);
}

void ImportedTensors::add_weights() {
  for (const auto& [name, entry] : weights_.entries()) {
    const std::string& own = weights_.name_in_file(name);
    names_.emplace(own, name);
    homes_[std::string(kModelPrefix) + name] = std::string(kModelPrefix) + own;
  }
  for (const NamedWeights::Tied& tied : weights_.tied()) names_.emplace(tied.file_name, tied.name);
}

void ImportedTensors::add_averages() {
  for (const std::string kind : kAveraging) {
    const std::string prefix = std::string(kAlgorithmsPrefix) + kind + '/';
    const bool is_in_recipe = has_below(known_, prefix);
    for (const auto& [name, entry] : tensors_.entries()) {
      if (!name.starts_with(prefix)) continue;
      const auto weight = names_.find(name.substr(prefix.size()));
      if (!is_in_recipe)
        unused_averages_["since the recipe has no " + kind].push_back(name);
      else if (weight == names_.end() || !known_.contains(prefix + weight->second))
        unused_averages_["of no tensor of this model"].push_back(name);
      else
        homes_[prefix + weight->second] = name;
    }
  }
}

void ImportedTensors::add_moments() {
  Names names = names_;
  names.merge(names_by_number());
  std::set<std::string> trained;
  for (const auto& [name, entry] : tensors_.entries()) {
    if (!name.starts_with(kOptimizersPrefix)) continue;
    if (const std::string why = why_unused(name, names); !why.empty()) {
      unused_moments_[why].push_back(name);
      continue;
    }
    const std::string parameter = std::string(kOptimizersPrefix) + names.at(parameter_in(name));
    homes_[parameter + state_in(name)] = name;
    trained.insert(parameter);
  }
  for (const std::string& parameter : trained)
    if (known_.contains(parameter + std::string(kStepState)))
      homes_.emplace(parameter + std::string(kStepState), "");
}

std::string ImportedTensors::why_unused(const std::string& moment, const Names& names) const {
  const std::string parameter = parameter_in(moment), state = state_in(moment);
  const auto own = names.find(parameter);
  if (own == names.end())
    return parameter.starts_with('#') ? uncounted_ : "its names are of no parameters of this model";
  const std::string home = std::string(kOptimizersPrefix) + own->second;
  const auto known = known_.find(home + state);
  if (known == known_.end() && !has_below(known_, home + '/')) return "the recipe trains no such parameters";
  if (known == known_.end())
    return "this recipe's optimizer does not keep '" + state.substr(1) + "': another kind of optimizer";
  return known->second == tensors_.at(moment).shape ? "" : "the model's parameters have other shapes";
}

std::vector<std::string> ImportedTensors::trained_in_order() const {
  std::vector<std::string> names;
  std::set<std::string> trained, listed;
  for (const ParamView& view : trainee_.views)
    if (view.trained) trained.insert(view.name);
  const auto add = [&](const std::string& name) {
    if (trained.contains(name) && listed.insert(name).second) names.push_back(name);
  };
  for (const std::string& weight : state_.imported.weights)
    if (const auto own = names_.find(weight); own != names_.end()) add(own->second);
  for (const ParamView& view : trainee_.views) add(view.name);
  return names;
}

// True if the state of parameters `first` to first + count has the shapes of the parameters of these names.
bool ImportedTensors::fit(const std::vector<std::string>& names, std::size_t first, std::size_t count) const {
  if (names.size() != count) return false;
  std::map<std::string, Shape> shapes;
  for (const ParamView& view : trainee_.views) shapes[view.name] = view.shape;
  for (const auto& [name, entry] : tensors_.entries()) {
    if (!name.starts_with(std::string(kOptimizersPrefix) + '#') || entry.shape.empty()) continue;
    const auto number = std::stoul(parameter_in(name).substr(1));
    if (number >= first && number < first + count && entry.shape != shapes[names[number - first]])
      return false;
  }
  return true;
}

// Of one group all parameters, in the model's order. Of two groups, as transformers and nanoGPT make them,
// first weights that decay: all but biases and norms, or all of two dimensions.
ImportedTensors::Names ImportedTensors::names_by_number() {
  const std::vector<int64_t>& groups = state_.imported.groups;
  const bool by_number = std::ranges::any_of(tensors_.entries(), [](const auto& entry) {
    return entry.first.starts_with(std::string(kOptimizersPrefix) + '#');
  });
  if (!by_number) return {};
  const std::vector<std::string> all = trained_in_order();
  std::set<std::string> matrices;
  for (const ParamView& view : trainee_.views)
    if (view.shape.size() >= 2) matrices.insert(view.name);
  using Decays = std::function<bool(const std::string&)>;
  const std::vector<Decays> rules = {
      [](const std::string&) { return true; },
      [&](const std::string& name) { return matrices.contains(name); },
  };
  for (const Decays& decays : rules) {
    std::vector<std::string> first, second;
    for (const std::string& name : all) (decays(name) ? first : second).push_back(name);
    const bool fits = groups.empty()       ? false
                      : groups.size() == 1 ? second.empty() && fit(first, 0, groups[0])
                                           : groups.size() == 2 && fit(first, 0, groups[0]) &&
                                                 fit(second, groups[0], groups[1]);
    if (!fits) continue;
    first.insert(first.end(), second.begin(), second.end());
    Names names;
    for (std::size_t i = 0; i < first.size(); ++i) names["#" + std::to_string(i)] = first[i];
    return names;
  }
  uncounted_ = why_not_counted(all);
  return {};
}

std::string ImportedTensors::why_not_counted(const std::vector<std::string>& trained) const {
  const std::vector<int64_t>& groups = state_.imported.groups;
  const int64_t counted_there = std::accumulate(groups.begin(), groups.end(), int64_t{0});
  const std::string by_number = "its parameters have numbers instead of names, ";
  if (counted_there != std::ssize(trained))
    return by_number + "0 to " + std::to_string(counted_there - 1) + ", and the recipe trains " +
           counted(trained.size(), "parameters");
  if (groups.size() > 2)
    return by_number + "in " + counted(groups.size(), "groups; tutti knows the order of one group or two");
  return by_number + "and the model's parameters, in their order, have other shapes";
}

void ImportedTensors::read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const {
  const std::string& home = homes_.at(name);
  if (!home.empty()) return tensors_.read_numbers(home, first, to);
  const int64_t step = state_.imported.step > 0 ? state_.imported.step : state_.time.batch;
  std::memcpy(to.data(), &step, sizeof step);
}

// Why the optimizer's state, or a part, did not come over.
std::vector<std::string> ImportedTensors::left_of_optimizer() const {
  std::vector<std::string> lines, missing;
  bool has_any = false;
  for (const SavedTensor& saved : saved_tensors(trainee_)) {
    if (!saved.name.starts_with(kOptimizersPrefix) || saved.name.ends_with(kStepState)) continue;
    const bool is_there = homes_.contains(saved.name) || homes_.contains(saved.before);
    has_any = has_any || is_there;
    if (!is_there) missing.push_back(saved.name);
  }
  for (const auto& [why, names] : unused_moments_) lines.push_back(listed(names) + ": " + why);
  if (!has_any)
    lines.insert(lines.begin(),
                 lines.empty() ? "the optimizer's state, which begins anew: the checkpoint has none"
                               : "the optimizer's state, which begins anew, for the reasons that follow");
  else if (!missing.empty())
    lines.push_back(listed(missing) + ", which the checkpoint lacks, and which begin anew");
  return lines;
}

std::vector<std::string> ImportedTensors::report() const {
  const std::string from = path_ + " (" + state_.imported.program + "): ";
  std::string came = counted(count_with(entries_, kModelPrefix), "tensors of the model");
  std::vector<std::string> left = left_of_optimizer();
  std::size_t moments = 0;
  for (const auto& [name, home] : homes_) moments += name.starts_with(kOptimizersPrefix) && !home.empty();
  if (moments > 0) came += ", " + counted(moments, "of the optimizer");
  for (const std::string kind : kAveraging) {
    const std::string prefix = std::string(kAlgorithmsPrefix) + kind + '/';
    if (const std::size_t averages = count_with(entries_, prefix))
      came += ", " + counted(averages, "averages of " + kind);
    else if (has_below(known_, prefix))
      left.push_back("averages of " + kind + ", which begin from the weights: the checkpoint has none");
  }
  for (const auto& [why, names] : unused_averages_) left.push_back(listed(names) + ", " + why);
  const Timestamp& time = state_.time;
  if (time.batch > 0)
    came += ", the time (step " + std::to_string(time.batch) +
            (time.batch_in_epoch < 0 ? ")" : ", epoch " + std::to_string(time.epoch) + ")");
  else
    left.push_back("the time, which begins at 0: the checkpoint has none");
  const auto& others = state_.imported.left_behind;
  left.insert(left.end(), others.begin(), others.end());
  std::vector<std::string> lines = {from + "taken over: " + came};
  for (const std::string& what : left) lines.push_back(from + "not taken over: " + what);
  return lines;
}

}  // namespace tutti
