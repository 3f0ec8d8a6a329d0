#include "training/named_weights.h"

#include <algorithm>

#include "models/zoo/catalog.h"
#include "runtime/error.h"

namespace tutti {
namespace {

std::vector<NamePattern> renames_of(const Setting& table) {
  std::vector<NamePattern> renames;
  if (table.is_none()) return renames;
  for (const auto& [pattern, name] : table.table()) try {
      renames.emplace_back(pattern, name.text());
    } catch (const UserError& error) {
      name.fail(error);
    }
  return renames;
}

}  // namespace

WeightsOptions WeightsOptions::read(const Setting& model) {
  const ModelKeys keys = ModelKeys::kind().read(model);
  return {keys.weights_strict, StatePatterns(keys.weights_ignore, '.'), renames_of(keys.weights_rename)};
}

NamedWeights::NamedWeights(std::unique_ptr<TensorSource> file, const std::string& path,
                           const std::set<std::string>& known, const WeightsOptions& options)
    : file_(std::move(file)), path_(path) {
  std::vector<std::string> names(known.begin(), known.end());
  std::set<std::string> renaming;
  for (const auto& [file_name, entry] : file_->entries()) {
    std::string name = file_name;
    for (const NamePattern& pattern : options.renames)
      if (const std::string renamed = pattern.renamed(file_name); !renamed.empty()) {
        name = renamed;
        renaming.insert(pattern.text());
        break;
      }
    names.insert(names.end(), {file_name, name});
    if (!options.ignored.fit(file_name) && !options.ignored.fit(name)) add(file_name, name, known);
  }
  for (const std::string& name : known)
    if (const auto source = homes_.find(copied_from(name)); source != homes_.end())
      homes_.emplace(name, source->second);
  std::erase_if(homes_, [&](const auto& one) { return options.ignored.fit(one.first); });
  for (const auto& [name, home] : homes_) entries_[name] = file_->at(home.file_name);
  idle_ = options.ignored.idle(names);
  for (const NamePattern& pattern : options.renames)
    if (!renaming.contains(pattern.text())) idle_.push_back(pattern.text());
}

void NamedWeights::add(const std::string& file_name, const std::string& renamed,
                       const std::set<std::string>& known) {
  const std::vector<std::string> names = names_in_models(renamed);
  const auto name_in_model =
      std::ranges::find_if(names, [&](const auto& name) { return known.contains(name); });
  if (name_in_model == names.end() && is_saved_constant(renamed)) return;
  const std::string& name = name_in_model == names.end() ? renamed : *name_in_model;
  const Home home{file_name, static_cast<std::size_t>(name_in_model - names.begin())};
  const auto [there, is_new] = homes_.emplace(name, home);
  if (is_new) return;
  const Home other = there->second;
  if (home.likelihood < other.likelihood) there->second = home;
  resolve(name, there->second, home.likelihood < other.likelihood ? other : home);
}

void NamedWeights::resolve(const std::string& name, const Home& first, const Home& second) {
  if (!is_tied_weight(second.file_name))
    throw UserError({path_}, "it holds both '" + first.file_name + "' and '" + second.file_name +
                                 "', which are names of one tensor, '" + name +
                                 "'; weights_ignore leaves one out");
  tied_.push_back({second.file_name, name});
}

void NamedWeights::read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const {
  file_->read_numbers(name_in_file(name), first, to);
}

}  // namespace tutti
