#include "data/tables/series_windows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "io/tables/csv_file.h"
#include "recipe/wrong_key.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

// Rows of another array, several behind each other.
class ConsecutiveRows final : public ArrayRows {
 public:
  ConsecutiveRows(ArrayRowsPtr below, std::size_t row_bytes, std::vector<int64_t> rows,
                  std::vector<int64_t> firsts, int64_t length)
      : below_(std::move(below)),
        row_bytes_(row_bytes),
        rows_(std::move(rows)),
        firsts_(std::move(firsts)),
        length_(static_cast<std::size_t>(length)) {}

  void gather(std::span<const int64_t> samples, std::byte* to) const override {
    for (const int64_t sample : samples) {
      const auto first = static_cast<std::size_t>(firsts_[static_cast<std::size_t>(sample)]);
      below_->gather(std::span(rows_).subspan(first, length_), to);
      to += length_ * row_bytes_;
    }
  }

 private:
  ArrayRowsPtr below_;
  std::size_t row_bytes_;
  std::vector<int64_t> rows_, firsts_;
  std::size_t length_;
};

// Texts of equal form sort by time: the year is first, and the same digits and signs follow. An offset from
// UTC is a part of the form. "" = the text does not begin with a year.
std::string form_of_time(std::string_view text) {
  constexpr std::size_t kYear = 4, kDate = 10;
  std::string form;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i > kDate && (text[i] == '+' || text[i] == '-')) return form + std::string(text.substr(i));
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (is_digit != (i < kYear) && i <= kYear) return "";
    form += is_digit ? '0' : text[i];
  }
  return form.size() > kYear ? form : "";
}

std::string needed_rows(const SeriesOptions& options) {
  return "the " + std::to_string(options.window + options.horizon) + " rows of a window and its target";
}

StoredArray consecutive(StoredArray array, const std::vector<int64_t>& rows,
                        const std::vector<int64_t>& firsts, int64_t length) {
  const std::size_t bytes = row_bytes(array.shape, array.dtype);
  array.rows = std::make_unique<const ConsecutiveRows>(std::move(array.rows), bytes, rows, firsts, length);
  array.shape[0] = std::ssize(firsts);
  return array;
}

}  // namespace

void SeriesRows::choose(const TableFile& file, ColumnChoice& choice) const {
  if (!options_.series.empty())
    choice.add(require_column(file, options_.series, "series").name, CellType::kText);
  if (!options_.order.empty())
    choice.add(require_column(file, options_.order, "order").name, CellType::kText);
}

void SeriesRows::add(const TableFile& file, std::span<const std::string_view> texts) {
  std::size_t next = 0;
  for (const auto& [column, to] : {std::pair(&options_.series, &names_), {&options_.order, &places_}}) {
    if (column->empty()) continue;
    const std::string_view text = texts[next++];
    if (!text.data())
      throw UserError({file.path()}, file.place() + ", column '" + shown(*column) + "': a missing value");
    if (to == &places_)
      add_place(file, text);
    else
      to->emplace_back(text);
  }
  files_.push_back(file_);
}

void SeriesRows::add_place(const TableFile& file, std::string_view text) {
  const auto number = table_number(text);
  if (files_.empty() && !number) form_ = form_of_time(text);
  const bool is_like_first = number ? form_.empty() && !std::isnan(*number) && places_.empty()
                                    : !form_.empty() && form_of_time(text) == form_;
  if (!is_like_first)
    throw UserError({file.path()}, file.place() + ", column '" + shown(options_.order) + "': '" +
                                       shown(std::string(text)) +
                                       "' has no place in the order, which takes numbers alone, or times of "
                                       "a single form, such as 2024-05-31 or 2024-05-31T07:00");
  if (number)
    numbers_.push_back(*number);
  else
    places_.emplace_back(text);
}

void SeriesRows::finish() {
  std::vector<int64_t> series = files_;
  std::map<std::string, int64_t> numbers;
  for (std::size_t i = 0; i < names_.size(); ++i)
    series[i] = numbers.try_emplace(names_[i], std::ssize(numbers)).first->second;
  rows_.resize(files_.size());
  std::iota(rows_.begin(), rows_.end(), 0);
  std::ranges::stable_sort(rows_, [&](int64_t first, int64_t second) {
    const auto a = static_cast<std::size_t>(first), b = static_cast<std::size_t>(second);
    if (series[a] != series[b]) return series[a] < series[b];
    if (!places_.empty()) return places_[a] < places_[b];
    return !numbers_.empty() && numbers_[a] < numbers_[b];
  });
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (i == 0 ||
        series[static_cast<std::size_t>(rows_[i])] != series[static_cast<std::size_t>(rows_[i - 1])])
      begins_.push_back(static_cast<int64_t>(i));
  begins_.push_back(std::ssize(rows_));
}

std::vector<bool> SeriesRows::last_rows(double held_out) const {
  const auto all = static_cast<double>(rows_.size());
  const double share = held_out < 1 ? held_out : held_out / all;
  std::vector<bool> last(rows_.size());
  int64_t most = 0;
  for (std::size_t s = 0; s + 1 < begins_.size(); ++s) {
    const int64_t length = begins_[s + 1] - begins_[s];
    const int64_t count = std::min<int64_t>(std::llround(share * static_cast<double>(length)), length);
    most = std::max(most, count);
    for (int64_t i = begins_[s + 1] - count; i < begins_[s + 1]; ++i)
      last[static_cast<std::size_t>(rows_[static_cast<std::size_t>(i)])] = true;
  }
  if (most < options_.window + options_.horizon)
    throw WrongKey("split", {},
                   "the last rows of a series are at most " + std::to_string(most) + ", too few for " +
                       needed_rows(options_));
  return last;
}

SeriesWindows::SeriesWindows(const SeriesRows& series, const SeriesOptions& options)
    : rows_(series.rows()), window_(options.window) {
  const std::vector<int64_t>& begins = series.begins();
  const int64_t to_target = options.window - 1 + options.horizon;
  int64_t too_short = 0;
  for (std::size_t s = 0; s + 1 < begins.size(); ++s) {
    too_short += begins[s + 1] - begins[s] <= to_target;
    for (int64_t first = begins[s]; first + to_target < begins[s + 1]; first += options.stride) {
      firsts_.push_back(first);
      targets_.push_back(first + to_target);
    }
  }
  const std::string needed = needed_rows(options);
  if (firsts_.empty()) throw WrongKey("window", {}, "no series has " + needed);
  if (too_short > 0)
    advice_ = grouped(too_short) + " of " + grouped(std::ssize(begins) - 1) + " series lack " + needed +
              ", and have no samples";
}

std::vector<int64_t> SeriesWindows::target_rows() const {
  std::vector<int64_t> rows;
  for (const int64_t place : targets_) rows.push_back(rows_[static_cast<std::size_t>(place)]);
  return rows;
}

StoredArray SeriesWindows::inputs(StoredArray rows) const {
  StoredArray array = consecutive(std::move(rows), rows_, firsts_, window_);
  array.shape.insert(array.shape.begin() + 1, window_);
  return array;
}

StoredArray SeriesWindows::targets(StoredArray rows) const {
  return consecutive(std::move(rows), rows_, targets_, 1);
}

}  // namespace tutti
