#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/readers/opened.h"
#include "data/readers/options.h"
#include "data/tables/table_dataset.h"
#include "io/tables/csv_file.h"
#include "io/tables/parquet_file.h"
#include "runtime/text.h"

namespace tutti {
namespace {

std::vector<std::string> target_names(const Setting& target) {
  return target.is_text() ? std::vector{target.text()} : target.texts();
}

TableDataset::Options table_options(const TableOptions& options, const Setting& section,
                                    int64_t ignore_index) {
  if (!options.target)
    section.fail_key("expected target: the name of the column to predict, or a list of names");
  using enum TableDataset::TargetType;
  const bool is_class = options.target_type == TableTarget::kClass;
  TableDataset::Options table{.inputs = options.inputs,
                              .one_hot = options.one_hot,
                              .targets = target_names(*options.target),
                              .is_list = !options.target->is_text(),
                              .target_type = is_class                                      ? kClass
                                             : options.target_type == TableTarget::kNumber ? kNumber
                                                                                           : kAuto,
                              .classes = options.classes,
                              .normalize = options.normalize,
                              .fills_missing = options.fills_missing,
                              .ignore_index = ignore_index};
  if (table.targets.empty()) options.target->fail("expected the name of a column");
  return table;
}

// What an evaluation says must be what the training has.
void require_like_training(const TableOptions& options, const Setting& section, const FittedTable& fitted) {
  const auto require = [&](const char* key, bool is_same) {
    if (!is_same)
      section.at(key).fail("[data.train] has another; evaluations have that, and may leave the key out");
  };
  std::vector<std::string> one_hot;
  for (const auto& one : fitted.texts) one_hot.push_back(one.column);
  require("inputs", options.inputs.empty() || options.inputs == fitted.numbers);
  require("one_hot", options.one_hot.empty() || options.one_hot == one_hot);
  require("target", !options.target || target_names(*options.target) == fitted.target);
  require("classes", options.classes.empty() || options.classes == fitted.classes);
  require("normalize", !options.normalize || !fitted.mean.empty());
  require("missing", !options.fills_missing || !fitted.missing.empty());
}

FittedTable fitted_table(const TableOptions& options, const Setting& section, const std::string& fitted) {
  if (fitted.empty())
    section.at("kind").fail("expected [data.train] to be a table, too, whose columns these are");
  auto table = FittedTable::from_json(fitted);
  require_like_training(options, section, table);
  return table;
}

void require_delimiter(const CsvOptions& options, const Setting& section) {
  constexpr std::string_view kPossible = ",;\t|:!#$%&*/@^~";
  const std::string& text = options.delimiter;
  if (!text.empty() && (text.size() != 1 || kPossible.find(text) == std::string_view::npos))
    section.at("delimiter").fail("expected one character: \",\", \";\", \"\\t\", \"|\", ...");
}

char delimiter_of(const CsvOptions& options, const std::string& file) {
  if (!options.delimiter.empty()) return options.delimiter[0];
  const std::string ending = lower_case(std::filesystem::path(file).extension().string());
  return ending == ".tsv" || ending == ".tab" ? '\t' : ',';
}

template <class OpenFile>
DatasetPtr opened_table(const TableOptions& options, const Setting& section,
                        const DataEnvironment& environment, const OpenFile& open_file) {
  const auto paths = files_of(section.at("path"));
  const auto open = [&](const auto&... how) {
    return opened(section, [&] {
      TableDataset::Files files;
      for (const std::string& path : paths) files.push_back(open_file(path));
      return std::make_shared<const TableDataset>(files, how...);
    });
  };
  const int64_t ignore_index = environment.ignore_index;
  if (!environment.fitted) return open(table_options(options, section, ignore_index));
  return open(fitted_table(options, section, *environment.fitted), ignore_index);
}

}  // namespace

DatasetPtr CsvOptions::make(const Setting& section, const DataEnvironment& environment) const {
  require_delimiter(*this, section);
  return opened_table(*this, section, environment, [&](const std::string& path) {
    const CsvFile::Format format{.delimiter = delimiter_of(*this, path), .header = header};
    return std::make_unique<CsvFile>(path, format);
  });
}

DatasetPtr ParquetOptions::make(const Setting& section, const DataEnvironment& environment) const {
  return opened_table(*this, section, environment,
                      [](const std::string& path) { return open_parquet(path); });
}

}  // namespace tutti
