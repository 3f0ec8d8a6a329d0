#include "data/tables/table_dataset.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "data/tables/table_rows.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/nearest_name.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

std::string quoted(const std::string& name) { return "'" + shown(name) + "'"; }

const TableColumn* column_named(const TableFile& file, const std::string& name) {
  const auto found = std::ranges::find(file.columns(), name, &TableColumn::name);
  return found == file.columns().end() || name.empty() ? nullptr : &*found;
}

const TableColumn& require_column(const TableFile& file, const std::string& name, const char* option) {
  if (const TableColumn* column = column_named(file, name)) return *column;
  std::vector<std::string> names;
  std::string all;
  for (const auto& one : file.columns()) {
    names.push_back(one.name);
    if (names.size() <= 20) all += (all.empty() ? "" : ", ") + shown(one.name);
  }
  const std::string near = nearest_name(name, names);
  throw WrongColumns(option,
                     file.path() + " has no column " + quoted(name) +
                         (near.empty() ? "; it has " : "; did you mean " + quoted(near) + "? It has ") + all +
                         (names.size() > 20 ? ", ..." : ""));
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// Each column is an input, a text or a target, once.
void require_once(const TableDataset::Options& options) {
  std::vector<std::string> seen;
  const auto add = [&](const char* option, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (has(seen, name)) throw WrongColumns(option, quoted(name) + " is named twice, or has another use");
      seen.push_back(name);
    }
  };
  add("classes", options.classes);
  seen.clear();
  add("target", options.targets);
  add("inputs", options.inputs);
  add("one_hot", options.one_hot);
}

std::vector<std::string> number_columns(const TableFile& file, const TableDataset::Options& options) {
  std::vector<std::string> names;
  for (const auto& column : file.columns())
    if (!column.is_text && !column.name.empty() && !has(options.targets, column.name) &&
        !has(options.one_hot, column.name))
      names.push_back(column.name);
  return names;
}

FittedTable::Target target_of(const TableFile& file, const TableDataset::Options& options) {
  using enum TableDataset::TargetType;
  const bool is_text = require_column(file, options.targets[0], "target").is_text;
  const bool are_names =
      options.target_type == kClass || !options.classes.empty() || (options.target_type == kAuto && is_text);
  if (!options.is_list && are_names) return FittedTable::Target::kName;
  if (options.is_list && options.target_type == kClass)
    throw WrongColumns("target_type", "a list of targets are numbers; a class is one column");
  return options.is_list ? FittedTable::Target::kNumbers : FittedTable::Target::kNumber;
}

FittedTable chosen_columns(const TableFile& file, const TableDataset::Options& options) {
  require_once(options);
  FittedTable fitted{.numbers = options.inputs, .target = options.targets, .classes = options.classes};
  for (const std::string& name : options.targets) require_column(file, name, "target");
  for (const std::string& name : options.inputs) require_column(file, name, "inputs");
  for (const std::string& name : options.one_hot) {
    require_column(file, name, "one_hot");
    fitted.texts.push_back({name, {}});
  }
  if (fitted.numbers.empty()) fitted.numbers = number_columns(file, options);
  if (fitted.numbers.empty() && fitted.texts.empty())
    throw WrongColumns("inputs",
                       file.path() + " has no columns of numbers but the targets; one_hot takes texts");
  fitted.target_is = target_of(file, options);
  return fitted;
}

bool has_targets(const TableDataset::Files& files, const FittedTable& fitted) {
  return std::ranges::any_of(files, [&](const auto& file) {
    return std::ranges::any_of(fitted.target, [&](const auto& name) { return column_named(*file, name); });
  });
}

std::vector<WantedColumn> wanted_columns(const TableFile& file, const FittedTable& fitted, bool with_target) {
  std::unordered_map<std::string_view, std::size_t> places;  // there may be a hundred thousand columns
  for (std::size_t c = 0; c < file.columns().size(); ++c)
    if (!file.columns()[c].name.empty()) places.emplace(file.columns()[c].name, c);
  const auto place_of = [&](const std::string& name) {
    const auto found = places.find(name);
    if (found == places.end()) throw UserError({file.path()}, "it has no column " + quoted(name));
    return found->second;
  };
  std::vector<WantedColumn> wanted;
  for (const std::string& name : fitted.numbers) wanted.push_back({place_of(name), CellType::kNumber});
  for (const auto& one : fitted.texts) wanted.push_back({place_of(one.column), CellType::kText});
  const bool is_name = fitted.target_is == FittedTable::Target::kName;
  for (const std::string& name : fitted.target)
    if (with_target) wanted.push_back({place_of(name), is_name ? CellType::kText : CellType::kNumber});
  return wanted;
}

template <class Value>
StoredArray array_of(const std::string& name, const std::string& file, std::vector<Value> values,
                     Shape shape) {
  const auto owner = std::make_shared<const std::vector<Value>>(std::move(values));
  const int64_t rows = shape[0];
  return {.name = name,
          .file = file,
          .where = "'" + name + "'",
          .dtype = c10::CppTypeToScalarType<Value>::value,
          .shape = std::move(shape),
          .rows = contiguous_rows(owner, std::as_bytes(std::span(*owner)), rows)};
}

}  // namespace

struct TableDataset::Read {
  FittedTable fitted;
  std::vector<StoredArray> arrays;
  int64_t bytes = 0;

  // `options` only for the table of the training.
  static Read all(const Files& files, FittedTable fitted, const Options* options, int64_t ignore_index) {
    const bool with_target = options || has_targets(files, fitted);
    TableRows rows(fitted, {.fits = options != nullptr,
                            .normalizes = options && options->normalize,
                            .fills_missing = options && options->fills_missing,
                            .may_guess_classes = options && options->target_type == TargetType::kAuto,
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
    arrays.push_back(array_of("input", file, std::move(rows.inputs), {count, fitted.inputs()}));
    if (!rows.classes.empty()) {
      arrays.push_back(array_of("target", file, std::move(rows.classes), {count}));
      arrays.back().num_classes = fitted.num_classes;
    } else if (!rows.targets.empty()) {
      const bool is_list = fitted.target_is == FittedTable::Target::kNumbers;
      arrays.push_back(array_of("target", file, std::move(rows.targets),
                                is_list ? Shape{count, std::ssize(fitted.target)} : Shape{count}));
    }
  }
};

TableDataset::TableDataset(const Files& files, const Options& options)
    : TableDataset(Read::all(files, chosen_columns(*files.at(0), options), &options, options.ignore_index),
                   options.ignore_index) {}

TableDataset::TableDataset(const Files& files, const FittedTable& fitted, int64_t ignore_index)
    : TableDataset(Read::all(files, fitted, nullptr, ignore_index), ignore_index) {}

TableDataset::TableDataset(Read read, int64_t ignore_index)
    : ArrayDataset(std::move(read.arrays), {.ignore_index = ignore_index}),
      fitted_(std::move(read.fitted)),
      bytes_(read.bytes) {}

uint64_t TableDataset::digest() const {
  const std::string text = fitted_.to_json();
  return XXH3_64bits_withSeed(text.data(), text.size(), ArrayDataset::digest());
}

}  // namespace tutti
