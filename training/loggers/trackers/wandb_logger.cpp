#include "training/loggers/trackers/wandb_logger.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "io/formats/png.h"
#include "io/json/json_line.h"
#include "io/replaced_file.h"
#include "runtime/error.h"
#include "training/loggers/factory.h"
#include "training/loggers/file_logger.h"
#include "training/loggers/trackers/tracked_names.h"

namespace tutti {
namespace {

constexpr const char* kFolderBegins = "offline-run-";
constexpr std::size_t kFlushRowsBytes = 1 << 16;
constexpr int kIdCharacters = 8, kIdBase = 36;                    // as of wandb's own ids
constexpr Nanoseconds kStatsInterval = std::chrono::seconds(10);  // between figures of the machine

// Figures of SystemMetricsMonitor under W&B's names, and the divisor to W&B's unit.
struct Figure {
  const char* name;
  const char* wandb;
  double divisor;
};
constexpr std::array<Figure, 7> kFigures = {{{"cpu_percentage", "cpu", 1},
                                             {"cpu_memory_percent", "memory_percent", 1},
                                             {"cpu_memory_available", "proc.memory.availableMB", 1 << 20},
                                             {"disk_memory_percent", "disk./.usagePercent", 1},
                                             {"disk_memory_used", "disk./.usageGB", 1 << 30},
                                             {"network_bytes_sent", "network.sent", 1},
                                             {"network_bytes_recv", "network.recv", 1}}};

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

// As wandb names folders: offline-run-20240131_235959-ID.
std::string folder_name(int64_t unix_ms, const std::string& id) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char time[32];
  std::strftime(time, sizeof time, "%Y%m%d_%H%M%S-", &parts);
  return kFolderBegins + std::string(time) + id;
}

// 0 if the name is another.
int64_t time_of_folder_ms(const std::string& name) {
  std::tm parts{};
  const bool is_time = ::strptime(name.c_str() + std::strlen(kFolderBegins), "%Y%m%d_%H%M%S-", &parts);
  return is_time ? 1000 * static_cast<int64_t>(::timegm(&parts)) : 0;
}

std::string id_of(const std::string& folder) { return folder.substr(folder.rfind('-') + 1); }

std::string escaped(const std::string& text) {
  std::string html;
  for (const char c : text) html += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
  return html;
}

std::string row_of(const std::vector<std::string>& cells, const std::string& element) {
  std::string html = "<tr>";
  for (const std::string& cell : cells) html += "<" + element + ">" + escaped(cell) + "</" + element + ">";
  return html + "</tr>\n";
}

std::string list_of(const std::vector<std::string>& jsons) {
  std::string list = "[";
  for (const std::string& json : jsons) list += (list.size() > 1 ? ", " : "") + json;
  return list + "]";
}

// The grey PNG of a mask, in which a pixel is its class.
std::string mask_png(const LoggedMask& mask, int64_t image) {
  const int64_t pixels = mask.height * mask.width;
  std::vector<uint8_t> grey;
  for (int64_t i = image * pixels; i < (image + 1) * pixels; ++i)
    grey.push_back(static_cast<uint8_t>(std::clamp(mask.classes[static_cast<std::size_t>(i)], 0, 255)));
  return png(grey, mask.height, mask.width, 1);
}

std::string image_png(const LoggedImages& images, int64_t image) {
  const auto bytes = static_cast<std::size_t>(images.height * images.width * images.channels);
  return png({images.pixels.data() + static_cast<std::size_t>(image) * bytes, bytes}, images.height,
             images.width, images.channels);
}

}  // namespace

void WandbLogger::open(const LogStart& start) {
  opened_ = clock_.now();
  folder_ = logged_path(start, options_.log_dir);
  std::vector<std::string> names = disk_.list(folder_);
  std::erase_if(names, [](const std::string& name) { return !name.starts_with(kFolderBegins); });
  if (start.resumes && !names.empty()) {
    folder_ += "/" + names.back();  // the newest: names begin with the time
    resume_folder(start);
  } else {
    begin_folder(start, names.empty() ? 0 : time_of_folder_ms(names.back()) + 1000);
  }
  write(/*sync=*/true);
}

// A clock that was set back does not make the folder older than the others.
void WandbLogger::begin_folder(const LogStart& start, int64_t earliest_ms) {
  const int64_t start_ms = std::max(clock_.unix_ms(), earliest_ms);
  const std::string id = tracked_id(start, start_ms, kIdCharacters, kIdBase);
  folder_ += "/" + folder_name(start_ms, id);
  disk_.make_folders(folder_ + "/files");
  file_ = std::make_unique<WandbFile>(disk_, folder_ + "/run-" + id + ".wandb");
  file_->begin({.id = id,
                .entity = options_.entity.value_or(""),
                .project = options_.project.value_or(""),
                .group = options_.group.value_or(""),
                .job_type = options_.job_type.value_or(""),
                .name = options_.name.value_or(start.run_name),
                .notes = options_.notes.value_or(""),
                .host = host_name(),
                .tags = options_.tags,
                .start_ms = start_ms});
}

// `wandb sync` leaves a run alone that it has sent already, and marks it.
void WandbLogger::resume_folder(const LogStart& start) {
  file_ = std::make_unique<WandbFile>(disk_, folder_ + "/run-" + id_of(folder_) + ".wandb");
  WandbFile::Kept kept = file_->resume(start.at.batch);
  earlier_s_ = kept.runtime_s;
  step_ = start.at.batch;
  row_ = std::move(kept.row);
  if (disk_.exists(saved_row_path())) {
    const auto bytes = disk_.read(saved_row_path());
    WandbRow saved = wandb_row({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (saved.step == start.at.batch) row_.merge(saved.values);
  }
  disk_.remove_all(file_->path() + ".synced");
}

void WandbLogger::log_hyperparameters(const LoggedHyperparameters& all, const LogTime&) {
  WandbValues values;
  for (const auto& [name, value] : all) values[name] = tracked_json(value);
  file_->config(values);
}

void WandbLogger::log_metrics(const LoggedMetrics& metrics, const LogTime& time) {
  begin_row(time);
  for (const auto& [name, value] : metrics) row_[name] = tracked_number(value);
  if (!metrics.empty() && is_system_metric(metrics.front().first)) log_machine(metrics);
}

void WandbLogger::log_machine(const LoggedMetrics& metrics) {
  const TimePoint now = clock_.now();
  if (stats_ && now - *stats_ < kStatsInterval) return;
  stats_ = now;
  WandbValues values;
  for (const auto& [name, value] : metrics)
    for (const Figure& figure : kFigures)
      if (name == figure.name) values[figure.wandb] = tracked_number(value / figure.divisor);
  file_->stats(values, clock_.unix_ms());
}

void WandbLogger::log_text(const LoggedText& text, const LogTime& time) {
  log_page(text.name, "<pre>" + escaped(text.text) + "</pre>", time);
}

void WandbLogger::log_table(const LoggedTable& table, const LogTime& time) {
  std::string html = row_of(table.columns, "th");
  for (const auto& row : table.rows) html += row_of(row, "td");
  log_page(table.name, "<table border=\"1\" style=\"border-collapse:collapse\">\n" + html + "</table>", time);
}

void WandbLogger::log_page(const std::string& name, const std::string& body, const LogTime& time) {
  begin_row(time);
  const std::string path = media_path("html", name, ".html");
  const std::string page = "<!DOCTYPE html><html><meta charset=\"utf-8\"><body>" + body + "</body></html>\n";
  if (!media(path, page)) return;
  file_->files({path});
  row_[name] = json_line(
      {{"_type", std::string("html-file")}, {"path", path}, {"size", static_cast<int64_t>(page.size())}});
}

void WandbLogger::log_images(const LoggedImages& images, const LogTime& time) {
  begin_row(time);
  std::vector<std::string> paths, masks, all;
  for (int64_t i = 0; i < images.count; ++i) {
    paths.push_back(media_path("images", images.name, "_" + std::to_string(i) + ".png"));
    if (!media(paths.back(), image_png(images, i))) return;
    JsonFields members;
    for (const LoggedMask& mask : images.masks) {
      const std::string path =
          media_path("images/mask", images.name + "/" + mask.name, "_" + std::to_string(i) + ".mask.png");
      if (!media(path, mask_png(mask, i))) return;
      all.push_back(path);
      members.emplace_back(mask.name, JsonText{json_line({{"_type", std::string("mask")}, {"path", path}})});
    }
    masks.push_back(json_line(members));
  }
  all.insert(all.end(), paths.begin(), paths.end());
  file_->files(all);
  JsonFields value = {{"_type", std::string("images/separated")},
                      {"width", images.width},
                      {"height", images.height},
                      {"format", std::string("png")},
                      {"count", images.count},
                      {"filenames", paths}};
  if (!images.masks.empty()) value.emplace_back("all_masks", JsonText{list_of(masks)});
  row_[images.name] = json_line(value);
  for (const LoggedMask& mask : images.masks) log_labels(images.name, mask);
}

// W&B shows only classes with a name.
void WandbLogger::log_labels(const std::string& images, const LoggedMask& mask) {
  const std::string key = images + "_wandb_delimeter_" + mask.name;  // as W&B spells the word
  const int32_t last = mask.classes.empty() ? 0 : *std::ranges::max_element(mask.classes);
  int32_t& labelled = labelled_.try_emplace(key, -1).first->second;
  if (last <= labelled) return;
  labelled = last;
  JsonFields names;
  for (int32_t label = 0; label <= std::min(last, 255); ++label)
    names.emplace_back(std::to_string(label), "class_" + std::to_string(label));
  file_->config({"_wandb", "mask/class_labels", key}, json_line({{"type", std::string("mask/class_labels")},
                                                                 {"key", key},
                                                                 {"value", JsonText{json_line(names)}}}));
}

std::string WandbLogger::media_path(const std::string& kind, const std::string& name,
                                    const std::string& end) const {
  return "media/" + kind + "/" + tracked_path(name) + "_" + std::to_string(*step_) + end;
}

bool WandbLogger::media(const std::string& path, const std::string& bytes) try {
  const std::filesystem::path whole = folder_ + "/files/" + path;
  disk_.make_folders(whole.parent_path());
  replace_file(disk_, whole, bytes);
  return true;
} catch (const OperatingError& error) {
  warn(error.what());
  return false;
}

void WandbLogger::begin_row(const LogTime& time) {
  if (step_ && *step_ >= time.at.batch) return;
  end_row();
  step_ = time.at.batch;
}

void WandbLogger::end_row() {
  if (row_.empty()) return;
  row_["_step"] = std::to_string(*step_);
  row_["_runtime"] = tracked_number(runtime_s());
  row_["_timestamp"] = tracked_number(1e-3 * static_cast<double>(clock_.unix_ms()));
  file_->row(row_, *step_);
  for (const auto& [name, json] : row_) summary_[name] = json;
  row_.clear();
  if (file_->unwritten() >= kFlushRowsBytes) write(/*sync=*/false);
}

double WandbLogger::runtime_s() const { return earlier_s_ + seconds(clock_.now() - opened_); }

// The values so far of a row that may get more: a resumed run begins with them.
void WandbLogger::save_row() {
  if (!row_.empty()) replace_file(disk_, saved_row_path(), bytes_of_row({*step_, row_}));
}

void WandbLogger::flush(bool sync) {
  if (!file_ || (!sync && is_flushed_)) return;
  if (sync && !summary_.empty()) file_->summary(std::exchange(summary_, {}));
  write(sync);
}

bool WandbLogger::finish(bool) {
  if (!file_) return true;
  end_row();
  if (!summary_.empty()) file_->summary(std::exchange(summary_, {}));
  file_->exit(static_cast<int64_t>(runtime_s()));
  write(/*sync=*/false);
  const int64_t lacking = file_->dropped() + (file_->unwritten() > 0);
  if (lacking > 0)
    warn_(file_->path() + " lacks " + std::to_string(lacking) + " records, for which there was no room");
  return true;
}

void WandbLogger::write(bool sync) try {
  is_flushed_ = true;
  if (sync) save_row();
  file_->flush(sync);
  is_broken_ = false;
} catch (const OperatingError& error) {
  warn(error.what());
}

void WandbLogger::warn(const std::string& what) {
  if (!is_broken_) warn_(what);
  is_broken_ = true;
}

DestinationPtr WandbLoggerOptions::make(const Setting&, const LoggerSeams& seams) const {
  return std::make_shared<WandbLogger>(seams.disk, seams.clock, *this,
                                       [&log = seams.log](const std::string& what) { log.warning(what); });
}

}  // namespace tutti
