#include "analysis/report/reported_run.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "io/formats/event_file.h"
#include "io/journal/journal_reader.h"
#include "io/json/json_text.h"
#include "io/run_paths.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

// Reads one rank's journal.
class RankReader {
 public:
  RankReader(StartSummary& start, int rank) : start_(start), rank_(rank) { mine_.rank = rank; }

  RankSummary read(const std::string& path) try {
    JournalCursor cursor(path);
    RankWork work(timer_, start_.job.world, TimePoint());
    while (const auto record = cursor.next()) {
      if (const auto* delivery = std::get_if<JournalDelivery>(&*record))
        work.read(*delivery);
      else if (const auto* event = std::get_if<JournalEvent>(&*record))
        note(*event, work);
      else
        note(*record);
    }
    work.finish();
    mine_.times = timer_.times();
    return mine_;
  } catch (const RunError& error) {
    mine_.incomplete = error.what();
    return mine_;
  }

 private:
  void note(const JournalRecord& record) {
    if (const auto* end = std::get_if<JournalEnd>(&record)) mine_.end = end->text;
    if (const auto* cut = std::get_if<JournalIncomplete>(&record)) mine_.incomplete = cut->why;
    if (const auto* head = std::get_if<JournalHead>(&record)) {
      const RecordedJob job = RecordedJob::from_json(head->json);
      mine_.host = job.host;
      if (rank_ == 0) start_.job = job;
    }
  }

  // All ranks skip a step; each runs out of memory, and rank 0 alone publishes checkpoints.
  void note(const JournalEvent& event, RankWork& work) {
    work.read(event);
    const TraceKind* kind = trace_kind(event.kind);
    if (!kind) return;
    if (*kind == TraceKind::kBatch) step_ = event.step + 1;
    if (rank_ == 0 && *kind == TraceKind::kBatch) {
      start_.steps.last = step_;
      if (start_.steps.first == 0) start_.steps.first = step_;
    }
    const bool counts = *kind == TraceKind::kOutOfMemory || *kind == TraceKind::kCheckpointFailed ||
                        (*kind == TraceKind::kSkipped && rank_ == 0);
    if (counts) start_.faults.push_back({step_, rank_, *kind});
  }

  StartSummary& start_;
  int rank_;
  int64_t step_ = 0;
  WorkTimer timer_;
  RankSummary mine_;
};

// The world is in the head, which the rank's reader needs from the beginning.
int world_of(const std::string& path) try {
  JournalCursor cursor(path);
  const auto record = cursor.next();
  const auto* head = record ? std::get_if<JournalHead>(&*record) : nullptr;
  return head ? RecordedJob::from_json(head->json).world : 1;
} catch (const RunError&) {
  return 1;
}

}  // namespace

StartSummary summary_of_start(const std::string& folder) {
  StartSummary start;
  start.job.world = world_of(journal_path(folder, 0));
  for (int rank = 0; rank < start.job.world; ++rank)
    start.ranks.push_back(RankReader(start, rank).read(journal_path(folder, rank)));
  std::ranges::stable_sort(start.faults, {}, &StepFault::step);
  return start;
}

namespace {

constexpr std::size_t kMostOfAName = 8;
constexpr std::size_t kMostRows = 20;         // of a table
constexpr std::size_t kMostOfACell = 1'000;   // bytes
constexpr std::size_t kMostMarkdown = 8'000;  // bytes
constexpr std::string_view kTextTag = "/text_summary";
constexpr std::string_view kEventFile = "events.out.tfevents.";

std::string cut(const std::string& text, std::size_t most) {
  return as_utf8(text.substr(0, most)) + (text.size() <= most ? "" : " ...");
}

std::string text_of(std::vector<std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// "" if the table has no such text.
std::string text_in(const Setting& table, const char* key) {
  const Setting* value = table.is_table() ? table.find(key) : nullptr;
  return value && value->is_text() ? value->text() : "";
}

// At most `most` of `count` indices, evenly spaced: the first, the last and some in between.
std::vector<std::size_t> evenly(std::size_t count, std::size_t most) {
  const std::size_t chosen = std::min(count, most);
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < chosen; ++i)
    indices.push_back(chosen == 1 ? 0 : i * (count - 1) / (chosen - 1));
  return indices;
}

// Reads the files of a run's loggers.
class ItemReader {
 public:
  ItemReader(const Disk& disk, uint64_t image_bytes) : disk_(disk), left_(image_bytes) {}

  void read_lines(const std::string& path) {
    if (!disk_.exists(path)) return;
    const std::string text = text_of(disk_.read(path));
    std::string_view rest = text;
    for (auto end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
      read_line(rest.substr(0, end));
      rest.remove_prefix(end + 1);
    }
  }

  void read_events(const std::string& folder) {
    std::vector<std::string> paths;
    for (const std::string& name : disk_.list(folder))
      if (name.starts_with(kEventFile)) paths.push_back(require_no_link_out(folder, folder + "/" + name));
    for (ShownRecord& record : images_and_texts(disk_, paths)) {
      std::string name = record.tag;
      if (!record.is_image && name.ends_with(kTextTag)) name.resize(name.size() - kTextTag.size());
      if (record.is_image)
        images_[name].insert_or_assign(record.step, std::move(record));
      else if (name != "hyperparameters" && !texts_[name].contains(record.step))
        texts_[name][record.step] = {.name = name, .batches = record.step, .markdown = text_at(record)};
    }
  }

  LoggedItems chosen() {
    LoggedItems items;
    for (auto& [name, by_time] : images_) choose_images(by_time, items);
    for (auto& [name, by_time] : texts_) choose_texts(by_time, items);
    return items;
  }

 private:
  // Lines of tables and texts; others are not parsed.
  void read_line(std::string_view line) try {
    const bool table = line.starts_with("{\"type\": \"table\"");
    if (!table && !line.starts_with("{\"type\": \"text\"")) return;
    const auto json = parse_json(line);
    LoggedItem item{.name = json.at("name"), .batches = json.at("batch")};
    if (table) {
      for (const auto& column : json.at("columns")) item.columns.push_back(cut(column, kMostOfACell));
      for (const auto& row : json.at("rows")) {
        if (item.rows.size() == kMostRows) break;
        item.rows.emplace_back();
        for (const auto& cell : row) item.rows.back().push_back(cut(cell, kMostOfACell));
      }
    } else {
      item.markdown = cut(json.at("text"), kMostMarkdown);
    }
    texts_[item.name][item.batches] = std::move(item);
  } catch (const nlohmann::json::exception&) {  // torn, or not tutti's
  }

  std::string text_at(const ShownRecord& record) const {
    const uint64_t bytes = std::min<uint64_t>(record.bytes, kMostMarkdown + 1);
    return cut(text_of(disk_.read_range(record.path, record.offset, bytes)), kMostMarkdown);
  }

  static void choose_texts(std::map<int64_t, LoggedItem>& by_time, LoggedItems& items) {
    std::vector<LoggedItem> all;
    for (auto& [batches, item] : by_time) all.push_back(std::move(item));
    const auto places = evenly(all.size(), kMostOfAName);
    for (const std::size_t place : places) items.items.push_back(std::move(all[place]));
    items.left_out += std::ssize(all) - std::ssize(places);
  }

  void choose_images(const std::map<int64_t, ShownRecord>& by_time, LoggedItems& items) {
    std::vector<const ShownRecord*> all;
    for (const auto& [batches, record] : by_time) all.push_back(&record);
    std::vector<LoggedItem> chosen;
    const auto places = evenly(all.size(), kMostOfAName);
    for (auto place = places.rbegin(); place != places.rend(); ++place) {
      const ShownRecord& record = *all[*place];
      if (record.bytes > left_) continue;
      left_ -= record.bytes;
      chosen.push_back({.name = record.tag,
                        .batches = record.step,
                        .png = text_of(disk_.read_range(record.path, record.offset, record.bytes))});
    }
    items.left_out += std::ssize(all) - std::ssize(chosen);
    items.items.insert(items.items.end(), std::make_move_iterator(chosen.rbegin()),
                       std::make_move_iterator(chosen.rend()));
  }

  const Disk& disk_;
  uint64_t left_;                                                 // bytes of images
  std::map<std::string, std::map<int64_t, ShownRecord>> images_;  // by name, then batches
  std::map<std::string, std::map<int64_t, LoggedItem>> texts_;
};

}  // namespace

LoggedItems logged_items(const Disk& disk, const std::string& run_dir, const Setting& recipe,
                         uint64_t image_bytes) {
  ItemReader reader(disk, image_bytes);
  const Setting* loggers = recipe.find("loggers");
  if (!loggers || !loggers->is_array()) return {};
  const auto for_each = [&](const char* kind, const char* key, const auto& read) {
    for (const Setting& logger : loggers->array())
      if (text_in(logger, "kind") == kind) {
        const std::string path =
            logger_path(run_dir, text_in(recipe, "run_name"), /*rank=*/0, text_in(logger, key));
        read(require_no_link_out(run_dir, path));
      }
  };
  for_each("jsonl", "filename", [&](const std::string& path) { reader.read_lines(path); });
  for_each("tensorboard", "log_dir", [&](const std::string& path) { reader.read_events(path); });
  return reader.chosen();
}

namespace {

constexpr std::size_t kMost = 200;
constexpr std::size_t kTimeBytes = 23;  // 2026-11-23 19:24:26.254

// Takes the first word off a line.
std::string_view next_word(std::string_view& line) {
  const auto end = std::min(line.find(' '), line.size());
  const auto word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

// A line "TIME LEVEL rank N TEXT" (runtime/log.cpp); nothing for other levels and other lines.
std::optional<LogFault> fault_of(std::string_view line, int rank) {
  if (line.size() < kTimeBytes + 1 || line[4] != '-' || line[kTimeBytes] != ' ') return std::nullopt;
  LogFault fault{std::string(line.substr(0, kTimeBytes)), false, {rank}, ""};
  line.remove_prefix(kTimeBytes + 1);
  const auto level = next_word(line);
  fault.is_error = level == "error";
  if (!fault.is_error && level != "warning") return std::nullopt;
  if (next_word(line) != "rank") return std::nullopt;
  next_word(line);
  fault.text = line;
  return fault;
}

// The faults of all logs, one for each text.
class Collector {
 public:
  void read(std::string_view text, int rank) {
    for (auto end = text.find('\n'); end != text.npos; end = text.find('\n')) {
      if (auto fault = fault_of(text.substr(0, end), rank)) add(std::move(*fault));
      text.remove_prefix(end + 1);
    }
  }

  LogFaults newest() {
    std::ranges::stable_sort(faults_, {}, &LogFault::when);
    const std::size_t left_out = faults_.size() > kMost ? faults_.size() - kMost : 0;
    return {{faults_.begin() + static_cast<std::ptrdiff_t>(left_out), faults_.end()},
            static_cast<int64_t>(left_out)};
  }

 private:
  void add(LogFault fault) {
    const int rank = fault.ranks.front();
    const auto [place, fresh] = places_.try_emplace(fault.text, faults_.size());
    if (!fresh && std::ranges::count(faults_[place->second].ranks, rank) == 0)
      return faults_[place->second].ranks.push_back(rank);
    places_[fault.text] = faults_.size();
    faults_.push_back(std::move(fault));
  }

  std::vector<LogFault> faults_;
  std::map<std::string, std::size_t> places_;
};

}  // namespace

LogFaults log_faults(const Disk& disk, const std::string& run_dir, int world) {
  Collector collector;
  for (int rank = 0; rank < world; ++rank) {
    const std::string path = path_in_run(run_dir, "log/rank-" + std::to_string(rank) + ".log");
    if (!disk.exists(path)) continue;
    const auto bytes = disk.read(path);
    collector.read({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, rank);
  }
  return collector.newest();
}

namespace {

// Of its journals.
void refuse_links_out(const Disk& disk, const std::string& run_dir) {
  const std::string journals = "journal";
  for (const std::string& start : disk.list(path_in_run(run_dir, journals))) {
    const std::string folder = journals + '/' + start;
    std::error_code error;
    if (!std::filesystem::is_directory(path_in_run(run_dir, folder), error)) continue;
    for (const std::string& file : disk.list(run_dir + '/' + folder))
      path_in_run(run_dir, folder + '/' + file);
  }
}

}  // namespace

std::vector<WorkTimes> ReportedRun::times() const {
  std::vector<WorkTimes> all;
  for (const StartSummary& start : starts) {
    if (start.steps.first == 1) all.clear();
    all.resize(std::max(all.size(), start.ranks.size()));
    for (std::size_t r = 0; r < start.ranks.size(); ++r) all[r].add(start.ranks[r].times);
  }
  return all;
}

int ReportedRun::world() const { return starts.empty() ? 0 : starts.back().job.world; }

ReportedRun read_run(const Disk& disk, const std::string& run_dir, uint64_t image_bytes) {
  require_run_folder(run_dir);
  ReportedRun run;
  run.path = run_dir;
  run.ending = ending_of(disk, run_dir);
  const std::filesystem::path whole = std::filesystem::path(run_dir + '/').lexically_normal().parent_path();
  run.name = whole.filename().empty() ? run_dir : whole.filename().string();
  run.metrics = read_metrics(disk, run_dir);
  if (run.metrics.last_step == 0)
    throw UserError(run_dir + ": there are no steps in " + run_dir + '/' + kMetricsFile +
                    ": none is done yet, or the file is lost");
  run.recipe = read_recipe(path_in_run(run_dir, kRecipeFile));
  refuse_links_out(disk, run_dir);
  for (const std::string& folder : recorded_starts(run_dir)) run.starts.push_back(summary_of_start(folder));
  run.checkpoints = checkpoint_summaries(disk, checkpoints_folder(run_dir, run.recipe));
  int logs = std::max(1, run.world());
  while (disk.exists(run_dir + "/log/rank-" + std::to_string(logs) + ".log")) ++logs;
  run.faults = log_faults(disk, run_dir, logs);
  run.logged = logged_items(disk, run_dir, run.recipe, image_bytes);
  return run;
}

}  // namespace tutti
