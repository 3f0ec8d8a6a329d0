#include "data/tables/table_dataset.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "data/tables/table_rows.h"
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

std::vector<std::string> number_columns(const TableFile& file, const TableDataset::Options& options) {
  std::vector<std::string> names;
  for (const auto& column : file.columns())
    if (!column.is_text && !column.name.empty() && !has(options.targets.columns, column.name) &&
        !has(options.one_hot, column.name))
      names.push_back(column.name);
  return names;
}

FittedTable chosen_columns(const TableFile& file, const TableDataset::Options& options) {
  require_once(options);
  FittedTable fitted{
      .numbers = options.inputs, .target = options.targets.columns, .classes = options.targets.classes};
  fitted.target_is = options.targets.found_in(file);
  for (const std::string& name : options.inputs) require_column(file, name, "inputs");
  for (const std::string& name : options.one_hot) {
    require_column(file, name, "one_hot");
    fitted.texts.push_back({name, {}});
  }
  if (fitted.numbers.empty()) fitted.numbers = number_columns(file, options);
  if (fitted.numbers.empty() && fitted.texts.empty())
    throw WrongColumns("inputs",
                       file.path() + " has no columns of numbers but the targets; one_hot takes texts");
  return fitted;
}

std::vector<WantedColumn> wanted_columns(const TableFile& file, const FittedTable& fitted, bool with_target) {
  ColumnChoice choice(file);
  for (const std::string& name : fitted.numbers) choice.add(name, CellType::kNumber);
  for (const auto& one : fitted.texts) choice.add(one.column, CellType::kText);
  if (with_target) choice.add_targets(fitted);
  return choice.wanted();
}

}  // namespace

struct TableDataset::Read {
  FittedTable fitted;
  std::vector<StoredArray> arrays;
  int64_t bytes = 0;

  // `options` only for the table of the training.
  static Read all(const TableFiles& files, FittedTable fitted, const Options* options, int64_t ignore_index) {
    const bool with_target = options || has_targets(files, fitted);
    TableRows rows(fitted, {.fits = options != nullptr,
                            .normalizes = options && options->normalize,
                            .fills_missing = options && options->fills_missing,
                            .may_guess_classes = options && options->targets.type == TableTarget::kAuto,
                            .with_target = with_target,
                            .ignore_index = ignore_index});
    for (const auto& file : files) rows.read(*file, wanted_columns(*file, fitted, with_target));
    rows.finish();
    Read read{.fitted = rows.fitted()};
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
    : TableDataset(
          Read::all(files, chosen_columns(*files.at(0), options), &options, options.targets.ignore_index),
          options.targets.ignore_index) {}

TableDataset::TableDataset(const TableFiles& files, const FittedTable& fitted, int64_t ignore_index)
    : TableDataset(Read::all(files, fitted, nullptr, ignore_index), ignore_index) {}

TableDataset::TableDataset(Read read, int64_t ignore_index)
    : ArrayDataset(std::move(read.arrays), {.ignore_index = ignore_index}),
      fitted_(std::move(read.fitted)),
      bytes_(read.bytes) {}

uint64_t TableDataset::digest() const {
  return fitted_.digest(ArrayDataset::digest());
}

}  // namespace tutti
