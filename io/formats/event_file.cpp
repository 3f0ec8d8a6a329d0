#include "io/formats/event_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <functional>

#include "runtime/hashes.h"

namespace tutti {
namespace {

constexpr std::size_t kMostUnwritten = 1 << 20;  // bytes
constexpr uint32_t kCastagnoli = 0x82f63b78;     // reflected
constexpr uint32_t kMaskDelta = 0xa282ead8;

template <class Value>
std::string little_endian(Value value) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Protobuf's wire format: a field's number and type, then its bytes.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string tag(uint32_t field, WireType type) { return varint(field << 3 | type); }
std::string number(uint32_t field, int64_t value) {
  return tag(field, kVarint) + varint(static_cast<uint64_t>(value));
}
std::string bytes(uint32_t field, const std::string& value) {
  return tag(field, kBytes) + varint(value.size()) + value;
}

// Field numbers of Event, Summary.Value and their members.
constexpr uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr uint32_t kValue = 1, kTag = 1, kSimpleValue = 2, kImage = 4, kTensor = 8, kMetadata = 9;
constexpr uint32_t kHeight = 1, kWidth = 2, kColorspace = 3, kEncoded = 4;
constexpr uint32_t kPluginData = 1, kPluginName = 1;
constexpr uint32_t kDtype = 1, kShape = 2, kStrings = 8, kDim = 2, kSize = 1;
constexpr int64_t kStringType = 7;   // DT_STRING
constexpr int64_t kStatusStart = 1;  // SessionLog.START

std::string event(double wall_time_s, int64_t step, const std::string& what) {
  return tag(kWallTime, kFixed64) + little_endian(wall_time_s) + number(kStep, step) + what;
}

// Bytes of a record before the event (length and its CRC), and after (CRC of the event).
constexpr std::size_t kBeforeEvent = sizeof(uint64_t) + sizeof(uint32_t), kAfterEvent = sizeof(uint32_t);
constexpr std::size_t kTimeBytes = 1 + sizeof(double);

std::string without_time(const std::string& event) { return event.substr(kTimeBytes); }

// Reads a file in parts, since a file with images may be larger than memory.
class FileWindow {
 public:
  FileWindow(const Disk& disk, std::string path)
      : disk_(disk), path_(std::move(path)), size_(disk.size(path_)) {}
  uint64_t size() const { return size_; }
  // `bytes` at offset `at`; valid until the next call.
  const std::byte* read(uint64_t at, uint64_t bytes) {
    if (at < begin_ || at + bytes > begin_ + window_.size()) {
      begin_ = at;
      window_ = disk_.read_range(path_, at, std::min(size_ - at, std::max(bytes, kWindowBytes)));
    }
    return window_.data() + (at - begin_);
  }

 private:
  static constexpr uint64_t kWindowBytes = 1 << 20;
  const Disk& disk_;
  std::string path_;
  uint64_t size_ = 0, begin_ = 0;
  std::vector<std::byte> window_;
};

// Calls `handle` with each record of a file, up to the first torn one.
void for_each_event(const Disk& disk, const std::string& path,
                    const std::function<void(const std::string&)>& handle) {
  constexpr uint64_t kBefore = sizeof(uint64_t) + sizeof(uint32_t), kAfter = sizeof(uint32_t);
  FileWindow file(disk, path);
  for (uint64_t at = 0; file.size() - at > kBefore + kAfter;) {
    uint64_t length = 0;
    std::memcpy(&length, file.read(at, kBefore), sizeof length);
    if (length <= kTimeBytes || length > file.size() - at - kBefore - kAfter) break;
    handle(std::string(reinterpret_cast<const char*>(file.read(at + kBefore, length)), length));
    at += kBefore + length + kAfter;
  }
}

// The step of an event without its time. Sets `end` to the offset behind the step.
int64_t step_in(const std::string& event, std::size_t& end) {
  uint64_t step = 0;
  int shift = 0;
  for (end = 1; end < event.size() && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(event[end++]);
    step |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) break;
  }
  return static_cast<int64_t>(step);
}

std::string scalar(const std::string& name, double value) {
  return bytes(kValue,
               bytes(kTag, name) + tag(kSimpleValue, kFixed32) + little_endian(static_cast<float>(value)));
}

}  // namespace

// Reads the last file first: a restart invalidates its step and later steps in earlier files.
std::set<std::string> records_of_step(const Disk& disk, const std::vector<std::string>& paths, int64_t step) {
  std::set<std::string> found;
  bool voids_earlier = false;
  for (auto path = paths.rbegin(); path != paths.rend() && !voids_earlier; ++path) {
    std::set<std::string> in_file;
    for_each_event(disk, *path, [&](const std::string& one) {
      const std::string event = without_time(one);
      std::size_t end = 0;
      const int64_t event_step = step_in(event, end);
      const bool restarts = event.compare(end, 1, tag(kSessionLog, kBytes)) == 0;
      if (restarts && event_step <= step) {
        voids_earlier = true;
        in_file.clear();
      }
      if (!restarts && event_step == step) in_file.insert(event);
    });
    found.merge(in_file);
  }
  return found;
}

uint32_t masked_crc32c(const std::string& data) {
  const uint32_t crc = crc32<kCastagnoli>(data);
  return ((crc >> 15) | (crc << 17)) + kMaskDelta;
}

EventFile::EventFile(Disk& disk, const std::string& path, double wall_time_s)
    : disk_(disk), path_(path), file_(disk.open(path, /*truncate=*/true)) {
  record(event(wall_time_s, 0, bytes(kFileVersion, "brain.Event:2")));
}

void EventFile::restart(int64_t step, double wall_time_s) {
  record(event(wall_time_s, step, bytes(kSessionLog, number(1, kStatusStart))));
}

void EventFile::scalars(const std::vector<std::pair<std::string, double>>& values, int64_t step,
                        double wall_time_s) {
  std::string summary;
  for (const auto& [name, value] : values) summary += scalar(name, value);
  record(event(wall_time_s, step, bytes(kSummary, summary)));
}

void EventFile::text(const std::string& name, const std::string& markdown, int64_t step, double wall_time_s) {
  const std::string shape = bytes(kDim, number(kSize, 1));
  const std::string tensor = number(kDtype, kStringType) + bytes(kShape, shape) + bytes(kStrings, markdown);
  const std::string metadata = bytes(kPluginData, bytes(kPluginName, "text"));
  const std::string value = bytes(kTag, name) + bytes(kMetadata, metadata) + bytes(kTensor, tensor);
  record(event(wall_time_s, step, bytes(kSummary, bytes(kValue, value))));
}

// The colour space is 1 for one channel, 3 for three.
void EventFile::image(const std::string& name, const Image& image, int64_t step, double wall_time_s) {
  const std::string picture = number(kHeight, image.height) + number(kWidth, image.width) +
                              number(kColorspace, image.channels) + bytes(kEncoded, image.png);
  const std::string value = bytes(kTag, name) + bytes(kImage, picture);
  record(event(wall_time_s, step, bytes(kSummary, bytes(kValue, value))));
}

void EventFile::record(const std::string& event) {
  if (!known_.empty() && known_.contains(without_time(event))) return;
  if (!unwritten_.empty() && unwritten_.size() + event.size() > kMostUnwritten) {
    ++dropped_;
    return;
  }
  const std::string length = little_endian<uint64_t>(event.size());
  unwritten_ += length + little_endian(masked_crc32c(length)) + event + little_endian(masked_crc32c(event));
}

// A failed append is overwritten by the next one, which begins with the same bytes.
void EventFile::flush(bool sync) {
  if (!unwritten_.empty()) file_->append(std::as_bytes(std::span(unwritten_)));
  written_ += unwritten_.size();
  unwritten_.clear();
  if (!sync) return;
  file_->sync();
  if (!name_synced_) disk_.sync_folder(std::filesystem::path(path_).parent_path());
  name_synced_ = true;
}

// A failed append may have written the first of the unwritten records.
int64_t EventFile::missing() const {
  const uint64_t there = unwritten_.empty() ? 0 : bytes_behind(disk_, path_, written_);
  int64_t missing = dropped_;
  for (std::size_t at = 0; at < unwritten_.size();) {
    uint64_t length = 0;
    std::memcpy(&length, unwritten_.data() + at, sizeof length);
    at += kBeforeEvent + length + kAfterEvent;
    missing += at > there;
  }
  return missing;
}

}  // namespace tutti
