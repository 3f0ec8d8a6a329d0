#include <arrow/api.h>
#include <arrow/io/api.h>
#include <arrow/util/float16.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>

#include "io/tables/parquet_entry.h"

// Apart from the other libraries, since libarrow and libparquet are loaded only for recipes that need them.
namespace tutti {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

template <class Value>
Value required(arrow::Result<Value> result) {
  if (!result.ok()) throw std::runtime_error(result.status().message());
  return std::move(result).ValueUnsafe();
}

bool is_text(const arrow::DataType& type) {
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING ||
         type.id() == arrow::Type::STRING_VIEW || type.id() == arrow::Type::DICTIONARY;
}

bool is_number(const arrow::DataType& type) {
  return arrow::is_integer(type.id()) || arrow::is_floating(type.id()) || type.id() == arrow::Type::BOOL;
}

// The columns that are a frame's index, by what pandas says in the file. An index that is a range is an
// object there, and no column.
std::set<std::string> index_columns(const arrow::Schema& schema) {
  std::set<std::string> names;
  const auto text = schema.metadata() ? schema.metadata()->Get("pandas") : arrow::Result<std::string>("");
  const auto pandas = nlohmann::json::parse(text.ValueOr(""), nullptr, /*allow_exceptions=*/false);
  if (!pandas.is_object() || !pandas.contains("index_columns")) return names;
  for (const auto& index_column : pandas["index_columns"])
    if (index_column.is_string()) names.insert(index_column.get<std::string>());
  return names;
}

// Cells of one column of a batch of rows.
class Cells {
 public:
  virtual ~Cells() = default;
  virtual double number(int64_t row) const = 0;
  virtual std::string_view text(int64_t row) = 0;
};

template <class Array>
auto value_at(const Array& array, int64_t row) {
  if constexpr (std::is_same_v<Array, arrow::HalfFloatArray>)
    return arrow::util::Float16::FromBits(array.Value(row)).ToFloat();
  else
    return array.Value(row);
}

template <class Array>
class NumberCells final : public Cells {
 public:
  explicit NumberCells(std::shared_ptr<arrow::Array> array)
      : array_(std::static_pointer_cast<Array>(std::move(array))) {}
  double number(int64_t row) const override {
    return array_->IsNull(row) ? kMissing : static_cast<double>(value_at(*array_, row));
  }
  // A number as a class has a name.
  std::string_view text(int64_t row) override {
    if (array_->IsNull(row)) return {};
    if constexpr (std::is_same_v<Array, arrow::BooleanArray>) return array_->Value(row) ? "True" : "False";
    char* end = written_;
    if constexpr (!std::is_same_v<Array, arrow::BooleanArray>)
      end = std::to_chars(written_, written_ + sizeof written_, value_at(*array_, row)).ptr;
    return {written_, end};
  }

 private:
  std::shared_ptr<Array> array_;
  char written_[64] = {};
};

template <class Array>
class TextCells final : public Cells {
 public:
  explicit TextCells(std::shared_ptr<arrow::Array> array)
      : array_(std::static_pointer_cast<Array>(std::move(array))) {}
  double number(int64_t) const override { return kMissing; }
  std::string_view text(int64_t row) override {
    if (array_->IsNull(row)) return {};
    const auto view = array_->GetView(row);
    return view.data() ? view : std::string_view("");
  }

 private:
  std::shared_ptr<Array> array_;
};

// Categories of pandas.
class DictionaryCells final : public Cells {
 public:
  DictionaryCells(std::shared_ptr<arrow::DictionaryArray> array, std::unique_ptr<Cells> values)
      : array_(std::move(array)), values_(std::move(values)) {}
  double number(int64_t row) const override {
    return array_->IsNull(row) ? kMissing : values_->number(array_->GetValueIndex(row));
  }
  std::string_view text(int64_t row) override {
    return array_->IsNull(row) ? std::string_view() : values_->text(array_->GetValueIndex(row));
  }

 private:
  std::shared_ptr<arrow::DictionaryArray> array_;
  std::unique_ptr<Cells> values_;
};

std::unique_ptr<Cells> cells_of(const std::shared_ptr<arrow::Array>& array) {
  switch (array->type_id()) {
#define TUTTI_NUMBERS(ID, ARRAY) \
  case arrow::Type::ID:          \
    return std::make_unique<NumberCells<arrow::ARRAY>>(array);
    TUTTI_NUMBERS(BOOL, BooleanArray)
    TUTTI_NUMBERS(INT8, Int8Array)
    TUTTI_NUMBERS(INT16, Int16Array)
    TUTTI_NUMBERS(INT32, Int32Array)
    TUTTI_NUMBERS(INT64, Int64Array)
    TUTTI_NUMBERS(UINT8, UInt8Array)
    TUTTI_NUMBERS(UINT16, UInt16Array)
    TUTTI_NUMBERS(UINT32, UInt32Array)
    TUTTI_NUMBERS(UINT64, UInt64Array)
    TUTTI_NUMBERS(HALF_FLOAT, HalfFloatArray)
    TUTTI_NUMBERS(FLOAT, FloatArray)
    TUTTI_NUMBERS(DOUBLE, DoubleArray)
#undef TUTTI_NUMBERS
    case arrow::Type::STRING:
      return std::make_unique<TextCells<arrow::StringArray>>(array);
    case arrow::Type::LARGE_STRING:
      return std::make_unique<TextCells<arrow::LargeStringArray>>(array);
    case arrow::Type::STRING_VIEW:
      return std::make_unique<TextCells<arrow::StringViewArray>>(array);
    case arrow::Type::DICTIONARY: {
      auto coded = std::static_pointer_cast<arrow::DictionaryArray>(array);
      auto values = cells_of(coded->dictionary());
      return std::make_unique<DictionaryCells>(std::move(coded), std::move(values));
    }
    default:
      throw std::runtime_error("expected numbers or texts, not " + array->type()->ToString());
  }
}

class ParquetTable final : public TableFile {
 public:
  explicit ParquetTable(const std::string& path) : path_(path) {
    auto file = required(arrow::io::ReadableFile::Open(path));
    reader_ = required(parquet::arrow::OpenFile(std::move(file), arrow::default_memory_pool()));
    reader_->set_use_threads(false);
    const auto status = reader_->GetSchema(&schema_);
    if (!status.ok()) throw std::runtime_error(status.message());
    const std::set<std::string> index = index_columns(*schema_);
    for (const auto& field : schema_->fields()) {
      const arrow::DataType& type = *field->type();
      columns_.push_back({.name = field->name(),
                          .is_text = !is_number(type),
                          .is_other = !is_number(type) && !is_text(type),
                          .is_index = index.contains(field->name()),
                          .reason = is_number(type) ? "" : type.ToString()});
    }
  }

  const std::vector<TableColumn>& columns() const override { return columns_; }
  int64_t most_rows() const override {
    return std::max<int64_t>(0, reader_->parquet_reader()->metadata()->num_rows());
  }
  const std::string& path() const override { return path_; }
  std::string place() const override { return "row " + std::to_string(row_); }

  void read(const std::vector<WantedColumn>& columns, const VisitRow& visit) override {
    require_types(columns);
    auto batches = required(reader_->GetRecordBatchReader(all_groups(), leaves(columns)));
    row_ = 0;
    while (const auto batch = required(batches->Next())) visit_rows(*batch, columns, visit);
  }

 private:
  [[noreturn]] void fail(std::size_t column, const std::string& message) const {
    throw std::runtime_error("column '" + columns_[column].name + "': " + message);
  }

  void require_types(const std::vector<WantedColumn>& columns) const {
    for (const auto& [column, type] : columns) {
      const auto& stored = *schema_->field(static_cast<int>(column))->type();
      if (type == CellType::kNumber && !is_number(stored))
        fail(column, (is_text(stored) ? "texts" : stored.ToString()) + " are not numbers");
      if (!is_number(stored) && !is_text(stored)) fail(column, "expected texts, not " + stored.ToString());
    }
  }

  std::vector<int> all_groups() const {
    std::vector<int> groups;
    for (int i = 0; i < reader_->num_row_groups(); ++i) groups.push_back(i);
    return groups;
  }

  // Columns of the file; a nested one, of several leaves, is not wanted.
  std::vector<int> leaves(const std::vector<WantedColumn>& columns) const {
    std::vector<int> numbers;
    for (const auto& column : columns) {
      const auto& manifest = reader_->manifest();
      numbers.push_back(manifest.schema_fields.at(column.column).column_index);
    }
    return numbers;
  }

  void visit_rows(const arrow::RecordBatch& batch, const std::vector<WantedColumn>& columns,
                  const VisitRow& visit) {
    std::vector<std::unique_ptr<Cells>> numbers, texts;
    std::vector<std::size_t> number_columns;
    for (const auto& [column, type] : columns) {
      auto cells = cells_of(batch.GetColumnByName(columns_[column].name));
      if (type == CellType::kNumber) number_columns.push_back(column);
      (type == CellType::kNumber ? numbers : texts).push_back(std::move(cells));
    }
    std::vector<double> row_numbers(numbers.size());
    std::vector<std::string_view> row_texts(texts.size());
    for (int64_t row = 0; row < batch.num_rows(); ++row, ++row_) {
      for (std::size_t c = 0; c < numbers.size(); ++c) {
        row_numbers[c] = numbers[c]->number(row);
        if (std::isinf(row_numbers[c]))
          throw std::runtime_error(place() + ", column '" + columns_[number_columns[c]].name +
                                   "': an infinite number");
      }
      for (std::size_t c = 0; c < texts.size(); ++c) row_texts[c] = texts[c]->text(row);
      visit(row_numbers, row_texts);
    }
  }

  std::string path_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<TableColumn> columns_;
  int64_t row_ = 0;
};

}  // namespace
}  // namespace tutti

extern "C" [[gnu::visibility("default")]] tutti::TableFile* tutti_open_parquet(const char* path) {
  return new tutti::ParquetTable(path);
}
