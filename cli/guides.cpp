#include "cli/guides.h"

#include <algorithm>

#include "runtime/nearest_name.h"

namespace tutti {

extern const char kGuides[];

namespace {

// "torch.compile" as "torch compile".
std::string without_signs(const std::string& word) {
  std::string out = word;
  std::ranges::replace_if(
      out, [](char c) { return c == '.' || c == '/' || c == ':'; }, ' ');
  return out;
}

std::string kind_of_place(const std::string& place) {
  const bool is_of_recipe =
      place.starts_with('[') || place.starts_with("metric ") || place.starts_with("loss ") || place == "seed";
  if (is_of_recipe) return "in a recipe";
  return place.starts_with("tutti ") ? "command" : "to read";
}

}  // namespace

const std::vector<Guide>& guides() {
  static const std::vector<Guide> all = read_glossary("cli/guides.txt", kGuides);
  return all;
}

const Guide* guide_for(std::span<const Guide> guides, const std::string& word) {
  const std::string asked = without_signs(word);
  const auto is_asked = [&](const std::string& name) { return same_name(name, asked); };
  const auto guide = std::ranges::find_if(
      guides, [&](const Guide& candidate) { return std::ranges::any_of(candidate.names, is_asked); });
  return guide == guides.end() ? nullptr : &*guide;
}

std::string guide_text(const Guide& guide) {
  std::string out = guide.text + '\n';
  for (const std::string& place : guide.places) out += "  " + kind_of_place(place) + ": " + place + '\n';
  return out;
}

}  // namespace tutti
