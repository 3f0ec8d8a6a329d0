#include "data/tables/fitted_table.h"

#include <algorithm>

#include "io/json/json_text.h"
#include "runtime/error.h"
#include "runtime/hashes.h"

namespace tutti {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FittedTable::Texts, column, categories)
NLOHMANN_JSON_SERIALIZE_ENUM(FittedTable::Target, {{FittedTable::Target::kNone, ""},
                                                   {FittedTable::Target::kNumber, "number"},
                                                   {FittedTable::Target::kNumbers, "numbers"},
                                                   {FittedTable::Target::kClass, "class"},
                                                   {FittedTable::Target::kName, "name"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FittedTable, numbers, texts, missing, mean, std, target, target_is,
                                   classes, num_classes)

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SeriesOptions, window, horizon, stride, series, order)

bool FittedTable::has_targets_as_inputs() const {
  return series.window > 0 && !target.empty() && std::ranges::count(numbers, target[0]) > 0;
}

int64_t FittedTable::inputs() const {
  int64_t inputs = std::ssize(numbers);
  for (const Texts& column : texts) inputs += std::ssize(column.categories);
  return inputs;
}

SampleSpec FittedTable::spec() const {
  const bool are_numbers = target_is == Target::kNumber || target_is == Target::kNumbers;
  SampleSpec spec;
  if (inputs() > 0) {
    spec.shapes["input"] = series.window > 0 ? Shape{series.window, inputs()} : Shape{inputs()};
    spec.dtypes["input"] = at::kFloat;
  }
  spec.shapes["target"] = target_is == Target::kNumbers ? Shape{std::ssize(target)} : Shape{};
  spec.dtypes["target"] = are_numbers ? at::kFloat : at::kLong;
  spec.classes = num_classes;
  return spec;
}

uint64_t FittedTable::digest(uint64_t rows_digest) const {
  const std::string text = to_json();
  return XXH3_64bits_withSeed(text.data(), text.size(), rows_digest);
}

// Without unused parts: a checkpoint has the digest of this text, and must fit the checkpoint's data after
// a part is added.
std::string FittedTable::to_json() const {
  nlohmann::json json = *this;
  if (!target_mean.empty()) json["target_mean"] = target_mean;
  if (!target_std.empty()) json["target_std"] = target_std;
  if (series.window > 0) json["series"] = series;
  if (skips_targets) json["skips_targets"] = true;
  return json.dump();
}

FittedTable FittedTable::from_json(const std::string& text) try {
  const nlohmann::json json = parse_json(text);
  auto table = json.get<FittedTable>();
  if (json.contains("series")) table.series = json["series"].get<SeriesOptions>();
  table.target_mean = json.value("target_mean", table.target_mean);
  table.target_std = json.value("target_std", table.target_std);
  table.skips_targets = json.value("skips_targets", false);
  const std::size_t numbers = table.numbers.size();
  for (const auto* facts : {&table.missing, &table.mean, &table.std})
    if (!facts->empty() && facts->size() != numbers)
      throw OperatingError("the checkpoint's table is damaged");
  for (const auto* facts : {&table.target_mean, &table.target_std})
    if (!facts->empty() && facts->size() != table.target.size())
      throw OperatingError("the checkpoint's table is damaged");
  return table;
} catch (const nlohmann::json::exception& error) {
  throw OperatingError("the checkpoint's table cannot be read: " + json_problem(error));
}

}  // namespace tutti
