#include "io/tables/table_writer.h"

#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>

#include "io/json/json_text.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;

template <class Number>
void append_number(std::string& to, Number number) {
  char text[32];
  if constexpr (std::is_floating_point_v<Number>) number = std::isnan(number) ? std::abs(number) : number;
  to.append(text, std::to_chars(text, text + sizeof text, number).ptr);
}

// Lines of text, one a row.
class TextTableWriter : public TableWriter {
 public:
  void add(const WrittenRows& rows) override {
    if (std::exchange(is_first_, false)) begin(rows);
    const std::size_t count = rows.empty() ? 0 : rows[0].rows();
    for (std::size_t row = 0; row < count; ++row) {
      for (std::size_t column = 0; column < rows.size(); ++column)
        std::visit([&](const auto& cells) { append(cells[row], column); }, rows[column].cells);
      end_row();
      if (buffer_.size() >= kBufferBytes) flush();
    }
  }
  void finish() override { flush(); }

 protected:
  explicit TextTableWriter(WriteBytes write) : write_(std::move(write)) {}

  virtual void begin(const WrittenRows& rows) = 0;
  virtual void append(const std::string& text, std::size_t column) = 0;
  virtual void append(int64_t number, std::size_t column) = 0;
  virtual void append(float number, std::size_t column) = 0;
  virtual void append(double number, std::size_t column) = 0;
  virtual void end_row() = 0;

  std::string buffer_;

 private:
  void flush() {
    write_(buffer_);
    buffer_.clear();
  }

  WriteBytes write_;
  bool is_first_ = true;
};

class CsvWriter final : public TextTableWriter {
 public:
  explicit CsvWriter(WriteBytes write) : TextTableWriter(std::move(write)) {}

 private:
  void begin(const WrittenRows& rows) override {
    for (std::size_t column = 0; column < rows.size(); ++column) append(rows[column].name, column);
    end_row();
  }
  void append(const std::string& text, std::size_t column) override {
    separate(column);
    if (text.empty())
      buffer_ += "\"\"";  // which is not an absent value
    else
      append_csv_field(buffer_, text);
  }
  void append(int64_t number, std::size_t column) override { add_number(number, column); }
  void append(float number, std::size_t column) override { add_number(number, column); }
  void append(double number, std::size_t column) override { add_number(number, column); }
  void end_row() override { buffer_ += '\n'; }

  template <class Number>
  void add_number(Number number, std::size_t column) {
    separate(column);
    append_number(buffer_, number);
  }
  void separate(std::size_t column) {
    if (column > 0) buffer_ += ',';
  }
};

class JsonLinesWriter final : public TextTableWriter {
 public:
  explicit JsonLinesWriter(WriteBytes write) : TextTableWriter(std::move(write)) {}

 private:
  static std::string json(const std::string& text) {
    using Json = nlohmann::ordered_json;
    return Json(text).dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
  }
  void begin(const WrittenRows& rows) override {
    for (const WrittenColumn& column : rows)
      keys_.push_back((keys_.empty() ? "{" : ", ") + json(column.name) + ": ");
  }
  void append(const std::string& text, std::size_t column) override { buffer_ += keys_[column] + json(text); }
  void append(int64_t number, std::size_t column) override { add_number(number, column); }
  void append(float number, std::size_t column) override { add_number(number, column); }
  void append(double number, std::size_t column) override { add_number(number, column); }
  void end_row() override { buffer_ += "}\n"; }

  template <class Number>
  void add_number(Number number, std::size_t column) {
    buffer_ += keys_[column];
    if (std::isfinite(static_cast<double>(number)))
      append_number(buffer_, number);
    else
      buffer_ += "null";
  }

  std::vector<std::string> keys_;
};

}  // namespace

void append_csv_field(std::string& to, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) {
    to += text;
    return;
  }
  to += '"';
  for (const char c : text) {
    if (c == '"') to += '"';
    to += c;
  }
  to += '"';
}

std::unique_ptr<TableWriter> csv_writer(WriteBytes write) {
  return std::make_unique<CsvWriter>(std::move(write));
}

std::unique_ptr<TableWriter> json_lines_writer(WriteBytes write) {
  return std::make_unique<JsonLinesWriter>(std::move(write));
}

}  // namespace tutti
