#include "io/formats/event_file.h"

#include <bit>
#include <cstring>
#include <filesystem>

#include "io/formats/event_fields.h"
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

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string tag(uint32_t field, proto::WireType type) { return varint(field << 3 | type); }
std::string number(uint32_t field, int64_t value) {
  return tag(field, proto::kVarint) + varint(static_cast<uint64_t>(value));
}
std::string bytes(uint32_t field, const std::string& value) {
  return tag(field, proto::kBytes) + varint(value.size()) + value;
}

constexpr int64_t kStringType = 7;   // DT_STRING
constexpr int64_t kStatusStart = 1;  // SessionLog.START

std::string event(double wall_time_s, int64_t step, const std::string& what) {
  return tag(proto::kWallTime, proto::kFixed64) + little_endian(wall_time_s) + number(proto::kStep, step) +
         what;
}

std::string without_time(const std::string& event) { return event.substr(kTimeBytes); }

std::string scalar(const std::string& name, double value) {
  return bytes(proto::kValue, bytes(proto::kTag, name) + tag(proto::kSimpleValue, proto::kFixed32) +
                                  little_endian(static_cast<float>(value)));
}

}  // namespace

uint32_t masked_crc32c(const std::string& data) {
  const uint32_t crc = crc32<kCastagnoli>(data);
  return ((crc >> 15) | (crc << 17)) + kMaskDelta;
}

EventFile::EventFile(Disk& disk, const std::string& path, double wall_time_s)
    : disk_(disk), path_(path), file_(disk.open(path, /*truncate=*/true)) {
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
  const std::string shape = bytes(proto::kDim, number(proto::kSize, 1));
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
