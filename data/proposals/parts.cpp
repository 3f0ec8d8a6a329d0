#include "data/proposals/parts.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 2> kTrained = {"train", "training"};
constexpr std::array<std::string_view, 8> kEvaluated = {"val",        "valid", "validation", "eval",
                                                        "evaluation", "dev",   "test",       "testing"};

bool has_word(const std::string& name, std::span<const std::string_view> words) {
  constexpr std::size_t kShort = 3;  // letters of a word that is not looked for within others
  const std::string lower = lower_case(name);
  return std::ranges::any_of(words, [&](std::string_view word) {
    return word.size() > kShort ? lower.find(word) != std::string::npos : lower == word;
  });
}

}  // namespace

std::span<const std::string_view> evaluated_names() { return kEvaluated; }

bool is_name_of_pictures(const std::string& name) {
  constexpr std::string_view kPictures[] = {"image", "img", "imgs",  "picture", "photo",
                                            "input", "rgb", "frame", "color"};
  return has_word(name, kPictures);
}

bool is_name_of_masks(const std::string& name) {
  constexpr std::string_view kMasks[] = {"mask", "label",  "annot", "segment", "truth", "target",
                                         "gt",   "gtfine", "ann",   "seg",     "anns"};
  return has_word(name, kMasks);
}

bool is_trained_name(const std::string& name) {
  return std::ranges::find(kTrained, lower_case(name)) != kTrained.end();
}

bool is_evaluated_name(const std::string& name) {
  return std::ranges::find(kEvaluated, lower_case(name)) != kEvaluated.end();
}

SplitFolders SplitFolders::of(const std::string& folder) {
  std::map<std::string, std::string, std::less<>> paths;  // by names in lower case
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored))
      paths.emplace(lower_case(entry.path().filename().string()), entry.path().string());
  const auto first_of = [&](std::span<const std::string_view> names) {
    for (const std::string_view name : names)
      if (const auto path = paths.find(name); path != paths.end()) return path->second;
    return std::string();
  };
  return {first_of(kTrained), first_of(kEvaluated)};
}

std::string file_to_evaluate(const std::string& file, const std::function<bool(const std::string&)>& suits) {
  const std::string name = fs::path(file).filename();
  const std::size_t at = name.rfind("train");
  if (at == std::string::npos) return "";
  const std::size_t end = at + (name.compare(at, 8, "training") == 0 ? 8 : 5);
  for (const std::string_view part : kEvaluated) {
    const std::string other = name.substr(0, at) + std::string(part) + name.substr(end);
    const fs::path path = fs::path(file).parent_path() / other;
    std::error_code ignored;
    if (fs::exists(path, ignored) && suits(path)) return path;
  }
  return "";
}

}  // namespace tutti
