#include "data/tables/table_dataset.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

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

// Each column is an input, a text or a target, once.
void require_once(const TableDataset::Options& options) {
  ColumnUses().add("classes", options.targets.classes);
  ColumnUses uses;
  uses.add("target", options.targets.columns);
  uses.add("inputs", options.inputs);
  uses.add("one_hot", options.one_hot);
}

// The inputs where the recipe names none, and what they leave out.
struct DefaultInputs {
  std::vector<std::string> names;
  std::vector<const TableColumn*> left_out;

  DefaultInputs(const TableFiles& files, const TableDataset::Options& options) {
    for (const TableColumn& column : files[0]->columns()) {
      if (has(options.targets.columns, column.name) || has(options.one_hot, column.name)) continue;
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
  require_once(options);
  FittedTable fitted{
      .numbers = options.inputs, .target = options.targets.columns, .classes = options.targets.classes};
  fitted.target_is = options.targets.found_in(file);
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

std::vector<WantedColumn> wanted_columns(const TableFile& file, const FittedTable& fitted, bool with_target) {
  ColumnChoice choice(file);
  for (const std::string& name : fitted.numbers) choice.add(name, CellType::kNumber);
  for (const auto& text : fitted.texts) choice.add(text.column, CellType::kText);
  if (with_target) choice.add_targets(fitted);
  return choice.cells();
}

}  // namespace

struct TableDataset::Read {
  FittedTable fitted;
  std::vector<StoredArray> arrays;
  int64_t bytes = 0;
  std::string advice;

  // `options` only for the table of the training.
  static Read all(const TableFiles& files, FittedTable fitted, const Options* options, int64_t ignore_index,
                  const std::vector<bool>* kept) {
    const bool with_target = options || has_targets(files, fitted);
    TableRows rows(fitted, {.fits = options != nullptr,
                            .normalizes = options && options->normalize,
                            .normalizes_target = options && options->normalize_target,
                            .fills_missing = options && options->fills_missing,
                            .may_guess_classes = options && !options->normalize_target &&
                                                 options->targets.type == TableTarget::kAuto,
                            .with_target = with_target,
                            .ignore_index = ignore_index,
                            .rows = kept});
    for (const auto& file : files) rows.read(*file, wanted_columns(*file, fitted, with_target));
    rows.finish();
    if (options && options->normalize_target && rows.fitted().target_mean.empty() && rows.rows() > 0)
      throw WrongKey("normalize_target", {}, "expected targets that are numbers; here they are classes");
    Read read{.fitted = rows.fitted()};
    if (options)
      read.advice = advice_lines(
          files, {advice_on_inputs(files, *options),
                  options->inputs.empty() ? row_numbers_text(rows.row_numbers.among(fitted.numbers)) : "",
                  options->targets.advice(*files[0], fitted.target_is), rows.advice()});
    else
      read.advice = advice_lines(files, {rows.advice()});
    read.add(rows, files[0]->path());
    return read;
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
      bytes_(read.bytes) {}

uint64_t TableDataset::digest() const { return fitted_.digest(ArrayDataset::digest()); }

}  // namespace tutti
