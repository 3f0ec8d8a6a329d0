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

constexpr std::size_t kLeastOutput = std::size_t{1} << 16;
constexpr int kGzipWindow = 15 + 16;  // of the largest window, in zlib's words; 16: gzip's header

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

// Uncompresses all members of a gzip file (RFC 1952).
class Inflater {
 public:
  Inflater(std::span<const std::byte> bytes, const std::string& path) : in_(bytes), path_(path) {
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;

  std::vector<std::byte> uncompressed() {
    out_.resize(std::max(kLeastOutput, 4 * in_.size()));
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
      if (written_ == out_.size()) out_.resize(2 * out_.size());
    }
    out_.resize(written_);
    return std::move(out_);
  }

 private:
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
  z_stream stream_{};
  std::vector<std::byte> out_;
  std::size_t read_ = 0, written_ = 0;
};

}  // namespace

GzipFile::GzipFile(const std::string& path) : path_(path) {
  map_.emplace(path);
  if (!is_gzip(map_->bytes())) return;
  try {
    uncompressed_ = Inflater(map_->bytes(), path).uncompressed();
  } catch (const std::bad_alloc&) {
    throw UserError({path}, "there is no memory for what it holds uncompressed");
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
