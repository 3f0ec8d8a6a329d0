#include "data/tables/table_dataset.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "data/tables/series_windows.h"
#include "data/tables/table_rows.h"
#include "io/tables/column_reasons.h"
#include "recipe/wrong_key.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// Past numbers of the target may be inputs.
bool may_have_targets_as_inputs(const TableDataset::Options& options, FittedTable::Target target) {
  const bool are_numbers = target == FittedTable::Target::kNumber || target == FittedTable::Target::kNumbers;
  return options.series.window > 0 && options.series.horizon > 0 && are_numbers;
}

// Each column is an input, a text or a target, once.
void require_once(const TableDataset::Options& options, bool may_share) {
  ColumnUses().add("classes", options.targets.classes);
  ColumnUses uses;
  const auto shared = std::ranges::count_if(
      options.targets.columns, [&](const std::string& name) { return has(options.inputs, name); });
  if (may_share && shared > 0 && shared < std::ssize(options.targets.columns))
    throw WrongKey("inputs", {}, "expected all columns of target among the inputs, or none");
  if (!may_share || shared == 0) uses.add("target", options.targets.columns);
  uses.add("inputs", options.inputs);
  for (const auto& [key, column] :
       {std::pair("series", options.series.series), {"order", options.series.order}})
    if (!column.empty() && options.series.window > 0) uses.add(key, {column});
  uses.add("one_hot", options.one_hot);
}

// The inputs where the recipe names none, and what they leave out.
struct DefaultInputs {
  std::vector<std::string> names;
  std::vector<const TableColumn*> left_out;

  DefaultInputs(const TableFiles& files, const TableDataset::Options& options) {
    const bool shares = may_have_targets_as_inputs(options, options.targets.found_in(*files[0]));
    for (const TableColumn& column : files[0]->columns()) {
      const bool is_target = has(options.targets.columns, column.name);
      if ((is_target && !shares) || has(options.one_hot, column.name)) continue;
      if (has({options.series.series, options.series.order}, column.name) && !column.name.empty()) continue;
      if (no_input_reason(column).empty())
        names.push_back(column.name);
      else
        left_out.push_back(&column);
    }
  }
};

std::string advice_on_inputs(const TableFiles& files, const TableDataset::Options& options) {
  if (!options.inputs.empty()) return "";
  const auto left_out = DefaultInputs(files, options).left_out;
  if (left_out.empty()) return "";
  return "no inputs are " + reasons_text(left_out) +
         "; inputs = [...] names the columns of numbers to read, one_hot = [...] those of texts";
}

FittedTable chosen_columns(const TableFiles& files, const TableDataset::Options& options) {
  const TableFile& file = *files.at(0);
  FittedTable fitted{.numbers = options.inputs,
                     .target = options.targets.columns,
                     .classes = options.targets.classes,
                     .series = options.series};
  fitted.target_is = options.targets.found_in(file);
  require_once(options, may_have_targets_as_inputs(options, fitted.target_is));
  for (const std::string& name : options.inputs) require_column(file, name, "inputs");
  for (const std::string& name : options.one_hot) {
    require_column(file, name, "one_hot");
    fitted.texts.push_back({name, {}});
  }
  if (!fitted.numbers.empty()) return fitted;
  const DefaultInputs inputs(files, options);
  fitted.numbers = inputs.names;
  if (fitted.numbers.empty() && fitted.texts.empty())
    throw WrongKey("inputs", {},
                   file.path() + " has no columns of numbers but the targets; one_hot takes texts: " +
                       reasons_text(inputs.left_out));
  return fitted;
}

std::vector<WantedColumn> wanted_columns(const TableFile& file, const FittedTable& fitted,
                                         const SeriesRows& series, bool with_target) {
  ColumnChoice choice(file);
  for (const std::string& name : fitted.numbers) choice.add(name, CellType::kNumber);
  for (const auto& text : fitted.texts) choice.add(text.column, CellType::kText);
  if (fitted.series.window > 0) series.choose(file, choice);
  if (with_target && !fitted.has_targets_as_inputs()) choice.add_targets(fitted);
  return choice.cells();
}

}  // namespace

struct TableDataset::Read {
  FittedTable fitted;
  std::vector<StoredArray> arrays;
  int64_t bytes = 0;
  std::string advice;
  std::vector<int64_t> target_rows = {};

  // `options` only for the table of the training.
  static Read all(const TableFiles& files, FittedTable fitted, const Options* options, int64_t ignore_index,
                  const std::vector<bool>* kept) {
    const bool with_target = options || has_targets(files, fitted);
    TableRows rows(fitted, {.fits = options != nullptr,
                            .normalizes = options && options->normalize,
                            .normalizes_target = options && options->normalize_target,
                            .fills_missing = options && options->fills_missing,
                            .may_guess_classes = options && options->targets.type == TableTarget::kAuto,
                            .with_target = with_target,
                            .ignore_index = ignore_index,
                            .rows = kept});
    SeriesRows series(fitted.series);
    for (const auto& file : files) {
      series.begin_file();
      rows.read(*file, wanted_columns(*file, fitted, series, with_target), [&](auto, auto texts) {
        if (fitted.series.window > 0) series.add(*file, texts.subspan(fitted.texts.size()));
      });
    }
    rows.finish();
    Read read{.fitted = rows.fitted()};
    if (options)
      read.advice = advice_lines(
          files, {advice_on_inputs(files, *options),
                  options->inputs.empty() ? row_numbers_text(rows.row_numbers.among(fitted.numbers)) : "",
                  options->targets.advice(*files[0], fitted.target_is), rows.advice()});
    else
      read.advice = advice_lines(files, {rows.advice()});
    read.add(rows, files[0]->path());
    if (fitted.series.window > 0) read.add_windows(series);
    return read;
  }

  // Samples are windows of the rows.
  void add_windows(SeriesRows& series) {
    series.finish();
    const SeriesWindows windows(series, fitted.series);
    target_rows = windows.target_rows();
    arrays[0] = windows.inputs(std::move(arrays[0]));
    if (arrays.size() > 1) arrays[1] = windows.targets(std::move(arrays[1]));
    advice += (advice.empty() || windows.advice().empty() ? "" : "\n") + windows.advice();
  }

  void add(TableRows& rows, const std::string& file) {
    const int64_t count = rows.rows();
    bytes = rows.bytes();
    arrays.push_back(array_in_memory("input", file, std::move(rows.inputs), {count, fitted.inputs()}));
    if (auto target = rows.take_target(file)) arrays.push_back(*std::move(target));
  }
};

TableDataset::TableDataset(const TableFiles& files, const Options& options)
    : TableDataset(Read::all(files, chosen_columns(files, options), &options, options.targets.ignore_index,
                             options.rows),
                   options.targets.ignore_index) {}

TableDataset::TableDataset(const TableFiles& files, const FittedTable& fitted, int64_t ignore_index,
                           const std::vector<bool>* rows)
    : TableDataset(Read::all(files, fitted, nullptr, ignore_index, rows), ignore_index) {}

TableDataset::TableDataset(Read read, int64_t ignore_index)
    : ArrayDataset(std::move(read.arrays), {.ignore_index = ignore_index, .advice = std::move(read.advice)}),
      fitted_(std::move(read.fitted)),
      bytes_(read.bytes),
      target_rows_(std::move(read.target_rows)) {}

uint64_t TableDataset::digest() const { return fitted_.digest(ArrayDataset::digest()); }

}  // namespace tutti
