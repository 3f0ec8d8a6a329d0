#include "training/loggers/tensorboard_logger.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "io/formats/event_file.h"
#include "io/formats/png.h"
#include "runtime/error.h"
#include "training/loggers/file_logger.h"
#include "training/loggers/logged_images.h"

namespace tutti {
namespace {

constexpr const char* kTextTag = "/text_summary";  // suffix of the text plugin's tags
constexpr const char* kFilesBegin = "events.out.tfevents.";

std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : c == '\n' || c == '\r' ? " " : std::string(1, c);
  return out;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const auto& text : cells) row += " " + cell(text) + " |";
  return row + "\n";
}

std::string markdown_table(const std::vector<std::string>& columns,
                           const std::vector<std::vector<std::string>>& rows) {
  std::string text = markdown_row(columns) + markdown_row(std::vector<std::string>(columns.size(), "---"));
  for (const auto& row : rows) text += markdown_row(row);
  return text;
}

}  // namespace

void TensorboardLogger::open(const LogStart& start) {
  const std::string folder = logged_path(start, options_.log_dir);
  disk_.make_folders(folder);
  start_ = start;
  const std::vector<std::string> names = disk_.list(folder);
  file_.emplace(disk_, new_path(folder), now_s());
  if (!names.empty()) file_->restart(start.resumes ? start.at.batch + 1 : 0, now_s());
  if (!start.resumes) return;
  for (const auto& name : names)
    if (name.starts_with(kFilesBegin)) earlier_.push_back(folder + "/" + name);
}

// Skips records that earlier files have. TensorBoard drops only points of later batches; records of the
// resumed batch itself (repeated evaluations) would appear twice.
void TensorboardLogger::skip_repeats(const LogTime& time) {
  if (earlier_.empty()) return;
  const bool repeats = time.at.batch <= start_.at.batch;
  const auto earlier = std::exchange(earlier_, {});
  if (repeats) file_->skip(records_of_step(disk_, earlier, start_.at.batch));
}

// TensorBoard reads files in the order of their names, so a clock that was set back does not count.
std::string TensorboardLogger::new_path(const std::string& folder) const {
  const std::vector<std::string> names = disk_.list(folder);
  long long time_s = clock_.unix_ms() / 1000;
  for (const std::string& name : names)
    if (name.starts_with(kFilesBegin))
      time_s = std::max(time_s, std::atoll(name.c_str() + std::strlen(kFilesBegin)));
  char name[64];
  std::snprintf(name, sizeof name, "%s%010lld.tutti.%05zu", kFilesBegin, time_s, names.size());
  return folder + "/" + name;
}

void TensorboardLogger::log_hyperparameters(const LoggedHyperparameters& all, const LogTime& time) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& value : all) {
    const std::string json = json_of(LoggedHyperparameters{value});  // {"name": value}
    const auto colon = json.find("\": ");
    rows.push_back({value.first, json.substr(colon + 3, json.size() - colon - 4)});
  }
  file_->text("hyperparameters" + std::string(kTextTag), markdown_table({"name", "value"}, rows),
              time.at.batch, now_s());
}

void TensorboardLogger::log_metrics(const LoggedMetrics& metrics, const LogTime& time) {
  skip_repeats(time);
  file_->scalars(metrics, time.at.batch, now_s());
}

void TensorboardLogger::log_text(const LoggedText& text, const LogTime& time) {
  skip_repeats(time);
  file_->text(text.name + kTextTag, text.text, time.at.batch, now_s());
}

void TensorboardLogger::log_table(const LoggedTable& table, const LogTime& time) {
  skip_repeats(time);
  file_->text(table.name + kTextTag, markdown_table(table.columns, table.rows), time.at.batch, now_s());
}

void TensorboardLogger::log_images(const LoggedImages& images, const LogTime& time) {
  if (images.pixels.empty()) return;
  skip_repeats(time);
  write_image(images.name, grid_of(images), time);
  for (const LoggedMask& mask : images.masks) write_image(images.name + "/" + mask.name, grid_of(mask), time);
}

// An image may exceed the buffer: flush before and after.
void TensorboardLogger::write_image(const std::string& name, const LoggedImages& image, const LogTime& time) {
  write(/*sync=*/false);
  file_->image(name,
               {image.height, image.width, image.channels,
                png(image.pixels, image.height, image.width, image.channels)},
               time.at.batch, now_s());
  write(/*sync=*/false);
}

void TensorboardLogger::flush(bool sync) {
  if (sync || unflushed_ >= options_.flush_interval) write(sync);
}

bool TensorboardLogger::finish(bool) {
  write(/*sync=*/false);
  const int64_t lacking = file_ ? file_->missing() : 0;
  if (lacking > 0)
    warn_(file_->path() + " lacks " + std::to_string(lacking) + " records, for which there was no room");
  return true;
}

void TensorboardLogger::write(bool sync) {
  if (!file_) return;
  unflushed_ = 0;
  try {
    file_->flush(sync);
    broken_ = false;
  } catch (const OperatingError& error) {
    if (!broken_) warn_(error.what());
    broken_ = true;
  }
}

}  // namespace tutti
