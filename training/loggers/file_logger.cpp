#include "training/loggers/file_logger.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "io/json/json_line.h"
#include "io/run_paths.h"
#include "recipe/placeholders.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

constexpr const char* kHeader = "step,batch,epoch,name,value";

// The shortest text that gives back all bits. NaN has no reliable sign.
std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

// The number between `from` and `end`; -1 if the line is torn.
int64_t number_at(const std::string& line, std::size_t from, char end) {
  int64_t number = -1;
  const char* begin = line.data() + from;
  const auto [stop, error] = std::from_chars(begin, line.data() + line.size(), number);
  return error == std::errc() && stop != line.data() + line.size() && *stop == end ? number : -1;
}

int64_t step_of_text(const std::string& line) {
  const auto at = line.find("[step=");
  return at == std::string::npos ? -1 : number_at(line, at + 6, ']');
}

int64_t step_of_row(const std::string& line) { return line == kHeader ? 0 : number_at(line, 0, ','); }

int64_t step_of_json(const std::string& line) { return json_integer(line, "step", -1); }

std::string row_without_epoch(std::string row) {
  const auto from = row.find(',', row.find(',') + 1), to = row.find(',', from + 1);
  return to == std::string::npos ? row : row.erase(from, to - from);
}

std::string json_without_epoch(std::string line) {
  const auto from = line.find("\"epoch\": ");
  return from == std::string::npos ? line : line.erase(from, line.find_first_of(",}", from) - from);
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : c == '\n' ? " " : std::string(1, c);
  return out + "\"";
}

struct ValueText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return number_text(value); }
  std::string operator()(const std::string& value) const { return value; }
};

}  // namespace

std::string logged_path(const LogStart& start, const std::string& pattern) {
  return logger_path(start.run_dir, start.run_name, start.rank, pattern);
}

FileLines::FileLines(Disk& disk, LoggedFile file, LineKind kind, Warn warn)
    : disk_(disk),
      options_(std::move(file)),
      kind_(std::move(kind)),
      warn_(warn ? std::move(warn) : Warn(print_warning)) {}

void FileLines::open(const LogStart& start) {
  const std::string path = logged_path(start, options_.filename);
  disk_.make_folders(std::filesystem::path(path).parent_path());
  auto file = std::make_unique<LineFile>(disk_, path, kind_.step_of, warn_);
  if (start.resumes) {
    for (const std::string& line : file->resume(start.step))
      if (kind_.step_of(line) == start.step) earlier_lines_.insert(key_of(line));
  } else {
    file->begin();
  }
  file_ = std::move(file);
}

std::string FileLines::key_of(const std::string& line) const {
  return kind_.without_epoch ? kind_.without_epoch(line) : line;
}

void FileLines::append(const std::string& line) {
  if (earlier_lines_.empty() || !earlier_lines_.contains(key_of(line))) file_->append(line);
}

void FileLines::flush(bool sync) {
  if (!file_ || (!sync && unflushed_ < options_.flush_interval)) return;
  unflushed_ = 0;
  file_->flush(sync);
}

void FileLines::finish() {
  if (file_) file_->finish();
}

FileLogger::FileLogger(Disk& disk, LoggedFile file, bool log_traces, Warn warn)
    : LineLogger(disk, std::move(file), {step_of_text}, std::move(warn)), log_traces_(log_traces) {}

void FileLogger::line(const char* type, const LogTime& time, const std::string& name,
                      const std::string& value) {
  std::string text = "[" + std::string(type) + "][step=" + std::to_string(time.step) +
                     "][batch=" + std::to_string(time.at.batch) + "]: " + name + ": " + value;
  replace_all(text, "\n", "\\n");
  lines_.append(text);
}

void FileLogger::log_hyperparameters(const LoggedHyperparameters& all, const LogTime& time) {
  for (const auto& [name, value] : all) line("hyperparameter", time, name, std::visit(ValueText{}, value));
}

void FileLogger::log_metrics(const LoggedMetrics& metrics, const LogTime& time) {
  for (const auto& [name, value] : metrics) line("metric", time, name, number_text(value));
}

void FileLogger::log_traces(const LoggedTraces& traces, const LogTime& time) {
  if (!log_traces_) return;
  for (const auto& [name, ran] : traces) line("trace", time, name, std::to_string(ran));
}

void FileLogger::log_text(const LoggedText& text, const LogTime& time) {
  line("text", time, text.name, text.text);
}

void FileLogger::log_table(const LoggedTable& table, const LogTime& time) {
  line("table", time, table.name, json_of(table));
}

CsvLogger::CsvLogger(Disk& disk, LoggedFile file, Warn warn)
    : LineLogger(disk, std::move(file), {step_of_row, row_without_epoch}, std::move(warn)) {}

void CsvLogger::open(const LogStart& start) {
  LineLogger::open(start);
  if (lines_.empty()) lines_.append(kHeader);
}

void CsvLogger::row(const LogTime& time, const std::string& name, double value) {
  lines_.append(std::to_string(time.step) + "," + std::to_string(time.at.batch) + "," +
                std::to_string(time.epoch()) + "," + quoted(name) + "," + number_text(value));
}

void CsvLogger::log_metrics(const LoggedMetrics& metrics, const LogTime& time) {
  for (const auto& [name, value] : metrics) row(time, name, value);
}

void CsvLogger::log_traces(const LoggedTraces& traces, const LogTime& time) {
  for (const auto& [name, ran] : traces) row(time, name, ran);
}

JsonlLogger::JsonlLogger(Disk& disk, LoggedFile file, Warn warn)
    : LineLogger(disk, std::move(file), {step_of_json, json_without_epoch}, std::move(warn)) {}

}  // namespace tutti
