#include "data/readers/table_files.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "data/readers/make_dataset.h"
#include "data/readers/opened.h"
#include "data/readers/options.h"
#include "data/tables/table_dataset.h"
#include "data/tables/text_table.h"
#include "io/json_rows.h"
#include "io/tables/csv_file.h"
#include "io/tables/json_lines_file.h"
#include "io/tables/parquet_file.h"
#include "runtime/text.h"

namespace tutti {

void require_delimiter(const std::string& text, const Setting& section) {
  constexpr std::string_view kPossible = ",;\t|:!#$%&*/@^~";
  if (!text.empty() && (text.size() != 1 || kPossible.find(text) == std::string_view::npos))
    section.at("delimiter").fail("expected one character: \",\", \";\", \"\\t\", \"|\", ...");
}

namespace {

std::vector<std::string> target_names(const Setting& target) {
  return target.is_text() ? std::vector{target.text()} : target.texts();
}

TableDataset::Options table_options(const TableOptions& options, const Setting& section,
                                    const DataEnvironment& environment) {
  if (!options.target)
    section.fail_key("expected target: the name of the column to predict, or a list of names");
  TableDataset::Options table{.inputs = options.inputs,
                              .one_hot = options.one_hot,
                              .targets = targets_of(options, environment.ignore_index),
                              .series = options,
                              .normalize = options.normalize,
                              .normalize_target = options.normalize_target,
                              .fills_missing = options.fills_missing,
                              .rows = environment.rows};
  if (table.targets.columns.empty()) options.target->fail("expected the name of a column");
  for (const char* key : {"series", "order"})
    if (options.window == 0 && section.has(key)) section.at(key).fail_key("is for window = NUMBER");
  return table;
}

// What an evaluation says must be what the training has.
void require_same(const Setting& section, const char* key, bool is_same) {
  if (!is_same)
    section.at(key).fail("[data.train] has another; evaluations have that, and may leave the key out");
}

void require_targets_of_training(const TargetOptions& options, const Setting& section,
                                 const FittedTable& fitted) {
  require_same(section, "target", !options.target || target_names(*options.target) == fitted.target);
  require_same(section, "classes", options.classes.empty() || options.classes == fitted.classes);
}

void require_like_training(const TableOptions& options, const Setting& section, const FittedTable& fitted) {
  const auto require = [&](const char* key, bool is_same) { require_same(section, key, is_same); };
  std::vector<std::string> one_hot;
  for (const auto& text : fitted.texts) one_hot.push_back(text.column);
  require("inputs", options.inputs.empty() || options.inputs == fitted.numbers);
  require("one_hot", options.one_hot.empty() || options.one_hot == one_hot);
  require_targets_of_training(options, section, fitted);
  require("normalize", !options.normalize || !fitted.mean.empty());
  require("normalize_target", !options.normalize_target || !fitted.target_mean.empty());
  require("missing", !options.fills_missing || !fitted.missing.empty());
  require("window", options.window == 0 || options.window == fitted.series.window);
  require("horizon", options.window == 0 || options.horizon == fitted.series.horizon);
  require("series", options.series.empty() || options.series == fitted.series.series);
  require("order", options.order.empty() || options.order == fitted.series.order);
}

FittedTable fitted_table(const TableOptions& options, const Setting& section, const std::string& fitted) {
  if (fitted.empty())
    section.at("kind").fail("expected [data.train] to be a table, too, whose columns these are");
  auto table = FittedTable::from_json(fitted);
  require_like_training(options, section, table);
  return table;
}

char delimiter_of(const std::string& delimiter, const std::string& file) {
  if (!delimiter.empty()) return delimiter[0];
  const std::string ending = lower_case(std::filesystem::path(file).extension().string());
  return ending == ".tsv" || ending == ".tab" ? '\t' : ',';
}

std::unique_ptr<TableFile> open_csv(const std::string& path, const std::string& delimiter,
                                    std::optional<bool> header) {
  const CsvFile::Format format{.delimiter = delimiter_of(delimiter, path), .header = header};
  return std::make_unique<CsvFile>(path, format);
}

template <class OpenFile>
DatasetPtr opened_table(const TableOptions& options, const Setting& section,
                        const DataEnvironment& environment, const OpenFile& open_file) {
  const auto paths = files_of(section.at("path"));
  const auto open = [&](const auto&... how) {
    return opened(section, [&] {
      TableFiles files;
      for (const std::string& path : paths) files.push_back(open_file(path));
      return std::make_shared<const TableDataset>(files, how...);
    });
  };
  if (!environment.fitted) return open(table_options(options, section, environment));
  return open(fitted_table(options, section, *environment.fitted), environment.ignore_index,
              environment.rows);
}

}  // namespace

DatasetPtr CsvOptions::make(const Setting& section, const DataEnvironment& environment) const {
  require_delimiter(delimiter, section);
  return opened_table(*this, section, environment,
                      [&](const std::string& path) { return open_csv(path, delimiter, header); });
}

DatasetPtr ParquetOptions::make(const Setting& section, const DataEnvironment& environment) const {
  return opened_table(*this, section, environment,
                      [](const std::string& path) { return open_parquet(path); });
}

namespace {

std::unique_ptr<TableFile> open_by_ending(const std::string& path, const TextFileOptions& text) {
  if (has_json_rows(path)) return std::make_unique<JsonLinesFile>(path);
  if (lower_case(std::filesystem::path(path).extension().string()) == ".parquet") return open_parquet(path);
  return open_csv(path, text.delimiter, text.header);
}

}  // namespace

TableFiles open_table_files(const std::vector<std::string>& paths, const TextFileOptions& text) {
  TableFiles files;
  for (const std::string& file : paths) files.push_back(open_by_ending(file, text));
  return files;
}

TableTargets targets_of(const TargetOptions& options, int64_t ignore_index) {
  TableTargets targets{.type = options.target_type, .classes = options.classes, .ignore_index = ignore_index};
  if (!options.target) return targets;
  targets.columns = target_names(*options.target);
  targets.is_list = !options.target->is_text();
  return targets;
}

std::optional<FittedTable> fitted_targets(const TargetOptions& options, const Setting& section,
                                          const std::optional<std::string>& fitted) {
  if (!fitted || fitted->empty()) return std::nullopt;
  auto table = FittedTable::from_json(*fitted);
  if (table.inputs() > 0)
    section.at("kind").fail("expected a table of numbers, as [data.train] is: csv or parquet");
  require_targets_of_training(options, section, table);
  return table;
}

void require_numbered(const Dataset& data, const TargetOptions& options, const Setting& section) {
  if (data.fitted().empty() || !options.classes.empty()) return;
  if (FittedTable::from_json(data.fitted()).target_is == FittedTable::Target::kName)
    section.at("target").fail(
        "[data.train] has no names of classes; classes = [...] lists them in its order");
}

DatasetPtr TextTableOptions::make(const Setting& section, const DataEnvironment& environment) const {
  require_delimiter(delimiter, section);
  const TextTable::Options table{.tokenizer = read_tokenizer(section.at("tokenizer")),
                                 .sequence_length = sequence_length,
                                 .text = text,
                                 .text_pair = text_pair,
                                 .positive = positive,
                                 .negative = negative,
                                 .array = array,
                                 .targets = targets_of(*this, environment.ignore_index),
                                 .rows = environment.rows};
  const auto paths = files_of(section.at("path"));
  const auto fitted = fitted_targets(*this, section, environment.fitted);
  DatasetPtr data = opened(section, [&] {
    const TableFiles files = open_table_files(paths, *this);
    return fitted ? std::make_shared<const TextTable>(files, table, *fitted)
                  : std::make_shared<const TextTable>(files, table);
  });
  if (environment.fitted && !fitted) require_numbered(*data, *this, section);
  return data;
}

namespace {

template <class Options, class OpenFile>
OpenTable opened_files(const Setting& section, int64_t ignore_index, const OpenFile& open_file) {
  const Options options = Options::kind().read(section);
  OpenTable table{.files = {}, .targets = targets_of(options, ignore_index)};
  if constexpr (std::is_base_of_v<SeriesOptions, Options>) table.series = options;
  const auto paths = files_of(section.at("path"));
  try {
    for (const std::string& path : paths) table.files.push_back(open_file(path, options));
  } catch (const WrongKey& error) {
    fail_at(section, error);
  } catch (const UserError& error) {
    fail_at(section, error);
  }
  return table;
}

}  // namespace

bool is_table(const Setting& section) {
  const std::string& kind = section.at("kind").text();
  return kind == "csv" || kind == "parquet" || kind == "text_table" || kind == "image_table";
}

OpenTable open_table(const Setting& section, int64_t ignore_index) {
  const std::string& kind = section.at("kind").text();
  if (kind == "text_table") return opened_files<TextTableOptions>(section, ignore_index, open_by_ending);
  if (kind == "image_table") return opened_files<ImageTableOptions>(section, ignore_index, open_by_ending);
  if (kind == "parquet")
    return opened_files<ParquetOptions>(section, ignore_index,
                                        [](const auto& path, const auto&) { return open_parquet(path); });
  return opened_files<CsvOptions>(section, ignore_index, [&](const auto& path, const auto& options) {
    require_delimiter(options.delimiter, section);
    return open_csv(path, options.delimiter, options.header);
  });
}

}  // namespace tutti
