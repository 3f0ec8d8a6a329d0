#include "analysis/report/logged_items.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "io/formats/event_reader.h"
#include "io/formats/json_text.h"
#include "io/run_paths.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
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
    for (ShownRecord& one : images_and_texts(disk_, paths)) {
      std::string name = one.tag;
      if (!one.is_image && name.ends_with(kTextTag)) name.resize(name.size() - kTextTag.size());
      if (one.is_image)
        images_[name].insert_or_assign(one.step, std::move(one));
      else if (name != "hyperparameters" && !texts_[name].contains(one.step))
        texts_[name][one.step] = {.name = name, .batches = one.step, .markdown = text_at(one)};
    }
  }

  LoggedItems chosen() {
    LoggedItems found;
    for (auto& [name, by_time] : images_) choose_images(by_time, found);
    for (auto& [name, by_time] : texts_) choose_texts(by_time, found);
    return found;
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

  std::string text_at(const ShownRecord& one) const {
    const uint64_t bytes = std::min<uint64_t>(one.bytes, kMostMarkdown + 1);
    return cut(text_of(disk_.read_range(one.path, one.offset, bytes)), kMostMarkdown);
  }

  static void choose_texts(std::map<int64_t, LoggedItem>& by_time, LoggedItems& found) {
    std::vector<LoggedItem> all;
    for (auto& [batches, item] : by_time) all.push_back(std::move(item));
    const auto places = evenly(all.size(), kMostOfAName);
    for (const std::size_t place : places) found.items.push_back(std::move(all[place]));
    found.left_out += std::ssize(all) - std::ssize(places);
  }

  void choose_images(const std::map<int64_t, ShownRecord>& by_time, LoggedItems& found) {
    std::vector<const ShownRecord*> all;
    for (const auto& [batches, record] : by_time) all.push_back(&record);
    std::vector<LoggedItem> chosen;
    const auto places = evenly(all.size(), kMostOfAName);
    for (auto place = places.rbegin(); place != places.rend(); ++place) {
      const ShownRecord& one = *all[*place];
      if (one.bytes > left_) continue;
      left_ -= one.bytes;
      chosen.push_back({.name = one.tag,
                        .batches = one.step,
                        .png = text_of(disk_.read_range(one.path, one.offset, one.bytes))});
    }
    found.left_out += std::ssize(all) - std::ssize(chosen);
    found.items.insert(found.items.end(), std::make_move_iterator(chosen.rbegin()),
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

}  // namespace tutti
