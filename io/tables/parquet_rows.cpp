#include <arrow/api.h>
#include <arrow/io/api.h>
#include <parquet/arrow/writer.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "io/tables/parquet_entry.h"

// Apart from the other libraries, as parquet_table.cpp is.
namespace tutti {
namespace {

void require(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

template <class Value>
Value required(arrow::Result<Value> result) {
  require(result.status());
  return std::move(result).ValueUnsafe();
}

template <class Builder, class Cells>
std::shared_ptr<arrow::Array> built(const Cells& cells) {
  Builder builder;
  require(builder.AppendValues(cells));
  return required(builder.Finish());
}

std::shared_ptr<arrow::Array> array_of(const std::vector<std::string>& cells) {
  return built<arrow::StringBuilder>(cells);
}
std::shared_ptr<arrow::Array> array_of(const std::vector<int64_t>& cells) {
  return built<arrow::Int64Builder>(cells);
}
std::shared_ptr<arrow::Array> array_of(const std::vector<float>& cells) {
  return built<arrow::FloatBuilder>(cells);
}
std::shared_ptr<arrow::Array> array_of(const std::vector<double>& cells) {
  return built<arrow::DoubleBuilder>(cells);
}

// Cells of a group of rows, which is in memory, and which readers read whole.
constexpr int64_t kGroupCells = int64_t{1} << 22;

class ParquetRows final : public TableWriter {
 public:
  explicit ParquetRows(const std::string& path) : file_(required(arrow::io::FileOutputStream::Open(path))) {}

  void add(const WrittenRows& rows) override {
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    for (const WrittenColumn& column : rows) {
      arrays.push_back(std::visit([](const auto& cells) { return array_of(cells); }, column.cells));
      fields.push_back(arrow::field(column.name, arrays.back()->type(), /*nullable=*/false));
    }
    const auto batch = arrow::RecordBatch::Make(arrow::schema(fields), arrays[0]->length(), arrays);
    if (!writer_)
      writer_ =
          required(parquet::arrow::FileWriter::Open(*batch->schema(), arrow::default_memory_pool(), file_));
    cells_in_group_ += batch->num_rows() * batch->num_columns();
    require(writer_->WriteRecordBatch(*batch));
    if (cells_in_group_ < kGroupCells) return;
    require(writer_->NewBufferedRowGroup());
    cells_in_group_ = 0;
  }

  void finish() override {
    if (writer_) require(writer_->Close());
    require(file_->Close());
  }

 private:
  std::shared_ptr<arrow::io::FileOutputStream> file_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
  int64_t cells_in_group_ = 0;
};

}  // namespace
}  // namespace tutti

extern "C" [[gnu::visibility("default")]] tutti::TableWriter* tutti_write_parquet(const char* path) {
  return new tutti::ParquetRows(path);
}
