#include "data/proposals/proposal.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "recipe/setting.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLongestSequence = 128, kShortestSequence = 8;
constexpr int64_t kSamplesWanted = 40;  // in a tenth of the file, which is evaluated on
constexpr int64_t kEdge = 224;          // of photographs as a network gets them

}  // namespace

RecipeLine path_line(const std::string& path, const std::string& comment, const std::string& key) {
  return {.key = key, .value = path, .comment = comment, .is_path = true};
}

RecipeLine target_type_line(bool are_values) {
  return {"target_type", are_values ? "\"number\"" : "\"auto\"",
          are_values ? "or class, if each number is one" : "or number, if they are values"};
}

RecipeLine normalized_target_line() {
  return {"normalize_target", "true",
          "(y - mean) / std of their column: losses, MSE and MAE count in standard deviations"};
}

std::string toml_text(const std::string& text) { return Setting(text, "", {}).toml(); }

std::string toml_texts(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + toml_text(text);
  return '[' + list + ']';
}

std::string toml_number(double value) {
  std::ostringstream out;
  out << value;
  const std::string text = out.str();
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string toml_numbers(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ", ") + toml_number(value);
  return values.size() == 1 ? text : '[' + text + ']';
}

std::string last_name(const std::string& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename();
}

std::string imbalance_text(const ClassSizes& sizes, const std::string& samples) {
  constexpr int64_t kManyTimes = 3;
  if (sizes.empty()) return "";
  const auto [least, most] =
      std::ranges::minmax_element(sizes, {}, [](const auto& size) { return size.second; });
  if (most->second < kManyTimes * least->second) return "";
  return "class '" + shown(least->first) + "' has " + std::to_string(least->second) + ' ' + samples +
         ", and '" + shown(most->first) + "' has " + std::to_string(most->second) +
         "; sampler = \"balanced\" in [data.train] draws all classes alike (docs/data.md)";
}

int64_t sequence_for(int64_t tokens, const std::string& file) {
  int64_t length = kLongestSequence;
  while (length > kShortestSequence && tokens / 10 < kSamplesWanted * length) length /= 2;
  if (tokens / 10 <= length)
    throw UserError({file}, "too short to train on: " + std::to_string(tokens) + " tokens");
  return length;
}

RecipeLines pixel_lines(const std::vector<double>& mean, const std::vector<double>& deviation) {
  return {{"mean", toml_numbers(mean), "of each channel, in [0, 1]: bytes are divided by 255 first"},
          {"std", toml_numbers(deviation), "input = (byte / 255 - mean) / std"}};
}

RecipeLines measured_pixel_lines(std::span<const uint8_t> pixels, int64_t channels, int64_t plane) {
  std::vector<double> sum(static_cast<std::size_t>(channels)), squares(sum), count(sum), mean, deviation;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    const auto c = static_cast<std::size_t>((plane > 0 ? place / plane : place) % channels);
    const double value = pixels[i] / 255.0;
    sum[c] += value;
    squares[c] += value * value;
    count[c] += 1;
  }
  const auto rounded = [](double value) { return std::round(value * 1e4) / 1e4; };
  for (std::size_t c = 0; c < sum.size(); ++c) {
    const double average = sum[c] / std::max(count[c], 1.0);
    const double variance = squares[c] / std::max(count[c], 1.0) - average * average;
    mean.push_back(rounded(average));
    deviation.push_back(variance > 1e-6 ? rounded(std::sqrt(variance)) : 1);
  }
  return pixel_lines(mean, deviation);
}

Proposal photographs_in(const std::string& path, const std::string& summary) {
  return {.name = fs::path(last_name(path)).stem(),
          .summary = summary,
          .numbers = pixel_lines({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}),
          .samples = ImageSamples{
              .height = kEdge, .width = kEdge, .have_channels = true, .may_flip = true, .are_files = true}};
}

}  // namespace tutti
