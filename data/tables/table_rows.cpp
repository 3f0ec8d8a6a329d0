#include "data/tables/table_rows.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "data/tables/class_guess.h"
#include "data/tables/table_columns.h"
#include "data/tables/table_dataset.h"
#include "io/tables/csv_file.h"
#include "recipe/wrong_key.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"
#include "tensors/memory/meter.h"

namespace tutti {
namespace {

using Target = FittedTable::Target;

// Sorts by value if all names are numbers.
bool less_name(const std::string& first, const std::string& second, bool are_numbers) {
  return are_numbers ? *table_number(first) < *table_number(second) : first < second;
}

}  // namespace

void require_memory(const TableFile& file, int64_t rows, int64_t columns) {
  const double bytes = static_cast<double>(rows) * static_cast<double>(columns) * sizeof(float);
  const double most =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes > most)
    throw UserError({file.path()}, "its numbers need " + formatted("%.4g MB", bytes / kBytesPerMb) +
                                       " of memory, and this machine has " +
                                       formatted("%.4g", most / kBytesPerMb));
}

TextNumbers::TextNumbers(const std::vector<std::string>& names) : names_(names), is_given_(!names.empty()) {
  for (std::size_t i = 0; i < names.size(); ++i) numbers_.emplace(names[i], static_cast<int64_t>(i));
}

int64_t TextNumbers::number(std::string_view text, std::size_t most) {
  if (const auto number = numbers_.find(text); number != numbers_.end()) return number->second;
  if (is_given_ || names_.size() == most) return -1;
  names_.emplace_back(text);
  numbers_.emplace(text, std::ssize(names_) - 1);
  return std::ssize(names_) - 1;
}

std::vector<int64_t> TextNumbers::sort() {
  const bool are_numbers = std::ranges::all_of(names_, [](const std::string& name) {
    const auto number = table_number(name);
    return number && !std::isnan(*number);
  });
  std::vector<std::size_t> order(names_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return less_name(names_[a], names_[b], are_numbers); });
  std::vector<int64_t> sorted(order.size());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sorted[order[i]] = static_cast<int64_t>(i);
    names.push_back(names_[order[i]]);
  }
  names_ = std::move(names);
  return sorted;
}

TableRows::TableRows(FittedTable fitted, const Options& options)
    : row_numbers(options.fits ? fitted.numbers.size() : 0),
      fitted_(std::move(fitted)),
      options_(options),
      width_(fitted_.numbers.size()),
      waits_(options.fits && (options.normalizes || options.fills_missing) && width_ > 0),
      rounding_(width_ + fitted_.target.size()),
      names_(fitted_.classes) {
  for (const auto& text : fitted_.texts) texts_.emplace_back(text.categories);
  if (options_.with_target && fitted_.has_targets_as_inputs())
    for (const std::string& name : fitted_.target)
      target_places_.push_back(
          static_cast<std::size_t>(std::ranges::find(fitted_.numbers, name) - fitted_.numbers.begin()));
  unknown_.resize(texts_.size());
}

void TableRows::read(TableFile& file, const std::vector<WantedColumn>& columns, const VisitRow& also) {
  file_ = &file;
  first_seen_ = seen_;
  row_numbers.begin_file();
  reserve(file);
  file.read(columns, [&](auto numbers, auto texts) {
    row_numbers.add(numbers.first(width_));
    if (!keeps_next()) return;
    if (also) also(numbers, texts);
    visit(numbers, texts);
  });
}

bool TableRows::keeps_next() {
  const std::size_t row = seen_++;
  return !options_.rows || (row < options_.rows->size() && (*options_.rows)[row]);
}

// Memory that is reserved is not used until it is written.
void TableRows::reserve(const TableFile& file) {
  require_memory(file, file.most_rows(), std::ssize(fitted_.numbers) * (waits_ ? 2 : 1));
  if (!waits_) inputs.reserve(inputs.size() + static_cast<std::size_t>(file.most_rows()) * width_);
}

void TableRows::visit(std::span<const double> numbers, std::span<const std::string_view> texts) {
  if (!target_places_.empty()) add_shared_target(numbers);  // before the inputs, whose errors say less
  const auto cells = numbers.first(width_);
  for (std::size_t c = 0; c < width_; ++c)
    if (!std::isfinite(static_cast<float>(cells[c]))) require_number(cells[c], fitted_.numbers[c]);
  if (waits_) {
    auto& block = block_with_room();
    block.insert(block.end(), cells.begin(), cells.end());
  } else {
    for (std::size_t c = 0; c < width_; ++c) inputs.push_back(input_of(cells[c], c));
  }
  if (options_.fits && !options_.normalizes)
    for (std::size_t c = 0; c < width_; ++c) rounding_[c].add(cells[c]);
  for (std::size_t c = 0; c < texts_.size(); ++c)
    text_numbers_.push_back(static_cast<int32_t>(category(texts[c], c)));
  ++rows_;
  if (options_.with_target && target_places_.empty()) add_target(numbers.subspan(width_), texts);
}

void TableRows::add_shared_target(std::span<const double> numbers) {
  std::vector<double> targets;
  for (const std::size_t place : target_places_) targets.push_back(numbers[place]);
  add_target(targets, {});
}

void TableRows::add_target(std::span<const double> numbers, std::span<const std::string_view> texts) {
  if (fitted_.target_is == Target::kName)
    classes.push_back(name_number(names_, texts.back(), fitted_.target[0], TableDataset::kMostClasses));
  else if (fitted_.target_is == Target::kClass)
    classes.push_back(class_number(numbers[0]));
  else
    for (std::size_t c = 0; c < numbers.size(); ++c) {
      if (std::isnan(numbers[c])) fail(fitted_.target[c], "a missing value; each row needs its target");
      require_number(numbers[c], fitted_.target[c]);
      if (options_.fits && options_.normalizes_target) {
        waiting_targets_.push_back(numbers[c]);
        continue;
      }
      targets.push_back(target_of(numbers[c], c));
      if (options_.fits && target_places_.empty()) rounding_[width_ + c].add(numbers[c]);
    }
}

// Large blocks go back to the system when they are freed.
std::vector<double>& TableRows::block_with_room() {
  constexpr std::size_t kNumbers = std::size_t{1} << 19;
  if (waiting_.empty() || waiting_.back().size() + width_ > waiting_.back().capacity())
    waiting_.emplace_back().reserve(std::max(kNumbers, width_));
  return waiting_.back();
}

void TableRows::require_number(double value, const std::string& column) const {
  const bool fills = options_.fits ? options_.fills_missing : !fitted_.missing.empty();
  if (std::isnan(value) && !fills)
    fail(column, "a missing value; missing = \"mean\" in the training data takes the column's mean");
  if (std::isinf(static_cast<float>(value))) fail(column, formatted("%g does not fit into float32", value));
}

// Float64 until it is normalized: float32 has 64 neighbours of a time in seconds in one number.
float TableRows::input_of(double value, std::size_t column) const {
  if (std::isnan(value)) value = fitted_.missing[column];
  if (!fitted_.mean.empty()) value = (value - fitted_.mean[column]) / fitted_.std[column];
  return static_cast<float>(value);
}

float TableRows::target_of(double value, std::size_t column) const {
  if (!fitted_.target_mean.empty())
    value = (value - fitted_.target_mean[column]) / fitted_.target_std[column];
  return static_cast<float>(value);
}

int64_t TableRows::class_number(double value) const {
  const bool is_whole = std::abs(value) < 1e15 && value == std::trunc(value);
  const int64_t number = is_whole ? static_cast<int64_t>(value) : 0;
  const bool is_ignored = number == kIgnoredTarget || number == options_.ignore_index;
  if (!is_whole || (number < 0 && !is_ignored))
    fail(fitted_.target[0], formatted("%g is not a class: those of the training are 0 to %lld", value,
                                      static_cast<long long>(fitted_.num_classes - 1)));
  return number;
}

int64_t TableRows::name_number(TextNumbers& names, std::string_view text, const std::string& column,
                               std::size_t most) {
  if (!text.data()) fail(column, "a missing value; texts have no mean");
  const std::size_t known = names.names().size();
  const int64_t number = names.number(text, most);
  if (number < 0 && names.is_given())
    fail(column, "'" + shown(text) + "' is none of the " + std::to_string(names.names().size()) +
                     (options_.fits ? " classes" : " values in training"));
  if (number < 0) fail(column, "more than " + std::to_string(most) + " different values");
  if (names.names().size() > known) require_name(text, column, &names == &names_);
  return number;
}

// -1 in held-out rows for a text that no training row has.
int64_t TableRows::category(std::string_view text, std::size_t column) {
  TextNumbers& names = texts_[column];
  if (options_.rows && !options_.fits && text.data() && names.number(text, 0) < 0) {
    ++unknown_[column];
    return -1;
  }
  return name_number(names, text, fitted_.texts[column].column, TableDataset::kMostCategories);
}

// The names of classes are kept as lines.
void TableRows::require_name(std::string_view text, const std::string& column, bool is_class) const {
  const bool has_lines = is_class && text.find_first_of("\r\n") != std::string_view::npos;
  if (text.size() > TableDataset::kLongestName || !is_utf8(text) || has_lines)
    fail(column, "'" + shown(text) + "' is no name: expected a line of UTF-8, of at most " +
                     std::to_string(TableDataset::kLongestName) + " bytes");
}

void TableRows::fail(const std::string& column, const std::string& message) const {
  throw UserError({file_->path()}, file_->place() + ", column '" + shown(column) + "': " + message);
}

void TableRows::finish() {
  if (options_.fits) {
    sort_names();
    const bool are_numbers = options_.normalizes_target || !target_places_.empty();
    if (options_.may_guess_classes && !are_numbers && fitted_.target_is == Target::kNumber) guess_classes();
  }
  if (waits_ && rows_ > 0) add_waiting();
  add_waiting_targets();
  if (options_.normalizes_target && fitted_.target_mean.empty() && rows_ > 0)
    throw WrongKey("normalize_target", {}, "expected targets that are numbers; here they are classes");
  add_texts();
}

void TableRows::sort_names() {
  for (std::size_t c = 0; c < texts_.size(); ++c) {
    const auto sorted = texts_[c].sort();
    fitted_.texts[c].categories = texts_[c].names();
    for (std::size_t i = c; i < text_numbers_.size(); i += texts_.size())
      text_numbers_[i] = static_cast<int32_t>(sorted[static_cast<std::size_t>(text_numbers_[i])]);
  }
  if (fitted_.target_is != Target::kName) return;
  if (!names_.is_given()) {
    const auto sorted = names_.sort();
    for (int64_t& number : classes) number = sorted[static_cast<std::size_t>(number)];
  }
  fitted_.classes = names_.names();
  fitted_.num_classes = std::ssize(fitted_.classes);
}

// Whole numbers from 0 on without a gap are classes.
void TableRows::guess_classes() {
  ClassGuess guess;
  for (const float value : targets) guess.add(value);
  if (guess.classes() == 0) return;
  classes.assign(targets.begin(), targets.end());
  targets.clear();
  fitted_.target_is = Target::kClass;
  fitted_.num_classes = guess.classes();
}

// Calls visit with each number and its column.
template <class Visit>
void TableRows::for_each_waiting(const Visit& visit) {
  for (auto& block : waiting_)
    for (std::size_t i = 0; i < block.size(); i += width_)
      for (std::size_t c = 0; c < width_; ++c) visit(block[i + c], c);
}

void TableRows::add_waiting() {
  if (options_.fills_missing) fit_missing();
  if (options_.normalizes) fit_mean();
  inputs.reserve(static_cast<std::size_t>(rows_) * width_);
  for (auto& block : waiting_) {
    for (std::size_t i = 0; i < block.size(); i += width_)
      for (std::size_t c = 0; c < width_; ++c) inputs.push_back(input_of(block[i + c], c));
    block = {};
  }
}

void TableRows::fit_missing() {
  std::vector<double> sums(width_), counts(width_);
  for_each_waiting([&](double value, std::size_t c) {
    if (!std::isnan(value)) sums[c] += value, counts[c] += 1;
  });
  for (std::size_t c = 0; c < width_; ++c) {
    if (counts[c] == 0)
      throw UserError({file_->path()}, "column '" + shown(fitted_.numbers[c]) + "' has no numbers");
    fitted_.missing.push_back(sums[c] / counts[c]);
  }
  for_each_waiting([&](double& value, std::size_t c) {
    if (std::isnan(value)) value = fitted_.missing[c];
  });
}

// Mean and deviation of `width` columns, in float64. Deviations are of the population, as of sklearn's
// StandardScaler; that of a constant column is 1. `for_each` calls with each number and its column.
template <class ForEach>
void fit_columns(std::size_t width, std::span<const double> first, double count, std::vector<double>& mean,
                 std::vector<double>& deviation, const ForEach& for_each) {
  std::vector<double> sums(width), squares(width);
  for_each([&](double value, std::size_t c) { sums[c] += value - first[c]; });
  for (std::size_t c = 0; c < width; ++c) sums[c] = first[c] + sums[c] / count;
  for_each([&](double value, std::size_t c) { squares[c] += (value - sums[c]) * (value - sums[c]); });
  for (const double sum : squares) deviation.push_back(sum > 0 ? std::sqrt(sum / count) : 1);
  mean = std::move(sums);
}

void TableRows::fit_mean() {
  const std::vector<double> first(waiting_[0].begin(), waiting_[0].begin() + std::ssize(fitted_.numbers));
  fit_columns(width_, first, static_cast<double>(rows_), fitted_.mean, fitted_.std,
              [this](const auto& visit) { for_each_waiting(visit); });
}

void TableRows::add_waiting_targets() {
  if (waiting_targets_.empty()) return;
  const std::size_t width = fitted_.target.size();
  const std::vector<double> first(waiting_targets_.begin(),
                                  waiting_targets_.begin() + std::ssize(fitted_.target));
  const auto for_each = [&](const auto& visit) {
    for (std::size_t i = 0; i < waiting_targets_.size(); ++i) visit(waiting_targets_[i], i % width);
  };
  fit_columns(width, first, static_cast<double>(rows_), fitted_.target_mean, fitted_.target_std, for_each);
  for_each([&](double value, std::size_t c) { targets.push_back(target_of(value, c)); });
  waiting_targets_ = {};
}

std::string Rounding::text() const {
  constexpr double kMostOfRange = 1e-3;
  const double range = most_ - least_;
  if (!(range > 0) || largest_ <= kMostOfRange * range) return "";
  return formatted("within %.3g, of a range of %.6g", largest_, range);
}

std::string TableRows::advice() const {
  std::string lines;
  for (std::size_t c = 0; c < unknown_.size(); ++c)
    if (unknown_[c] > 0)
      lines += (lines.empty() ? "" : "\n") + std::to_string(unknown_[c]) + " of " + std::to_string(rows_) +
               " held-out rows have a value in column '" + shown(fitted_.texts[c].column) +
               "' that no row has in training; their inputs of the column are 0";
  for (std::size_t c = 0; c < rounding_.size(); ++c) {
    const bool is_input = c < width_;
    const std::string& column = is_input ? fitted_.numbers[c] : fitted_.target[c - width_];
    const std::string text = rounding_[c].text();
    if (text.empty()) continue;
    lines += (lines.empty() ? "" : "\n") + std::string("float32 keeps the numbers of column '") +
             shown(column) + "' " + text + (is_input ? "; normalize = true" : "; normalize_target = true") +
             " subtracts the mean before";
  }
  return lines;
}

void TableRows::add_texts() {
  if (texts_.empty()) return;
  require_memory(*file_, rows_, fitted_.inputs());
  const auto rows = static_cast<std::size_t>(rows_), all = static_cast<std::size_t>(fitted_.inputs());
  std::vector<float> wide(rows * all);
  for (std::size_t row = 0; row < rows; ++row) {
    float* to = std::copy_n(inputs.data() + row * width_, width_, wide.data() + row * all);
    for (std::size_t c = 0; c < texts_.size(); ++c) {
      if (const int32_t number = text_numbers_[row * texts_.size() + c]; number >= 0) to[number] = 1;
      to += fitted_.texts[c].categories.size();
    }
  }
  inputs = std::move(wide);
}

std::optional<StoredArray> TableRows::take_target(const std::string& file) {
  if (!classes.empty()) {
    auto array = array_in_memory("target", file, std::move(classes), {rows_});
    array.num_classes = fitted_.num_classes;
    return array;
  }
  if (targets.empty()) return std::nullopt;
  const bool is_list = fitted_.target_is == Target::kNumbers;
  return array_in_memory("target", file, std::move(targets),
                         is_list ? Shape{rows_, std::ssize(fitted_.target)} : Shape{rows_});
}

int64_t TableRows::bytes() const {
  return static_cast<int64_t>((inputs.size() + targets.size()) * sizeof(float) +
                              classes.size() * sizeof(int64_t));
}

}  // namespace tutti
