#include "io/formats/wandb_file.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "io/formats/protobuf.h"
#include "io/replaced_file.h"
#include "runtime/error.h"
#include "runtime/hashes.h"

namespace tutti {
namespace {

// LevelDB's log format: blocks of 32 KiB with fragments of records. A fragment is CRC-32 of the type and the
// bytes (4 bytes), its number of bytes (2), its type (1), the bytes.
constexpr std::string_view kHeader(":W&B\xe1\xbe\x00", 7);  // magic number and version
constexpr uint64_t kBlock = 32768, kBeforeFragment = 7;     // bytes
constexpr uint32_t kCrc = 0xedb88320;                       // reflected
enum FragmentType : uint8_t { kWhole = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

constexpr const char* kOldestReader = "0.70.0";  // of wandb's own files: min_consumer

// Numbers of fields of wandb_internal.proto.
namespace wandb {

constexpr uint32_t kNumber = 1, kHistory = 2, kSummary = 3, kConfig = 5, kFiles = 6, kStats = 7, kRun = 17,
                   kExit = 18, kHeader = 21;                           // Record
constexpr uint32_t kVersionInfo = 1, kProducer = 1, kMinConsumer = 2;  // HeaderRecord
constexpr uint32_t kRunId = 1, kEntity = 2, kProject = 3, kGroup = 6, kJobType = 7, kName = 8, kNotes = 9,
                   kTags = 10, kHost = 13, kStartTime = 17;            // RunRecord
constexpr uint32_t kItem = 1, kStep = 2, kStepNumber = 1;              // HistoryRecord; an item as of others
constexpr uint32_t kKey = 1, kNestedKey = 2, kValueJson = 16;          // items
constexpr uint32_t kTimestamp = 2, kStatsItem = 3;                     // StatsRecord
constexpr uint32_t kSeconds = 1, kNanos = 2;                           // google.protobuf.Timestamp
constexpr uint32_t kFilesItem = 1, kPath = 1, kPolicy = 2, kType = 3;  // FilesRecord, FilesItem
constexpr int64_t kAtOnce = 0, kMedia = 2;                             // policy and type
constexpr uint32_t kRuntime = 2;                                       // RunExitRecord

}  // namespace wandb

using protobuf::Fields;

std::string text(uint32_t field, const std::string& value) {
  return value.empty() ? "" : protobuf::bytes(field, value);
}

std::string timestamp(uint32_t field, int64_t unix_ms) {
  return protobuf::bytes(field, protobuf::number(wandb::kSeconds, unix_ms / 1000) +
                                    protobuf::number(wandb::kNanos, unix_ms % 1000 * 1'000'000));
}

std::string item(const std::vector<std::string>& keys, const std::string& json) {
  std::string message;
  if (keys.size() == 1) message = protobuf::bytes(wandb::kKey, keys.front());
  if (keys.size() > 1)
    for (const std::string& key : keys) message += protobuf::bytes(wandb::kNestedKey, key);
  return message + protobuf::bytes(wandb::kValueJson, json);
}

std::string items(uint32_t field, const WandbValues& values) {
  std::string message;
  for (const auto& [name, json] : values) message += protobuf::bytes(field, item({name}, json));
  return message;
}

// The bytes of a record as fragments, from this offset of the file on.
std::string fragments(std::string_view record, uint64_t offset) {
  std::string out;
  for (bool is_first = true, is_last = false; !is_last; is_first = false) {
    uint64_t room = kBlock - (offset + out.size()) % kBlock;
    if (room < kBeforeFragment) {
      out.append(room, '\0');
      room = kBlock;
    }
    const std::string_view part = record.substr(0, room - kBeforeFragment);
    record.remove_prefix(part.size());
    is_last = record.empty();
    const FragmentType type = is_first ? (is_last ? kWhole : kFirst) : (is_last ? kLast : kMiddle);
    const std::string checked = static_cast<char>(type) + std::string(part);
    out += protobuf::little_endian(crc32<kCrc>(checked)) +
           protobuf::little_endian(static_cast<uint16_t>(part.size())) + checked;
  }
  return out;
}

template <class Value>
Value value_at(std::string_view bytes, uint64_t offset) {
  Value value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Reads the records of a file's bytes up to the first torn or damaged record.
class RecordReader {
 public:
  explicit RecordReader(std::string_view file) : file_(file), at_(kHeader.size()) {}

  bool next() {
    begin_ = at_;
    record_.clear();
    for (auto type = fragment(); type; type = fragment())
      if (type == kWhole || type == kLast) return true;
    at_ = begin_;
    return false;
  }
  std::string_view record() const { return record_; }
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return at_; }

 private:
  std::optional<uint8_t> fragment() {
    if (const uint64_t room = kBlock - at_ % kBlock; room < kBeforeFragment) at_ += room;
    if (at_ + kBeforeFragment > file_.size()) return std::nullopt;
    const uint64_t size = value_at<uint16_t>(file_, at_ + sizeof(uint32_t));
    if (at_ + kBeforeFragment + size > file_.size()) return std::nullopt;
    const std::string_view checked = file_.substr(at_ + kBeforeFragment - 1, size + 1);
    if (crc32<kCrc>(checked) != value_at<uint32_t>(file_, at_)) return std::nullopt;
    record_ += checked.substr(1);
    at_ += kBeforeFragment + size;
    return static_cast<uint8_t>(checked[0]);
  }

  std::string_view file_;
  uint64_t begin_ = 0, at_;
  std::string record_;
};

int64_t step_of(std::string_view history) {
  int64_t step = 0;
  for (Fields fields(protobuf::bytes_of(history, wandb::kStep)); fields.next();)
    if (fields.number() == wandb::kStepNumber) step = static_cast<int64_t>(fields.value());
  return step;
}

}  // namespace

std::string bytes_of_row(const WandbRow& row) {
  return items(wandb::kItem, row.values) +
         protobuf::bytes(wandb::kStep, protobuf::number(wandb::kStepNumber, row.step));
}

WandbRow wandb_row(std::string_view bytes) {
  WandbRow row{step_of(bytes), {}};
  for (Fields fields(bytes); fields.next();) {
    const std::string_view field = fields.bytes();
    if (fields.number() != wandb::kItem) continue;
    const std::string_view key = protobuf::bytes_of(field, wandb::kKey);
    row.values.insert_or_assign(std::string(key.empty() ? protobuf::bytes_of(field, wandb::kNestedKey) : key),
                                std::string(protobuf::bytes_of(field, wandb::kValueJson)));
  }
  return row;
}

void WandbFile::begin(const WandbRun& run) {
  file_.begin();
  file_.add(kHeader);
  record(wandb::kHeader,
         protobuf::bytes(wandb::kVersionInfo, protobuf::bytes(wandb::kProducer, "tutti") +
                                                  protobuf::bytes(wandb::kMinConsumer, kOldestReader)));
  std::string message = text(wandb::kRunId, run.id) + text(wandb::kEntity, run.entity) +
                        text(wandb::kProject, run.project) + text(wandb::kGroup, run.group) +
                        text(wandb::kJobType, run.job_type) + text(wandb::kName, run.name) +
                        text(wandb::kNotes, run.notes);
  for (const std::string& tag : run.tags) message += protobuf::bytes(wandb::kTags, tag);
  record(wandb::kRun, message + text(wandb::kHost, run.host) + timestamp(wandb::kStartTime, run.start_ms));
}

WandbFile::Kept WandbFile::resume(int64_t step) {
  const auto bytes = disk_.read(path());
  const std::string_view file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!file.starts_with(kHeader)) throw OperatingError(path() + ": is no file of Weights & Biases");
  Kept kept;
  std::string last_row;
  uint64_t end = kHeader.size();
  bool is_cut = false;
  for (RecordReader reader(file); reader.next();) {
    const std::string_view history = protobuf::bytes_of(reader.record(), wandb::kHistory);
    const bool is_behind = !history.empty() && step_of(history) >= step;
    if (is_behind && step_of(history) == step) kept.row = wandb_row(history).values;
    is_cut |= is_behind || !protobuf::bytes_of(reader.record(), wandb::kExit).empty();
    if (is_cut) continue;
    ++records_;
    end = reader.end();
    if (!history.empty()) last_row = history;
  }
  if (const auto values = wandb_row(last_row).values; values.contains("_runtime"))
    kept.runtime_s = std::strtod(values.at("_runtime").c_str(), nullptr);
  replace_file(disk_, path(), file.substr(0, end));
  file_.resume(end);
  return kept;
}

void WandbFile::config(const WandbValues& values) { record(wandb::kConfig, items(wandb::kItem, values)); }

void WandbFile::config(const std::vector<std::string>& keys, const std::string& json) {
  record(wandb::kConfig, protobuf::bytes(wandb::kItem, item(keys, json)));
}

void WandbFile::row(const WandbValues& values, int64_t step) {
  record(wandb::kHistory, bytes_of_row({step, values}));
}

void WandbFile::summary(const WandbValues& values) { record(wandb::kSummary, items(wandb::kItem, values)); }

void WandbFile::stats(const WandbValues& values, int64_t unix_ms) {
  record(wandb::kStats, timestamp(wandb::kTimestamp, unix_ms) + items(wandb::kStatsItem, values));
}

void WandbFile::files(const std::vector<std::string>& paths) {
  std::string message;
  for (const std::string& path : paths)
    message += protobuf::bytes(wandb::kFilesItem, protobuf::bytes(wandb::kPath, path) +
                                                      protobuf::number(wandb::kPolicy, wandb::kAtOnce) +
                                                      protobuf::number(wandb::kType, wandb::kMedia));
  record(wandb::kFiles, message);
}

void WandbFile::exit(int64_t runtime_s) {
  record(wandb::kExit, protobuf::number(wandb::kRuntime, runtime_s));
}

void WandbFile::record(uint32_t field, const std::string& message) {
  const std::string record = protobuf::number(wandb::kNumber, records_ + 1) + protobuf::bytes(field, message);
  if (!file_.has_room(record.size())) return;
  ++records_;
  file_.add(fragments(record, file_.end()));
}

}  // namespace tutti
