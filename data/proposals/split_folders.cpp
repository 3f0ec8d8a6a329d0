#include "data/proposals/split_folders.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::array<std::string_view, 2> kTrained = {"train", "training"};
constexpr std::array<std::string_view, 8> kEvaluated = {"val",        "valid", "validation", "eval",
                                                        "evaluation", "dev",   "test",       "testing"};

}  // namespace

std::span<const std::string_view> evaluated_names() { return kEvaluated; }

bool is_split_name(const std::string& name) {
  const std::string lower = lower_case(name);
  return std::ranges::find(kTrained, lower) != kTrained.end() ||
         std::ranges::find(kEvaluated, lower) != kEvaluated.end();
}

SplitFolders SplitFolders::of(const std::string& folder) {
  std::map<std::string, std::string, std::less<>> paths;  // by names in lower case
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored))
      paths.emplace(lower_case(entry.path().filename().string()), entry.path().string());
  const auto first_of = [&](std::span<const std::string_view> names) {
    for (const std::string_view name : names)
      if (const auto path = paths.find(name); path != paths.end()) return path->second;
    return std::string();
  };
  return {first_of(kTrained), first_of(kEvaluated)};
}

}  // namespace tutti
