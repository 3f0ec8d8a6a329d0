#include "data/readers/recipe_transforms.h"

#include <algorithm>
#include <memory>

#include "data/readers/image_files.h"
#include "data/readers/transformed_dataset.h"
#include "data/tokenizers/tokenizer.h"
#include "data/transforms/options.h"
#include "data/transforms/stored_images.h"
#include "recipe/plugin_maker.h"
#include "runtime/text.h"
#include "tensors/memory/torch_error.h"

namespace tutti {
namespace {

constexpr int64_t kMostPlanes = 4;
constexpr std::size_t kMostTransforms = 1000;

const std::vector<double>& one_or_more(const Given<Numbers>& numbers) {
  if (numbers.key.is_array() && numbers->empty())
    numbers.fail("expected a number for each channel, or one for all");
  return numbers->values;
}

// The name of the transform's random numbers.
const std::string& draws_of(const Setting& section) {
  return section.at(is_of_plugin(section) ? "name" : "kind").text();
}

TransformPtr make_transform(const Setting& section, const SampleSpec& samples) {
  return is_of_plugin(section) ? made_by_plugin<TransformPtr>(section, samples)
                               : TransformKinds::made<TransformPtr>(section, samples);
}

// The key that an error is to blame on; of a plugin one of its options.
const Setting& blamed_key(const Setting& section, const std::string& option) {
  if (!is_of_plugin(section)) return section.at(option);
  const Setting& options = section.at("options");
  return options.is_table() && options.has(option) ? options.at(option) : section.at("name");
}

// The tables of transforms, with the special tokens of the data's tokenizer where mask_tokens does not say
// them.
Setting with_special_tokens(Setting tables, const Tokenizer* tokenizer) {
  if (!tokenizer) return tables;
  const SpecialIds& ids = tokenizer->special_ids();
  const auto number = [](uint32_t id) { return static_cast<int64_t>(id); };
  for (Setting& table : std::get<Setting::Array>(tables.value)) {
    if (!table.is_table() || !table.has("kind") || table.at("kind").text() != "mask_tokens") continue;
    const auto fill = [&](const char* key, const Setting::Value& value) {
      if (table.has(key)) return;
      std::erase_if(table.table(), [&](const auto& member) { return member.first == key; });
      table.table().emplace_back(key, Setting(value, path_below(table.path, key), table.position));
    };
    if (ids.mask) fill("mask_token_id", number(*ids.mask));
    Setting::Array special;
    for (const uint32_t id : ids.all)
      special.emplace_back(number(id), path_below(table.path, "special_token_ids"), table.position);
    if (!special.empty()) fill("special_token_ids", special);
  }
  return tables;
}

// The transforms of a section, each with the key that errors name.
class SectionTransforms {
 public:
  SectionTransforms(const Setting& section, const Dataset& dataset, int64_t ignore_index)
      : section_(section),
        settings_(DataSettings::read(section)),
        dataset_(dataset),
        samples_(dataset.spec()) {
    add_boxes();
    if (ignore_index != kIgnoredTarget) add_ignore_index(ignore_index);
    if (!settings_.first_class.is_absent()) add_first_class(settings_.first_class.key);
    if (!settings_.layout->empty())
      add_layout(settings_.layout, settings_.layout.key);
    else if (converts() && are_planes())
      add_layout("NCHW", section.at("kind"));
    if (!settings_.transforms.is_none()) add_tables(settings_.transforms);
    add_numbers();
  }

  bool empty() const { return transforms_.empty(); }
  const std::string& text() const { return text_; }
  const SampleSpec& samples() const { return samples_; }  // after all transforms

  // Tries one sample, so that unfit samples are an error with the recipe's line now.
  void require_fit(const std::string& owner) const {
    if (dataset_.size() == 0) return;
    const int64_t first = 0;
    Batch sample = dataset_.get({&first, 1}, {});
    for (std::size_t i = 0; i < transforms_.size(); ++i) {
      try {
        transforms_[i].transform->apply(
            sample, [&](int64_t) { return make_draws(0, {owner + transforms_[i].name}); });
      } catch (const std::exception& error) {
        keys_[i].fail(run_error(error));
      }
    }
  }

  Transforms owned_by(const std::string& owner) const {
    Transforms owned = transforms_;
    for (auto& transform : owned) transform.name = owner + transform.name;
    return owned;
  }

 private:
  // What the recipe says of arrays, for the transforms.
  void add_boxes() {
    const Setting& key = settings_.boxes.key;
    for (const std::string& name : settings_.boxes.value) {
      const auto shape = samples_.shapes.find(name);
      if (shape == samples_.shapes.end()) key.fail("the data has no array '" + name + "'");
      const auto dtype = samples_.dtypes.find(name);
      const bool is_float = dtype == samples_.dtypes.end() || at::isFloatingType(dtype->second);
      if (shape->second.size() != 2 || shape->second[1] != 4 || !is_float)
        key.fail("expected float32 [n, 4] a sample: x1, y1, x2, y2 in pixels; '" + name + "' is " +
                 samples_.describe(name));
      samples_.boxes.push_back(name);
    }
  }

  void add_ignore_index(int64_t ignore_index) {
    text_ += "ignore_index " + std::to_string(ignore_index) + '\n';
    add("ignore_index", ignore_index_transform(ignore_index), section_.at("kind"));
  }

  void add_first_class(const Setting& key) {
    text_ += "first_class " + key.toml() + '\n';
    add("first_class", first_class_transform(key.integer()), key);
  }

  void add_layout(const std::string& layout, const Setting& key) {
    text_ += "layout \"" + layout + "\"\n";
    add("layout", layout_transform(layout == "NHWC" ? ImageLayout::kNHWC : ImageLayout::kNCHW), key);
  }

  // True if the section says more of images than their layout.
  bool converts() const { return !settings_.transforms.is_none() || first_number(); }

  // The first key of numbers for "input"; null if there is none.
  const Setting* first_number() const {
    for (const auto* numbers : {&settings_.scale, &settings_.mean, &settings_.std})
      if (!numbers->key.is_none()) return &numbers->key;
    return nullptr;
  }

  // True if the first dimension of images of bytes, and not the last, can be their channels.
  bool are_planes() const {
    const auto shape = samples_.shapes.find(kInputArray);
    const auto dtype = samples_.dtypes.find(kInputArray);
    if (shape == samples_.shapes.end() || dtype == samples_.dtypes.end() || dtype->second != at::kByte)
      return false;
    return shape->second.size() == 3 && shape->second[0] <= kMostPlanes && shape->second[2] > kMostPlanes;
  }

  void add_tables(const Setting& given) {
    const Setting tables = with_special_tokens(given, dataset_.tokenizer().get());
    text_ += tables.toml();
    const Transforms made = make_transforms(tables, samples_);
    samples_ = spec_after(made, samples_);
    for (std::size_t i = 0; i < made.size(); ++i) {
      transforms_.push_back(made[i]);
      keys_.push_back(blamed_key(tables.array()[i], "kind"));
    }
  }

  void add_numbers() {
    const Setting* given = first_number();
    const auto dtype = samples_.dtypes.find(kInputArray);
    const bool bytes = dtype != samples_.dtypes.end() && dtype->second == at::kByte;
    if (!given && bytes && !settings_.layout->empty()) given = &settings_.layout.key;
    if (!given) return;
    for (const auto& [name, transform] : transforms_)
      if (transform->makes_tensors())
        given->fail("the transform " + name +
                    " has made float32 of the images; scale, mean and std come after all transforms, and do "
                    "that: keep one of the two");
    for (const auto* numbers : {&settings_.scale, &settings_.mean, &settings_.std})
      if (const Setting& key = numbers->key; !key.is_none())
        text_ += key.path.substr(key.path.rfind('.') + 1) + ' ' + key.toml() + '\n';
    add("pixels_to_floats",
        pixels_to_floats_transform(
            {one_or_more(settings_.scale), one_or_more(settings_.mean), one_or_more(settings_.std)}),
        *given);
  }

  void add(const std::string& name, TransformPtr transform, const Setting& key) {
    try {
      samples_ = transform->spec(samples_);
    } catch (const TransformError& error) {
      (section_.has(error.option) && error.option != "kind" ? section_.at(error.option) : key)
          .fail(error.what());
    }
    transforms_.push_back({name, std::move(transform)});
    keys_.push_back(key);
  }

  const Setting& section_;
  const DataSettings settings_;
  const Dataset& dataset_;
  SampleSpec samples_;
  Transforms transforms_;
  std::vector<Setting> keys_;
  std::string text_;
};

}  // namespace

Transforms make_transforms(const Setting& tables, SampleSpec samples) {
  Transforms transforms;
  if (tables.array().size() > kMostTransforms)
    tables.fail("expected at most " + grouped(kMostTransforms) + " transforms");
  for (const Setting& section : tables.array()) {
    try {
      append(transforms, draws_of(section), make_transform(section, samples));
      samples = transforms.back().transform->spec(samples);
    } catch (const TransformError& error) {
      blamed_key(section, error.option).fail(error);
    }
  }
  return transforms;
}

namespace {

// The dataset if its images have one size; throws UserError for the section's transforms or kind.
DatasetPtr with_one_size(const Setting& section, const DatasetPtr& dataset) {
  const Setting transforms = DataSettings::read(section).transforms;
  const Setting& key = transforms.is_none() ? section.at("kind") : transforms;
  const auto images = std::dynamic_pointer_cast<const ImageFiles>(dataset);
  if (!images) key.fail("the samples have no one size, which a batch needs, after all transforms");
  try {
    return images->with_one_size();
  } catch (const UserError& error) {
    key.fail(error);
  }
}

}  // namespace

DatasetPtr with_recipe_transforms(const Setting& section, DatasetPtr dataset, const std::string& owner,
                                  int64_t ignore_index) {
  auto transforms = std::make_unique<const SectionTransforms>(section, *dataset, ignore_index);
  if (!has_one_size(transforms->samples())) {
    dataset = with_one_size(section, dataset);
    transforms = std::make_unique<const SectionTransforms>(section, *dataset, ignore_index);
  }
  if (transforms->empty()) return dataset;
  transforms->require_fit(owner);
  return std::make_shared<const TransformedDataset>(std::move(dataset), transforms->owned_by(owner),
                                                    transforms->text());
}

}  // namespace tutti
