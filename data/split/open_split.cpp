#include "data/split/open_split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "data/readers/opened.h"
#include "data/readers/recipe_transforms.h"
#include "data/readers/table_files.h"
#include "data/readers/token_dataset.h"
#include "data/split/held_out.h"
#include "data/split/sample_part.h"
#include "data/split/sample_targets.h"
#include "data/split/split_groups.h"
#include "recipe/plugin_maker.h"

namespace tutti {
namespace {

// How a section goes through its samples, in which it follows no other.
constexpr std::array<std::string_view, 6> kOwnKeys = {"batch_size", "device_batch_size", "transforms",
                                                      "sampler",    "sampler_weights",   "sampler_column"};

// The transforms of training for held-out samples, without those that draw.
Setting drawless_transforms(const Setting& transforms) {
  for (const Setting& transform : transforms.array())
    if (is_of_plugin(transform))
      transform.fail(
          "a plugin's transform may draw or not: [[data.eval.transforms]] must say what the held-out "
          "samples get");
  Setting kept = held_out_transforms(transforms, transforms.path);
  return kept.array().empty() ? Setting({}, transforms.path, transforms.position) : kept;
}

std::string left_out_transforms(const Setting& transforms) {
  std::string names;
  for (const Setting& transform : transforms.array())
    if (!suits_held_out(transform)) names += (names.empty() ? "" : ", ") + transform.at("kind").text();
  return names;
}

Setting eval_section(const Setting& train, const Setting& eval) {
  Setting section = eval;
  // Some kinds have a split of their own.
  std::erase_if(section.table(), [](const auto& member) { return member.first == "split"; });
  for (const auto& [key, value] : train.table()) {
    const bool is_own = std::ranges::find(kOwnKeys, key) != kOwnKeys.end();
    Setting* member = section.find(key);
    if (key == "kind" || (member && member->is_none() && !is_own))
      *member = value;
    else if (!member && !is_own)
      section.table().emplace_back(key, value);
  }
  Setting& transforms = *section.find("transforms");
  if (transforms.is_none() && train.has("transforms"))
    transforms = drawless_transforms(train.at("transforms"));
  return section;
}

void require_countable(const Setting& train, const Setting& eval) {
  const SplitOptions options = SplitOptions::kind().read(eval);
  const Setting& split = eval.at("split");
  if (options.split >= 1 && (options.split != std::floor(options.split) || options.split < 2))
    split.fail("expected a share below 1, or a number of samples from 2 on");
  if (train.has("command"))
    train.at("command").fail(
        "samples of a command have no numbers by which a share could be held out; "
        "[data.eval] needs data of its own");
  for (const Setting* section : {&train, &eval})
    if (DataSettings::read(*section).sampling == DataSettings::Sampling::kOwn)
      section->at("sampling")
          .fail("each rank has samples of its own, and a share is held out of samples of all");
  if (train.has("sources"))
    train.at("sources").fail("a share of a mixture is not held out; [data.eval] needs data of its own");
  const bool replaces = train.has("max_image_pixels") && train.at("on_bad_sample").text() == "skip";
  if (replaces && !is_table(train))
    train.at("on_bad_sample")
        .fail(
            "the next image takes the place of a bad one, and may be of the other part of the split; "
            "expected error");
}

bool are_of_sequence(const Dataset& data) { return dynamic_cast<const TokenDataset*>(&data) != nullptr; }

// Which samples of the dataset are held out.
std::vector<bool> held_out_of(const Dataset& data, const Setting& train, const Setting& eval,
                              std::string& note) try {
  const SplitOptions options = SplitOptions::kind().read(eval);
  SplitRequest request{
      .samples = data.size(), .held_out = options.split, .seed = static_cast<uint64_t>(options.split_seed)};
  if (!options.split_by.empty()) {
    request.groups = groups_by(train, eval.at("split_by"), data.size());
  } else if (are_of_sequence(data)) {
    request.groups = groups_of_neighbours(data.size(), options.split);
  } else {
    const SampleTargets stored = sample_targets(data);
    request.classes = single_classes(stored.targets);
    note = stored.note;
  }
  return held_out_samples(request);
} catch (const WrongKey& error) {
  fail_at(eval, error);
}

// Samples of held_out that lack the sizes of training are those of a transform that was left out.
void require_sizes_of_training(const SplitData& split, const Setting& eval, const std::string& left_out) {
  if (left_out.empty()) return;
  const SampleSpec trained = split.train->spec(), held_out = split.held_out->spec();
  for (const auto& [array, shape] : trained.shapes)
    if (const auto other = held_out.shapes.find(array);
        other == held_out.shapes.end() || other->second != shape)
      eval.at("split").fail("its '" + array + "' is " + held_out.describe(array) + ", and " +
                            trained.describe(array) +
                            " in training: held-out samples have no transforms that draw (" + left_out +
                            "); [[data.eval.transforms]] says how they get that size");
}

DatasetPtr with_eval_transforms(const Setting& section, const Setting& eval, DatasetPtr data,
                                const std::string& left_out, int64_t ignore_index) try {
  return with_recipe_transforms(section, std::move(data), "", ignore_index);
} catch (const UserError& error) {
  if (left_out.empty()) throw;
  eval.at("split").fail("held-out samples have those transforms of [data.train] that draw nothing, so not " +
                        left_out + "; [[data.eval.transforms]] says others: " + error.message());
}

SplitData open_tables(const Setting& train, const Setting& eval, DataEnvironment environment) {
  std::vector<bool> held_out = held_out_rows(train, eval, environment.ignore_index), trained = held_out;
  trained.flip();
  const std::optional<std::string> fitted = std::exchange(environment.fitted, std::nullopt);
  SplitData split;
  environment.rows = &trained;
  split.train = DataKinds::made<DatasetPtr>(train, environment);
  environment.fitted = fitted.value_or(split.train->fitted());
  environment.rows = &held_out;
  split.held_out = DataKinds::made<DatasetPtr>(train, environment);
  return split;
}

}  // namespace

bool is_split(const Setting& section) {
  return section.is_table() && section.has("kind") && section.at("kind").text() == kSplitKind;
}

SplitData open_split(const Setting& train, const Setting& eval, const DatasetPtr& given,
                     const DataEnvironment& environment) {
  require_countable(train, eval);
  const Setting section = eval_section(train, eval);
  const bool is_inherited = !eval.has("transforms") && train.has("transforms");
  const std::string left_out = is_inherited ? left_out_transforms(train.at("transforms")) : "";
  const auto with_transforms = [&](SplitData split) {
    split.train = with_recipe_transforms(train, split.train, "", environment.ignore_index);
    split.held_out = with_eval_transforms(section, eval, split.held_out, left_out, environment.ignore_index);
    split.eval = section;
    require_sizes_of_training(split, eval, left_out);
    return split;
  };
  if (!given && is_table(train)) return with_transforms(open_tables(train, eval, environment));
  const DatasetPtr data = given ? given : DataKinds::made<DatasetPtr>(train, environment);
  if (!data) train.at("kind").fail("there is no such dataset");
  std::string note;
  const std::vector<bool> held_out = held_out_of(*data, train, eval, note);
  SplitData split = with_transforms({.train = data, .held_out = data, .eval = {}});
  const bool in_shards = train.at("kind").text() == "mds";
  split.train = std::make_shared<const SamplePart>(
      split.train, SamplePart::Options{.samples = samples_marked(held_out, false),
                                       .follows_order = in_shards,
                                       .speaks_for_whole = true,
                                       .note = note});
  split.held_out = std::make_shared<const SamplePart>(
      split.held_out,
      SamplePart::Options{.samples = samples_marked(held_out, true), .follows_order = in_shards, .note = ""});
  return split;
}

}  // namespace tutti
