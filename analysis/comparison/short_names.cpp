#include "analysis/comparison/short_names.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>

#include "runtime/error.h"
#include "runtime/nearest_name.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::size_t kMostListed = 6;   // of the names that an ending fits
constexpr std::size_t kLeastOfWord = 3;  // letters

// "runs/one/" is called "one".
std::string folder_name(const std::string& run_dir) {
  const auto whole = std::filesystem::path(run_dir + '/').lexically_normal().parent_path();
  return whole.filename().empty() ? run_dir : whole.filename().string();
}

// The names with the ending; else those with the ending in other cases, or in the middle of a word:
// "accuracy" of "eval/MulticlassAccuracy".
std::vector<std::string> fitting(const std::string& ending, const std::vector<std::string>& names) {
  std::vector<std::string> fits;
  const auto keep = [&](const auto& fit) {
    if (fits.empty()) std::ranges::copy_if(names, std::back_inserter(fits), fit);
  };
  const std::string lower = lower_case(ending);
  keep([&](const std::string& name) { return ends_with_name(name, ending); });
  keep([&](const std::string& name) { return ends_with_name(lower_case(name), lower); });
  if (ending.size() >= kLeastOfWord)
    keep([&](const std::string& name) { return lower_case(name).ends_with(lower); });
  return fits;
}

// The name, or its last part, that is spelled most like the text.
std::string nearest_of(const std::string& text, const std::vector<std::string>& names) {
  std::vector<std::string> all = names;
  for (const std::string& name : names)
    if (const auto end = name.find_last_of("./"); end != name.npos) all.push_back(name.substr(end + 1));
  return nearest_name(text, all);
}

}  // namespace

std::vector<std::string> distinct_names(const std::vector<std::string>& run_dirs) {
  std::map<std::string, int> counts;
  for (const std::string& run_dir : run_dirs) ++counts[folder_name(run_dir)];
  std::vector<std::string> names;
  for (const std::string& run_dir : run_dirs) {
    const std::string name = folder_name(run_dir);
    names.push_back(counts[name] == 1 ? name : run_dir);
  }
  return names;
}

bool ends_with_name(const std::string& name, const std::string& ending) {
  if (!name.ends_with(ending) || ending.empty()) return false;
  if (name.size() == ending.size()) return true;
  const char before = name[name.size() - ending.size() - 1];
  return before == '.' || before == '/';
}

std::string short_name(const std::string& name, const std::vector<std::string>& among) {
  for (std::size_t at = name.find_last_of("./"); at != name.npos && at > 0;
       at = name.find_last_of("./", at - 1)) {
    const std::string ending = name.substr(at + 1);
    const bool is_number = ending.find_first_not_of("0123456789") == ending.npos;
    const auto fits =
        std::ranges::count_if(among, [&](const std::string& other) { return ends_with_name(other, ending); });
    if (!is_number && fits <= 1) return ending;
  }
  return name;
}

std::string meant_name(const std::string& ending, const std::vector<std::string>& names,
                       const std::vector<std::string>& preferred, const std::string& where) {
  if (std::ranges::count(names, ending) > 0) return ending;
  auto fits = fitting(ending, names);
  if (fits.size() > 1)
    if (const auto best = fitting(ending, preferred); !best.empty()) fits = best;
  if (fits.size() == 1) return fits.front();
  if (fits.empty()) {
    const std::string near = nearest_of(ending, names);
    throw UserError(where + ": no run has a metric or a key " + shown(ending) +
                    (near.empty() ? "" : "; did you mean " + near + "?"));
  }
  std::string all;
  for (std::size_t i = 0; i < std::min(fits.size(), kMostListed); ++i) all += (i ? ", " : "") + fits[i];
  throw UserError(where + ": " + shown(ending) + " may be " + all +
                  (fits.size() > kMostListed ? ", ..." : "") + "; write more of the name");
}

}  // namespace tutti
