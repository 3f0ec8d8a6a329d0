#include "commands/predictions/eval_section.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "data/readers/catalog.h"
#include "data/readers/options.h"
#include "recipe/catalog.h"

namespace tutti {
namespace {

constexpr double kEdgeOfCrop = 256.0 / 224.0;  // torchvision's evaluations
constexpr std::string_view kOfPixels[] = {"layout", "scale", "mean", "std"};

std::string_view text_of_name(std::string_view name) { return name; }
std::string_view text_of_name(const Key& key) { return key.name; }

template <class Names>
bool has_named(const Names& names, const std::string& name) {
  return std::ranges::any_of(names, [&](const auto& other) { return text_of_name(other) == name; });
}

Setting plain_transform(const Setting& like, const std::string& kind, const std::string& key,
                        Setting::Value size) {
  const auto of = [&](Setting::Value value) { return Setting(std::move(value), like.path, like.position); };
  return of(Setting::Table{{"kind", of(kind)}, {key, of(std::move(size))}});
}

// Without keys that are none, which a recipe does not write.
Setting without_none(const Setting& resolved) {
  Setting out = resolved;
  std::erase_if(out.table(), [](const auto& member) { return member.second.is_none(); });
  return out;
}

// Of [[data.train.transforms]], with a note of what became of each.
class PlainTransforms {
 public:
  explicit PlainTransforms(const Setting& transforms) {
    for (const Setting& table : transforms.array()) add(table);
  }
  Setting::Array all;
  std::string note;

 private:
  void add(const Setting& table) {
    const std::string& kind = table.at("kind").text();
    if (suits_held_out(table) && kind != "mask_tokens") {  // nothing is guessed in new data
      all.push_back(without_none(table));
      return;
    }
    const bool is_crop = kind == "random_crop" || kind == "random_resized_crop";
    const Setting* size = is_crop ? table.find("size") : nullptr;
    note += (note.empty() ? "" : ", ") + kind + (size ? " becomes center_crop" : " is left out");
    if (!size) return;
    if (kind == "random_resized_crop" && size->is_integer()) {
      const int64_t edge = std::llround(static_cast<double>(size->integer()) * kEdgeOfCrop);
      note += " after resize to " + std::to_string(edge);
      all.push_back(plain_transform(table, "resize", "size", edge));
    } else if (kind == "random_resized_crop") {
      all.push_back(plain_transform(table, "resize", "size", size->value));
    }
    all.push_back(plain_transform(table, "center_crop", "size", size->value));
  }
};

}  // namespace

EvalSection eval_section_like(const Setting& train) {
  const std::string& kind = train.at("kind").text();
  const Catalog catalog = eval_data_catalog();
  const Entry* entry = catalog.find_entry(kind);
  EvalSection out{Setting(Setting::Table{{"kind", train.at("kind")}}, "data.eval", train.position), ""};
  for (const auto& [key, value] : train.table()) {
    const bool is_of_kind = entry && has_named(entry->keys, key);
    if (!value.is_none() && (is_of_kind || has_named(kOfPixels, key)))
      out.section.table().emplace_back(key, value);
  }
  if (!train.has("transforms")) return out;
  PlainTransforms transforms(train.at("transforms"));
  if (!transforms.all.empty())
    out.section.table().emplace_back(
        "transforms", Setting(std::move(transforms.all), "data.eval.transforms", train.position));
  out.note = transforms.note;
  return out;
}

EvalSection eval_section_like(const Setting& train, const Setting& split) {
  EvalSection out = eval_section_like(train);
  Setting::Table& keys = out.section.table();
  for (const auto& [key, value] : split.table()) {
    if (value.is_none() || key == "kind" || key.starts_with("split")) continue;
    std::erase_if(keys, [&](const auto& member) { return member.first == key; });
    keys.emplace_back(key, value);
  }
  if (split.has("transforms")) out.note.clear();
  return out;
}

Setting picture_section_like(const Setting& table) {
  const std::vector<Key> folder_keys = ImageFolderOptions::kind().entry.keys,
                         table_keys = ImageTableOptions::kind().entry.keys;
  Setting section = without_none(table);
  std::erase_if(section.table(), [&](const auto& member) {
    const std::string& key = member.first;
    const bool is_of_targets = key == "classes" || key == "path";
    return has_named(table_keys, key) && (is_of_targets || !has_named(folder_keys, key));
  });
  section.find("kind")->value = std::string("image_folder");
  return section;
}

}  // namespace tutti
