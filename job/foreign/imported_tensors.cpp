#include "job/foreign/imported_tensors.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "runtime/error.h"
#include "training/saved_tensors.h"

namespace tutti {
namespace {

constexpr std::string_view kAverages = "algorithms/EMA/";
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
  std::set<std::string> known;
  for (const SavedTensor& saved : saved_tensors(trainee_)) known.insert(saved.name);
  for (const auto& [name, entry] : tensors_.entries()) {
    if (!name.starts_with(kAverages)) continue;
    const auto weight = names_.find(name.substr(kAverages.size()));
    if (weight == names_.end() || !known.contains(std::string(kAverages) + weight->second))
      unused_.push_back(name);
    else
      homes_[std::string(kAverages) + weight->second] = name;
  }
}

void ImportedTensors::add_moments() {
  Names names = names_;
  names.merge(names_by_number());
  std::set<std::string> known;
  for (const SavedTensor& saved : saved_tensors(trainee_)) {
    known.insert(saved.name);
    if (!saved.before.empty()) known.insert(saved.before);
  }
  std::set<std::string> trained;
  for (const auto& [name, entry] : tensors_.entries()) {
    if (!name.starts_with(kOptimizersPrefix)) continue;
    const auto own = names.find(parameter_in(name));
    const std::string saved =
        own == names.end() ? "" : std::string(kOptimizersPrefix) + own->second + state_in(name);
    if (own == names.end() || !known.contains(saved)) {
      unused_.push_back(name);
      continue;
    }
    homes_[saved] = name;
    trained.insert(std::string(kOptimizersPrefix) + own->second);
  }
  for (const std::string& parameter : trained)
    if (known.contains(parameter + "/step")) homes_.emplace(parameter + "/step", "");
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
ImportedTensors::Names ImportedTensors::names_by_number() const {
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
  return {};
}

void ImportedTensors::read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const {
  const std::string& home = homes_.at(name);
  if (!home.empty()) return tensors_.read_numbers(home, first, to);
  const int64_t step = state_.imported.step > 0 ? state_.imported.step : state_.time.batch;
  std::memcpy(to.data(), &step, sizeof step);
}

std::vector<std::string> ImportedTensors::report() const {
  const std::string from = path_ + " (" + state_.imported.program + "): ";
  std::string came = counted(count_with(entries_, kModelPrefix), "tensors of the model");
  std::size_t moments = 0;
  for (const auto& [name, home] : homes_) moments += name.starts_with(kOptimizersPrefix) && !home.empty();
  if (moments > 0) came += ", " + counted(moments, "of the optimizer");
  if (const std::size_t averages = count_with(entries_, kAverages))
    came += ", " + counted(averages, "averages of EMA");
  const Timestamp& time = state_.time;
  if (time.batch > 0)
    came += ", the time (step " + std::to_string(time.batch) +
            (time.batch_in_epoch < 0 ? ")" : ", epoch " + std::to_string(time.epoch) + ")");
  std::vector<std::string> lines = {from + "taken over: " + came};
  std::vector<std::string> left = state_.imported.left_behind;
  if (!unused_.empty())
    left.insert(left.begin(), listed(unused_) + ", which " + (unused_.size() == 1 ? "is" : "are") +
                                  " not of this recipe's optimizer and algorithms");
  if (moments == 0) left.insert(left.begin(), "the optimizer's state, which begins anew");
  if (time.batch == 0) left.insert(left.begin(), "the time, which begins at 0: the checkpoint has none");
  for (const std::string& what : left) lines.push_back(from + "not taken over: " + what);
  return lines;
}

}  // namespace tutti
