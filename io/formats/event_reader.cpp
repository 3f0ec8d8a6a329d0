#include "io/formats/event_reader.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>

#include "io/formats/event_fields.h"

namespace tutti {
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

// The fields of a protobuf, one after the other, up to the first damaged one.
class ProtobufFields {
 public:
  explicit ProtobufFields(std::string_view rest) : rest_(rest) {}

  bool next() {
    uint64_t head = 0;
    if (!read_varint(head)) return false;
    number_ = static_cast<uint32_t>(head >> 3);
    switch (head & 7) {
      case proto::kVarint:
        return read_varint(value_);
      case proto::kFixed64:
        return read_bytes(sizeof(uint64_t));
      case proto::kFixed32:
        return read_bytes(sizeof(uint32_t));
      case proto::kBytes:
        return read_varint(value_) && read_bytes(value_);
      default:
        return false;
    }
  }
  uint32_t number() const { return number_; }
  uint64_t value() const { return value_; }          // of a varint
  std::string_view bytes() const { return bytes_; }  // of any other

 private:
  bool read_varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool read_bytes(uint64_t count) {
    if (count > rest_.size()) return false;
    bytes_ = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }

  std::string_view rest_, bytes_;
  uint32_t number_ = 0;
  uint64_t value_ = 0;
};

// The bytes of the last field of this number; empty without one.
std::string_view bytes_of(std::string_view message, uint32_t number) {
  std::string_view found;
  for (ProtobufFields fields(message); fields.next();)
    if (fields.number() == number) found = fields.bytes();
  return found;
}

struct EventHead {
  int64_t step = 0;
  bool restarts = false;  // of the session: invalidates its step and later ones in earlier files
};

EventHead event_head(std::string_view event) {
  EventHead head;
  for (ProtobufFields fields(event); fields.next();) {
    if (fields.number() == proto::kStep) head.step = static_cast<int64_t>(fields.value());
    if (fields.number() == proto::kSessionLog) head.restarts = true;
  }
  return head;
}

}  // namespace

// Reads the last file first, since it may make the others irrelevant.
std::set<std::string> records_of_step(const Disk& disk, const std::vector<std::string>& paths, int64_t step) {
  std::set<std::string> found;
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
    found.merge(in_file);
  }
  return found;
}

std::vector<ShownRecord> images_and_texts(const Disk& disk, const std::vector<std::string>& paths) {
  std::vector<ShownRecord> found;
  for (const std::string& path : paths)
    for_each_event(disk, path, [&](std::string_view event, uint64_t offset) {
      const EventHead head = event_head(event);
      if (head.restarts) std::erase_if(found, [&](const ShownRecord& one) { return one.step >= head.step; });
      const std::string_view value = bytes_of(bytes_of(event, proto::kSummary), proto::kValue);
      const std::string_view png = bytes_of(bytes_of(value, proto::kImage), proto::kEncoded);
      const std::string_view bytes =
          png.empty() ? bytes_of(bytes_of(value, proto::kTensor), proto::kStrings) : png;
      if (bytes.empty()) return;
      found.push_back({std::string(bytes_of(value, proto::kTag)), head.step, !png.empty(), path,
                       offset + static_cast<uint64_t>(bytes.data() - event.data()), bytes.size()});
    });
  return found;
}

}  // namespace tutti
