#define ZLIB_CONST
#include "io/formats/gzip_file.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <new>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int kGzipWindow = 15 + 16;  // of the largest window, in zlib's words; 16: gzip's header

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

// Uncompresses all members of a gzip file (RFC 1952).
class Inflater {
 public:
  Inflater(std::span<const std::byte> bytes, const std::string& path, const GzipFile::MostBytes& most_bytes)
      : in_(bytes), path_(path), most_bytes_(most_bytes) {
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;

  std::vector<std::byte> uncompressed() {
    out_.resize(GzipFile::kHeadBytes);
    for (;;) {
      const int code = step();
      if (code == Z_STREAM_END && read_ == in_.size()) break;
      if (code == Z_STREAM_END) {
        inflateReset(&stream_);
      } else if (code == Z_MEM_ERROR) {
        throw std::bad_alloc();
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        fail(std::string("damaged gzip data: ") + (stream_.msg ? stream_.msg : "unknown"));
      } else if (read_ == in_.size() && written_ < out_.size()) {
        throw UserError({path_},
                        "ends at byte " + std::to_string(read_) + ", before its gzip data do: truncated");
      }
      if (written_ == out_.size() && !grow()) break;
    }
    out_.resize(written_);
    return std::move(out_);
  }

  bool is_cut() const { return is_cut_; }

 private:
  bool grow() {
    if (most_ == 0) most_ = std::max<uint64_t>(most_bytes_(out_) + 1, 1);
    is_cut_ = written_ >= most_;
    if (!is_cut_) out_.resize(std::min<uint64_t>(most_, std::max(2 * out_.size(), 4 * in_.size())));
    return !is_cut_;
  }

  int step() {
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    const auto in = static_cast<uInt>(std::min(kMost, in_.size() - read_));
    const auto out = static_cast<uInt>(std::min(kMost, out_.size() - written_));
    stream_.next_in = reinterpret_cast<const Bytef*>(in_.data() + read_);
    stream_.avail_in = in;
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data() + written_);
    stream_.avail_out = out;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    read_ += in - stream_.avail_in;
    written_ += out - stream_.avail_out;
    return code;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw UserError({path_}, "byte " + std::to_string(read_) + ": " + what);
  }

  std::span<const std::byte> in_;
  const std::string& path_;
  const GzipFile::MostBytes& most_bytes_;
  uint64_t most_ = 0;  // and one more; 0 = not asked for yet
  bool is_cut_ = false;
  z_stream stream_{};
  std::vector<std::byte> out_;
  std::size_t read_ = 0, written_ = 0;
};

}  // namespace

GzipFile::GzipFile(const std::string& path, const MostBytes& most_bytes) : path_(path) {
  map_.emplace(path);
  if (!is_gzip(map_->bytes())) return;
  try {
    Inflater inflater(map_->bytes(), path, most_bytes);
    uncompressed_ = inflater.uncompressed();
    is_cut_ = inflater.is_cut();
  } catch (const std::bad_alloc&) {
    throw RunError(EndKind::kOutOfMemoryElsewhere, {path},
                   "there is not enough memory for its uncompressed contents");
  }
  map_.reset();
}

std::span<const std::byte> GzipFile::bytes() const { return map_ ? map_->bytes() : uncompressed_; }

std::string plain_or_gzip(const std::string& path) {
  std::error_code ignored;
  const bool only_gzip =
      !std::filesystem::exists(path, ignored) && std::filesystem::exists(path + ".gz", ignored);
  return only_gzip ? path + ".gz" : path;
}

}  // namespace tutti
