#include "data/tables/fitted_table.h"

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
// Checkpoints of before have no means of targets.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(FittedTable, numbers, texts, missing, mean, std, target,
                                                target_mean, target_std, target_is, classes, num_classes)

int64_t FittedTable::inputs() const {
  int64_t inputs = std::ssize(numbers);
  for (const Texts& column : texts) inputs += std::ssize(column.categories);
  return inputs;
}

SampleSpec FittedTable::spec() const {
  const bool are_numbers = target_is == Target::kNumber || target_is == Target::kNumbers;
  SampleSpec spec;
  if (inputs() > 0) {
    spec.shapes["input"] = {inputs()};
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

std::string FittedTable::to_json() const { return nlohmann::json(*this).dump(); }

FittedTable FittedTable::from_json(const std::string& text) try {
  auto table = parse_json(text).get<FittedTable>();
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
