#include "runtime/user_errors.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace tutti {
namespace {

constexpr std::size_t kMostShown = 20;

// Line 0, such as a section that is missing or an option of the command line, comes last.
int place_of(const UserError& error) {
  const int line = error.position().line;
  return line > 0 ? line : std::numeric_limits<int>::max();
}

std::vector<UserError> by_line(std::vector<UserError> errors) {
  std::ranges::stable_sort(errors, {}, place_of);
  return errors;
}

std::string count_text(const std::vector<UserError>& errors) {
  std::string file;
  for (const UserError& error : errors)  // not an option's
    if (file.empty() && !error.position().file.starts_with('-')) file = error.position().file;
  return std::to_string(errors.size()) + " errors" + (file.empty() ? "" : " in " + file);
}

std::string text_of(const std::vector<UserError>& errors) {
  std::string text;
  for (std::size_t i = 0; i < std::min(errors.size(), kMostShown); ++i)
    text += (i == 0 ? "" : "error: ") + std::string(errors[i].what()) + "\n\n";
  if (errors.size() > kMostShown) text += "...\n";
  return text + count_text(errors);
}

}  // namespace

UserErrors::UserErrors(std::vector<UserError> errors)
    : UserError(text_of(errors = by_line(std::move(errors)))), errors_(std::move(errors)) {}

void MistakeCollector::add(const UserError& error) {
  if (const auto* several = dynamic_cast<const UserErrors*>(&error)) {
    for (const UserError& mistake : several->each()) add(mistake);
    return;
  }
  const auto same = [&](const UserError& other) { return std::string(other.what()) == error.what(); };
  if (std::ranges::none_of(errors_, same)) errors_.push_back(error);
}

void MistakeCollector::throw_all() const {
  if (errors_.size() == 1) throw errors_.front();
  if (!errors_.empty()) throw UserErrors(errors_);
}

}  // namespace tutti
