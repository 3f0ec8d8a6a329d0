#include "io/checkpoint/checkpoint_names.h"

#include <algorithm>
#include <cstdio>
#include <functional>

#include "recipe/placeholders.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

struct Placeholder {
  const char* name;
  std::function<double(const RunState&)> value;
};

// Placeholders for times, the most precise for a checkpoint's age first.
const std::vector<Placeholder>& times_of_a_name() {
  static const std::vector<Placeholder> all = {
      {"batch", [](const RunState& state) { return state.time.batch; }},
      {"sample", [](const RunState& state) { return state.time.sample; }},
      {"token", [](const RunState& state) { return state.time.token; }},
      {"total_wct", [](const RunState& state) { return state.time.total_wct; }},
      {"epoch", [](const RunState& state) { return state.time.epoch; }},
      {"batch_in_epoch", [](const RunState& state) { return state.time.batch_in_epoch; }},
      {"sample_in_epoch", [](const RunState& state) { return state.time.sample_in_epoch; }},
      {"token_in_epoch", [](const RunState& state) { return state.time.token_in_epoch; }},
      {"epoch_wct", [](const RunState& state) { return state.time.epoch_wct; }},
      {"world_size", [](const RunState& state) { return state.world; }},
  };
  return all;
}

std::vector<std::string> names_of_placeholders() {
  std::vector<std::string> names = {"run_name"};
  for (const auto& time : times_of_a_name()) names.push_back(time.name);
  return names;
}

[[noreturn]] void refuse(const std::string& placeholder) {
  for (const char* rank_name : {"rank", "local_rank", "node_rank"})
    if (placeholder == rank_name)
      throw UserError("a checkpoint is one folder for all ranks, with a file of each rank in it; leave {" +
                      placeholder + "} out, as in " + CheckpointNames::kDefault);
  refuse_placeholder(placeholder, names_of_placeholders());
}

void require_folder_name(const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos)
    throw UserError("expected the name of a folder, without /");
  if (name[0] == '.') throw UserError("names that begin with a dot are those of unfinished checkpoints");
  if (name.starts_with("earlier")) throw UserError("earlier is where checkpoints are put aside");
}

std::string with_run_name(const std::string& pattern, const std::string& run_name) {
  std::string out = pattern;
  const std::string placeholder = "{run_name}";
  std::size_t at = 0;
  while ((at = out.find(placeholder, at)) != std::string::npos) {
    out.replace(at, placeholder.size(), run_name);
    at += run_name.size();
  }
  return out;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("^$\\.*+?()[]{}|").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

bool grows(const std::string& placeholder) {
  return !placeholder.ends_with("_in_epoch") && placeholder != "epoch_wct" && placeholder != "world_size";
}

std::string number_text(const std::string& placeholder, double value) {
  const bool is_seconds = placeholder.ends_with("_wct");
  if (!is_seconds) return std::to_string(static_cast<int64_t>(value));
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

}  // namespace

CheckpointNames::CheckpointNames(const std::string& pattern, const std::string& run_name)
    : pattern_(with_run_name(pattern, run_name)) {
  require_folder_name(pattern_);
  std::string fitting;
  for (const auto& [text, placeholder] : parts_of_pattern(pattern_)) {
    fitting += escaped(text);
    if (!placeholder) continue;
    const auto is_it = [&name = *placeholder](const Placeholder& one) { return name == one.name; };
    if (std::ranges::none_of(times_of_a_name(), is_it)) refuse(*placeholder);
    placeholders_.push_back(*placeholder);
    fitting += "([0-9.]+)";
  }
  fitting_ = std::regex(fitting);
  if (!placeholders_.empty() && std::ranges::none_of(placeholders_, grows))
    throw UserError("checkpoints of different steps would get the same name; add {batch}");
}

// In "{epoch}{batch_in_epoch}", 1 and 10 look like 11 and 0. Numbers that all grow cannot: none gets shorter.
std::set<std::string> CheckpointNames::readable() const {
  std::set<std::string> all, adjacent;
  const auto end = [&] {
    if (adjacent.size() == 1 || std::ranges::all_of(adjacent, grows))
      all.insert(adjacent.begin(), adjacent.end());
    adjacent.clear();
  };
  for (const auto& [text, placeholder] : parts_of_pattern(pattern_)) {
    if (!std::ranges::all_of(text, is_digit)) end();
    if (placeholder) adjacent.insert(*placeholder);
  }
  end();
  return all;
}

std::string CheckpointNames::at(const RunState& state) const {
  std::string name;
  for (const auto& [text, placeholder] : parts_of_pattern(pattern_)) {
    name += text;
    for (const auto& time : times_of_a_name())
      if (placeholder == time.name) name += number_text(time.name, time.value(state));
  }
  return name;
}

// Steps may be shorter than the digits of {total_wct}.
bool CheckpointNames::name_each_step(bool counts_tokens) const {
  const std::set<std::string> readable = this->readable();
  const auto has = [&readable](const char* name) { return readable.contains(name); };
  return has("batch") || has("sample") || (counts_tokens && has("token")) ||
         (has("epoch") &&
          (has("batch_in_epoch") || has("sample_in_epoch") || (counts_tokens && has("token_in_epoch"))));
}

std::vector<double> CheckpointNames::times(const std::string& name) const {
  std::smatch match;
  std::vector<double> values;
  if (!std::regex_match(name, match, fitting_)) return values;
  for (const auto& time : times_of_a_name())
    for (std::size_t i = 0; i < placeholders_.size(); ++i)
      if (placeholders_[i] == time.name) values.push_back(std::strtod(match[i + 1].str().c_str(), nullptr));
  return values;
}

std::vector<std::string> CheckpointNames::ordered(const std::vector<std::string>& names) const {
  std::vector<std::pair<std::vector<double>, std::string>> timed;
  for (const auto& name : names)
    if (fits(name)) timed.emplace_back(times(name), name);
  std::stable_sort(timed.begin(), timed.end(), [](auto& a, auto& b) { return a.first < b.first; });
  std::vector<std::string> fitting;
  for (auto& [time, name] : timed) fitting.push_back(std::move(name));
  return fitting;
}

// Any nonce fits: the folder is from another attempt.
bool CheckpointNames::fits_unfinished(const std::string& name) const {
  if (!name.starts_with('.')) return false;
  for (std::size_t dash = name.find('-'); dash != std::string::npos; dash = name.find('-', dash + 1))
    if (fits(name.substr(1, dash - 1))) return true;
  return false;
}

std::string unfinished_name(const std::string& name, const std::string& nonce) {
  return "." + name + "-" + nonce;
}

std::string latest_name(const std::string& pattern, const std::string& run_name) {
  if (pattern.empty()) return "";
  const std::string name = with_run_name(pattern, run_name);
  require_folder_name(name);
  for (const auto& [text, placeholder] : parts_of_pattern(name)) {
    if (!placeholder) continue;
    const auto names = names_of_placeholders();
    if (std::ranges::count(names, *placeholder) == 0) refuse(*placeholder);
    throw UserError("the link moves on to each new checkpoint; leave {" + *placeholder + "} out");
  }
  return name;
}

std::string unfinished_folder(const std::string& checkpoints, const std::string& name,
                              const std::string& nonce) {
  return checkpoints + "/" + unfinished_name(name, nonce);
}

}  // namespace tutti
