#include "analysis/run_messages.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "io/formats/run_metrics.h"
#include "io/json/json_line.h"
#include "io/run_paths.h"
#include "runtime/disk.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 16;
constexpr std::size_t kMostLineBytes = std::size_t{1} << 20;
constexpr double kShowEveryMs = 10'000;
constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

using Numbers = std::vector<std::pair<std::string, double>>;

double number_of(const Numbers& numbers, std::string_view name, double fallback) {
  const auto number = std::ranges::find(numbers, name, &Numbers::value_type::first);
  return number == numbers.end() ? fallback : number->second;
}

int64_t step_of(const Numbers& numbers) { return static_cast<int64_t>(number_of(numbers, "step", 0)); }

// The first number behind `word` in a line, or -1.
int64_t number_behind(std::string_view line, std::string_view word) {
  const std::size_t at = line.find(word);
  if (at == line.npos) return -1;
  int64_t number = -1;
  std::from_chars(line.data() + at + word.size(), line.data() + line.size(), number);
  return number;
}

// The step that a line of the log names, by itself or by the usual name of a checkpoint; -1 = none.
int64_t step_in_log(std::string_view line) {
  const int64_t step = number_behind(line, " step ");
  return step >= 0 ? step : number_behind(line, "-ba");
}

std::string metrics_text(const Numbers& numbers) {
  const bool is_step = number_of(numbers, "lr", -1) >= 0;
  std::string text = formatted("step %lld  epoch %lld", static_cast<long long>(step_of(numbers)),
                               static_cast<long long>(number_of(numbers, "epoch", 0)));
  const auto add = [&](const std::string& name, double value) {
    text += "  " + name + formatted(" %.6g", without_nan_sign(value));
  };
  for (const auto& [name, value] : numbers) {
    const bool is_metric = name.find('/') != name.npos;
    if (!is_step && is_metric) add(evaluated_name(name), value);
    if (is_step && (is_metric || name == "loss" || name == "lr" || name == "samples_per_s")) add(name, value);
  }
  return text;
}

}  // namespace

bool FollowedFile::is_replaced() const {
  const PosixDisk disk;
  const uint64_t identity = disk.identity(path_);
  if (identity == 0) return false;
  return !file_ || identity != identity_ || disk.size(path_) < offset_;
}

bool FollowedFile::read_more() {
  std::size_t count = 0;
  text_.erase(0, std::exchange(begin_, 0));
  const std::size_t kept = text_.size();
  if (file_) {
    text_.resize(kept + kChunkBytes);
    count = file_->read(text_.data() + kept, kChunkBytes);
    text_.resize(kept + count);
    offset_ += count;
  }
  if (count > 0) return true;
  if (!is_replaced()) return false;
  identity_ = PosixDisk().identity(path_);
  file_.emplace(path_);
  if (!file_->problem().empty()) {
    file_.reset();
    return false;
  }
  text_.clear();
  offset_ = 0;
  too_long_ = false;
  ++opened_;
  return true;
}

std::optional<std::string> FollowedFile::next_line() {
  for (std::size_t searched = 0;;) {
    const std::size_t end = text_.find('\n', begin_ + searched);
    if (end != text_.npos) {
      std::string line = text_.substr(begin_, end - begin_);
      begin_ = end + 1;
      searched = 0;
      if (!std::exchange(too_long_, false)) return line;
      continue;
    }
    if (text_.size() - begin_ > kMostLineBytes) {
      too_long_ = true;
      begin_ = text_.size();
    }
    searched = text_.size() - begin_;
    const int64_t opened = opened_;
    if (!read_more()) return std::nullopt;
    if (opened_ != opened) searched = 0;
  }
}

RunMessages::RunMessages(const std::string& run_dir, int rank)
    : log_(path_in_run(run_dir, "log/rank-" + std::to_string(rank) + ".log")) {
  if (rank == 0) metrics_.emplace(path_in_run(run_dir, kMetricsFile));
}

void RunMessages::print_line_of_metrics(const std::string& line, const Print& print) {
  const Numbers numbers = json_numbers_of(line).members;
  const double step_ms = number_of(numbers, "step_ms", -1);
  const bool is_first = seen_step_ == 0;
  seen_step_ = std::max(seen_step_, step_of(numbers));
  if (step_ms < 0) {
    print(metrics_text(numbers));
    return;
  }
  hidden_ms_ += step_ms;
  hidden_ = metrics_text(numbers);
  if (!is_first && hidden_ms_ < kShowEveryMs) return;
  print(std::exchange(hidden_, ""));
  hidden_ms_ = 0;
}

bool RunMessages::print_metrics(int64_t last_step, const Print& print) {
  bool has_new = false;
  while (metrics_) {
    const int64_t replaced = metrics_->replaced();
    if (!waiting_) waiting_ = metrics_->next_line();
    if (metrics_->replaced() != replaced && replaced >= 0) skipped_to_ = seen_step_;
    if (!waiting_) break;
    const int64_t step = json_integer(*waiting_, "step", -1);
    if (step > last_step) break;
    if (step > skipped_to_) print_line_of_metrics(*waiting_, print);
    waiting_.reset();
    has_new = true;
  }
  return has_new;
}

bool RunMessages::print_new(bool is_over, const Print& print) {
  bool has_new = false;
  while (const auto line = log_.next_line()) {
    if (const int64_t step = step_in_log(*line); step >= 0) print_metrics(step, print);
    print(*line);
    has_new = true;
  }
  has_new = print_metrics(kAll, print) || has_new;
  if (is_over && !hidden_.empty()) print(std::exchange(hidden_, ""));
  return has_new;
}

}  // namespace tutti
