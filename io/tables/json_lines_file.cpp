#include "io/tables/json_lines_file.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "io/json/json_text.h"
#include "io/json_rows.h"
#include "io/tables/column_reasons.h"
#include "io/tables/csv_file.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

constexpr double kMissingNumber = std::numeric_limits<double>::quiet_NaN();
const nlohmann::json kNull;

const nlohmann::json& member(const nlohmann::json& object, const std::string& name) {
  const auto member = object.find(name);
  return member == object.end() ? kNull : *member;
}

void look_at(TableColumn& column, const nlohmann::json& value, const std::string& place) {
  if (value.is_structured()) {
    column.is_other = true;
    column.reason = place + " is a list or an object";
  } else if (value.is_string()) {
    look_at_cell(column, std::nullopt, value.get_ref<const std::string&>(), place);
  } else {
    look_at_cell(column, value.is_null() ? kMissingNumber : 0, "", place);
  }
}

std::string column_text(const std::string& column) { return ", column '" + shown(column) + "': "; }

}  // namespace

JsonLinesFile::JsonLinesFile(const std::string& path)
    : file_(path), text_(reinterpret_cast<const char*>(file_.bytes().data()), file_.bytes().size()) {
  int64_t rows = 0;
  std::unordered_map<std::string, std::size_t> numbers;  // of columns
  for_each_object([&](const nlohmann::json& object) {
    for (const auto& [name, value] : object.items()) {
      const auto [number, is_new] = numbers.try_emplace(name, columns_.size());
      if (is_new) columns_.push_back({.name = name});
      look_at(columns_[number->second], value, place());
    }
    return ++rows < kInspectedRows;
  });
  if (rows == 0) throw UserError({path}, "an empty table");
}

template <class Visit>
void JsonLinesFile::for_each_object(const Visit& visit) {
  JsonRows rows(file_.path(), text_);
  while (const auto row = rows.next()) {
    place_ = rows.place();
    nlohmann::json object;
    try {
      object = parse_json(*row);
    } catch (const nlohmann::json::exception& error) {
      fail(": not JSON: " + json_problem(error));
    }
    if (!object.is_object())
      fail(rows.is_array() ? ": expected a JSON object" : ": expected a JSON object in each line");
    if (!visit(object)) return;
  }
}

int64_t JsonLinesFile::most_rows() const {
  return std::ranges::count(text_, JsonRows(path(), text_).is_array() ? ',' : '\n') + 1;
}

void JsonLinesFile::read(const std::vector<WantedColumn>& columns, const VisitRow& visit) {
  std::vector<double> numbers;
  std::vector<std::string_view> texts;
  std::vector<std::string> scratch(columns.size());
  for_each_object([&](const nlohmann::json& object) {
    numbers.clear();
    texts.clear();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string& column = columns_[columns[i].column].name;
      const nlohmann::json& value = member(object, column);
      if (columns[i].type == CellType::kText)
        texts.push_back(text_of(value, column, scratch[i]));
      else
        numbers.push_back(number_of(value, column));
    }
    visit(numbers, texts);
    return true;
  });
}

template <class Json>
double JsonLinesFile::number_of(const Json& value, const std::string& column) const {
  if (value.is_null()) return kMissingNumber;
  if (value.is_boolean()) return value.template get<bool>() ? 1 : 0;
  if (value.is_number()) return value.template get<double>();
  const auto number =
      value.is_string() ? table_number(value.template get_ref<const std::string&>()) : std::nullopt;
  if (!number) fail(column_text(column) + "'" + shown(value.dump()) + "' is not a number");
  return *number;
}

template <class Json>
std::string_view JsonLinesFile::text_of(const Json& value, const std::string& column,
                                        std::string& scratch) const {
  if (value.is_null()) return {};
  if (value.is_structured()) fail(column_text(column) + "a list or an object; expected a text");
  if (value.is_string()) return value.template get_ref<const std::string&>();
  return scratch = value.dump();
}

void JsonLinesFile::fail(const std::string& message) const {
  throw UserError({file_.path()}, place() + message);
}

}  // namespace tutti
