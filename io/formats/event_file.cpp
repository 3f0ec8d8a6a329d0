#include "io/formats/event_file.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string_view>

#include "io/formats/protobuf.h"
#include "runtime/hashes.h"

namespace tutti {
namespace {

// The format of event files. A record is the event's length (8 bytes), masked CRC-32C of that, the event,
// masked CRC-32C of the event (4 bytes each).
constexpr uint64_t kBeforeEvent = 12, kAfterEvent = 4;  // bytes
constexpr uint64_t kTimeBytes = 1 + sizeof(double);     // with which an event begins

// An event is a protobuf (io/formats/protobuf.h).
namespace proto {

// Numbers of fields: Event (tensorflow/core/util/event.proto), Summary.Value and Summary.Image
// (framework/summary.proto), TensorProto (framework/tensor.proto).
constexpr uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr uint32_t kValue = 1, kTag = 1, kSimpleValue = 2, kImage = 4, kTensor = 8, kMetadata = 9;
constexpr uint32_t kHeight = 1, kWidth = 2, kColorspace = 3, kEncoded = 4;
constexpr uint32_t kPluginData = 1, kPluginName = 1;
constexpr uint32_t kDtype = 1, kShape = 2, kStrings = 8, kDim = 2, kSize = 1;

}  // namespace proto

constexpr uint32_t kCastagnoli = 0x82f63b78;  // reflected
constexpr uint32_t kMaskDelta = 0xa282ead8;

using protobuf::bytes;
using protobuf::little_endian;
using protobuf::number;

constexpr int64_t kStringType = 7;   // DT_STRING
constexpr int64_t kStatusStart = 1;  // SessionLog.START

std::string event(double wall_time_s, int64_t step, const std::string& what) {
  return number(proto::kWallTime, wall_time_s) + number(proto::kStep, step) + what;
}

std::string without_time(const std::string& event) { return event.substr(kTimeBytes); }

std::string scalar(const std::string& name, double value) {
  return bytes(proto::kValue,
               bytes(proto::kTag, name) + number(proto::kSimpleValue, static_cast<float>(value)));
}

}  // namespace

uint32_t masked_crc32c(const std::string& data) {
  const uint32_t crc = crc32<kCastagnoli>(data);
  return ((crc >> 15) | (crc << 17)) + kMaskDelta;
}

EventFile::EventFile(Disk& disk, const std::string& path, double wall_time_s) : file_(disk, path) {
  file_.begin();
  record(event(wall_time_s, 0, bytes(proto::kFileVersion, "brain.Event:2")));
}

void EventFile::restart(int64_t step, double wall_time_s) {
  record(event(wall_time_s, step, bytes(proto::kSessionLog, number(1, kStatusStart))));
}

void EventFile::scalars(const std::vector<std::pair<std::string, double>>& values, int64_t step,
                        double wall_time_s) {
  std::string summary;
  for (const auto& [name, value] : values) summary += scalar(name, value);
  record(event(wall_time_s, step, bytes(proto::kSummary, summary)));
}

void EventFile::text(const std::string& name, const std::string& markdown, int64_t step, double wall_time_s) {
  const std::string shape = bytes(proto::kDim, number(proto::kSize, int64_t{1}));
  const std::string tensor =
      number(proto::kDtype, kStringType) + bytes(proto::kShape, shape) + bytes(proto::kStrings, markdown);
  const std::string metadata = bytes(proto::kPluginData, bytes(proto::kPluginName, "text"));
  const std::string value =
      bytes(proto::kTag, name) + bytes(proto::kMetadata, metadata) + bytes(proto::kTensor, tensor);
  record(event(wall_time_s, step, bytes(proto::kSummary, bytes(proto::kValue, value))));
}

// The colour space is 1 for one channel, 3 for three.
void EventFile::image(const std::string& name, const Image& image, int64_t step, double wall_time_s) {
  const std::string picture = number(proto::kHeight, image.height) + number(proto::kWidth, image.width) +
                              number(proto::kColorspace, image.channels) + bytes(proto::kEncoded, image.png);
  const std::string value = bytes(proto::kTag, name) + bytes(proto::kImage, picture);
  record(event(wall_time_s, step, bytes(proto::kSummary, bytes(proto::kValue, value))));
}

void EventFile::record(const std::string& event) {
  if (!known_.empty() && known_.contains(without_time(event))) return;
  if (!file_.has_room(event.size())) return;
  const std::string length = little_endian<uint64_t>(event.size());
  file_.add(length + little_endian(masked_crc32c(length)) + event + little_endian(masked_crc32c(event)));
}

// A failed append may have written the first of the unwritten records.
int64_t EventFile::missing() const {
  const uint64_t there = file_.half_written();
  int64_t missing = dropped();
  for (std::size_t at = 0; at < file_.unwritten().size();) {
    uint64_t length = 0;
    std::memcpy(&length, file_.unwritten().data() + at, sizeof length);
    at += kBeforeEvent + length + kAfterEvent;
    missing += at > there;
  }
  return missing;
}

namespace {

// Reads a file in parts, since a file with images may be larger than memory.
class FileWindow {
 public:
  FileWindow(const Disk& disk, std::string path)
      : disk_(disk), path_(std::move(path)), size_(disk.size(path_)) {}
  uint64_t size() const { return size_; }
  // `bytes` at this offset; valid until the next call.
  const std::byte* read(uint64_t offset, uint64_t bytes) {
    if (offset < begin_ || offset + bytes > begin_ + window_.size()) {
      begin_ = offset;
      window_ = disk_.read_range(path_, offset, std::min(size_ - offset, std::max(bytes, kWindowBytes)));
    }
    return window_.data() + (offset - begin_);
  }

 private:
  static constexpr uint64_t kWindowBytes = 1 << 20;
  const Disk& disk_;
  std::string path_;
  uint64_t size_ = 0, begin_ = 0;
  std::vector<std::byte> window_;
};

// Calls `handle` with each event of a file and its offset, up to the first torn one.
void for_each_event(const Disk& disk, const std::string& path,
                    const std::function<void(std::string_view event, uint64_t offset)>& handle) {
  FileWindow file(disk, path);
  for (uint64_t at = 0; file.size() - at > kBeforeEvent + kAfterEvent;) {
    uint64_t length = 0;
    std::memcpy(&length, file.read(at, kBeforeEvent), sizeof length);
    if (length <= kTimeBytes || length > file.size() - at - kBeforeEvent - kAfterEvent) break;
    const auto* bytes = reinterpret_cast<const char*>(file.read(at + kBeforeEvent, length));
    handle({bytes, length}, at + kBeforeEvent);
    at += kBeforeEvent + length + kAfterEvent;
  }
}

using protobuf::bytes_of;
using protobuf::Fields;

struct EventHead {
  int64_t step = 0;
  bool restarts = false;  // of the session: invalidates its step and later ones in earlier files
};

EventHead event_head(std::string_view event) {
  EventHead head;
  for (Fields fields(event); fields.next();) {
    if (fields.number() == proto::kStep) head.step = static_cast<int64_t>(fields.value());
    if (fields.number() == proto::kSessionLog) head.restarts = true;
  }
  return head;
}

}  // namespace

// Reads the last file first, since it may make the others irrelevant.
std::set<std::string> records_of_step(const Disk& disk, const std::vector<std::string>& paths, int64_t step) {
  std::set<std::string> tags;
  bool voids_earlier = false;
  for (auto path = paths.rbegin(); path != paths.rend() && !voids_earlier; ++path) {
    std::set<std::string> in_file;
    for_each_event(disk, *path, [&](std::string_view event, uint64_t) {
      const EventHead head = event_head(event);
      if (head.restarts && head.step <= step) {
        voids_earlier = true;
        in_file.clear();
      }
      if (!head.restarts && head.step == step) in_file.emplace(event.substr(kTimeBytes));
    });
    tags.merge(in_file);
  }
  return tags;
}

std::vector<ShownRecord> images_and_texts(const Disk& disk, const std::vector<std::string>& paths) {
  std::vector<ShownRecord> records;
  for (const std::string& path : paths)
    for_each_event(disk, path, [&](std::string_view event, uint64_t offset) {
      const EventHead head = event_head(event);
      if (head.restarts)
        std::erase_if(records, [&](const ShownRecord& one) { return one.step >= head.step; });
      const std::string_view value = bytes_of(bytes_of(event, proto::kSummary), proto::kValue);
      const std::string_view png = bytes_of(bytes_of(value, proto::kImage), proto::kEncoded);
      const std::string_view bytes =
          png.empty() ? bytes_of(bytes_of(value, proto::kTensor), proto::kStrings) : png;
      if (bytes.empty()) return;
      records.push_back({std::string(bytes_of(value, proto::kTag)), head.step, !png.empty(), path,
                         offset + static_cast<uint64_t>(bytes.data() - event.data()), bytes.size()});
    });
  return records;
}

}  // namespace tutti
