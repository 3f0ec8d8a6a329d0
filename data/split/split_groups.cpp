#include "data/split/split_groups.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "data/dataset.h"
#include "data/readers/opened.h"
#include "data/readers/options.h"
#include "data/readers/table_files.h"
#include "data/split/held_out.h"
#include "data/tables/class_guess.h"
#include "data/tables/series_windows.h"
#include "recipe/wrong_key.h"

namespace tutti {
namespace {

// Numbers values in the order of their appearance.
class ValueNumbers {
 public:
  int64_t number(std::string_view value) {
    return numbers_.try_emplace(std::string(value), std::ssize(numbers_)).first->second;
  }

 private:
  std::unordered_map<std::string, int64_t> numbers_;
};

void set_key(Setting& section, const char* key, Setting::Value value) {
  if (Setting* member = section.find(key)) member->value = std::move(value);
}

// The section with this array or column alone, as `array`.
Setting with_column_alone(const Setting& train, const Setting& split_by, const char* array) {
  Setting section = train;
  const bool is_mds = train.at("kind").text() == "mds";
  const char* names = is_mds ? "columns" : "arrays";
  Setting::Table table;
  table.emplace_back(array, Setting(split_by.value, split_by.path, split_by.position));
  set_key(section, names, std::move(table));
  for (const char* key : {"classes", "classes_from", "num_classes"}) set_key(section, key, std::monostate());
  return section;
}

void require_columns(const Setting& train, const Setting& column) {
  const std::string& kind = train.at("kind").text();
  if (kind != "hdf5" && kind != "numpy" && kind != "mds")
    column.fail("samples of " + kind +
                " have no columns; csv, parquet, text_table, image_table, mds, hdf5 and numpy have");
}

DatasetPtr open_column(const Setting& train, const Setting& split_by, const char* array) try {
  return DataKinds::made<DatasetPtr>(with_column_alone(train, split_by, array), DataEnvironment());
} catch (const UserError& error) {
  split_by.fail(error);
}

}  // namespace

std::vector<int64_t> groups_by(const Setting& train, const Setting& split_by, int64_t samples) {
  require_columns(train, split_by);
  // Texts of mds are read as classes alone.
  const DatasetPtr data =
      open_column(train, split_by, train.at("kind").text() == "mds" ? "target" : "column");
  if (data->size() != samples)
    split_by.fail("has " + std::to_string(data->size()) + " rows for " + std::to_string(samples) +
                  " samples");
  std::vector<int64_t> groups;
  ValueNumbers numbers;
  for (int64_t i = 0; i < samples; ++i)
    for (const auto& [name, value] : data->get({&i, 1}, {}).leaves())
      groups.push_back(numbers.number({static_cast<const char*>(value.const_data_ptr()), value.nbytes()}));
  return groups;
}

namespace {

std::vector<double> numbers_of_table(const Setting& train, const Setting& column, int64_t ignore_index) {
  std::vector<double> numbers;
  OpenTable table = open_table(train, ignore_index);
  for (const auto& file : table.files) {
    ColumnChoice choice(*file);
    choice.add(require_column(*file, column.text(), "sampler_column").name, CellType::kNumber);
    file->read(choice.cells(), [&](auto cells, auto) { numbers.push_back(cells[0]); });
  }
  return numbers;
}

}  // namespace

std::vector<double> numbers_in(const Setting& train, const Setting& column, int64_t ignore_index) try {
  if (is_table(train)) return numbers_of_table(train, column, ignore_index);
  require_columns(train, column);
  const DatasetPtr data = open_column(train, column, "column");
  std::vector<double> numbers;
  for (int64_t i = 0; i < data->size(); ++i) {
    const at::Tensor value = data->get({&i, 1}, {}).at("column").tensor();
    if (value.numel() != 1) column.fail("expected a number for each sample");
    numbers.push_back(value.item<double>());
  }
  return numbers;
} catch (const WrongKey& error) {
  fail_at(train, error);
}

namespace {

// The rows of a table, as far as a split looks at them.
struct RowValues {
  int64_t rows = 0;
  std::vector<int64_t> classes, groups;  // empty: none
  bool guessed = false;                  // the classes, from numbers
};

enum class Look { kNone, kClasses, kNumbers };

Look look_at_targets(const OpenTable& table) {
  const FittedTable::Target target = table.targets.found_in(*table.files[0]);
  if (target == FittedTable::Target::kName) return Look::kClasses;
  const bool may_be_classes =
      target == FittedTable::Target::kNumber && table.targets.type == TableTarget::kAuto;
  return may_be_classes ? Look::kNumbers : Look::kNone;
}

RowValues values_of(OpenTable& table, const std::string& split_by) {
  RowValues values;
  ValueNumbers classes, groups;
  ClassGuess guess;
  const Look look = look_at_targets(table);
  for (const auto& file : table.files) {
    ColumnChoice choice(*file);
    if (!split_by.empty()) choice.add(require_column(*file, split_by, "split_by").name, CellType::kText);
    if (look != Look::kNone)
      choice.add(table.targets.columns[0], look == Look::kClasses ? CellType::kText : CellType::kNumber);
    file->read(choice.cells(), [&](auto numbers, auto texts) {
      ++values.rows;
      if (!split_by.empty()) values.groups.push_back(groups.number(texts[0]));
      if (look == Look::kClasses) values.classes.push_back(classes.number(texts.back()));
      if (look != Look::kNumbers) return;
      guess.add(numbers[0]);
      values.classes.push_back(guess.may_be() ? static_cast<int64_t>(numbers[0]) : 0);
    });
  }
  values.guessed = look == Look::kNumbers && guess.classes() > 0;
  if (look == Look::kNumbers && !values.guessed) values.classes.clear();
  return values;
}

// Numbers without one of the classes would be taken for values.
void require_all_classes(const RowValues& values, const std::vector<bool>& held_out) {
  if (!values.guessed) return;
  std::set<int64_t> all(values.classes.begin(), values.classes.end()), trained;
  for (std::size_t i = 0; i < held_out.size(); ++i)
    if (!held_out[i]) trained.insert(values.classes[i]);
  for (const int64_t number : all)
    if (!trained.contains(number))
      throw WrongKey("split_by", {},
                     "all rows of class " + std::to_string(number) +
                         " are held out with their groups; another split_seed draws other groups");
}

// The last rows of each series, since windows of other rows would have held-out rows.
std::vector<bool> last_rows_of_series(OpenTable& table, double held_out) {
  if (table.targets.columns.empty())
    throw WrongKey("window", {}, "expected target, the column that follows a window");
  SeriesRows series(table.series);
  for (const auto& file : table.files) {
    ColumnChoice choice(*file);
    series.choose(*file, choice);
    if (choice.cells().empty()) choice.add(table.targets.columns[0], CellType::kText);
    series.begin_file();
    file->read(choice.cells(), [&](auto, auto texts) { series.add(*file, texts); });
  }
  series.finish();
  return series.last_rows(held_out);
}

std::vector<bool> held_out_rows_of(OpenTable& table, const SplitOptions& options) {
  if (table.series.window > 0 && options.split_by.empty()) return last_rows_of_series(table, options.split);
  const RowValues values = values_of(table, options.split_by);
  const std::vector<bool> held_out = held_out_samples({.samples = values.rows,
                                                       .held_out = options.split,
                                                       .seed = static_cast<uint64_t>(options.split_seed),
                                                       .classes = values.classes,
                                                       .groups = values.groups});
  require_all_classes(values, held_out);
  return held_out;
}

}  // namespace

std::vector<bool> held_out_rows(const Setting& train, const Setting& eval, int64_t ignore_index) {
  OpenTable table = open_table(train, ignore_index);
  try {
    return held_out_rows_of(table, SplitOptions::kind().read(eval));
  } catch (const WrongKey& error) {
    const bool is_of_eval = eval.has(error.key);
    fail_at(is_of_eval ? eval : train, error);
  } catch (const UserError& error) {
    fail_at(train, error);
  }
}

}  // namespace tutti
