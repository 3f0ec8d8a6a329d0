#include "data/readers/benchmarks/idx.h"

#include <algorithm>
#include <filesystem>

#include "data/readers/benchmarks/image_dataset.h"
#include "data/readers/opened.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int kUnsignedBytes = 0x08;
constexpr int64_t kMagicBytes = 4;
constexpr int64_t kSizeBytes = 4;

// The end of an IDX file's data by its header; of another file as much as it takes to see that.
uint64_t promised_bytes(std::span<const std::byte> head) {
  const auto byte = [&](uint64_t at) { return std::to_integer<uint64_t>(head[at]); };
  if (head.size() < kMagicBytes || byte(0) != 0 || byte(1) != 0) return kMagicBytes;
  const uint64_t first = kMagicBytes + byte(3) * kSizeBytes;
  uint64_t end = 1;
  for (uint64_t at = kMagicBytes; at < first && first <= head.size(); at += kSizeBytes) {
    const uint64_t size = byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3);
    if (__builtin_mul_overflow(end, size, &end)) return first;
  }
  return __builtin_add_overflow(end, first, &end) ? first : end;
}

// An array of unsigned bytes in an IDX file. The header is two zeros, the type, the number of dimensions, and
// each size as a big-endian uint32.
class IdxArray {
 public:
  explicit IdxArray(const std::string& path) : file_(std::make_shared<const GzipFile>(path, promised_bytes)) {
    const auto size = static_cast<int64_t>(file_->bytes().size());
    if (size < kMagicBytes) cut("the magic number");
    if (byte(0) != 0 || byte(1) != 0) fail(0, "it is no IDX file, which begins with two zeros");
    if (byte(2) != kUnsignedBytes)
      fail(2, "its numbers are of type " + std::to_string(byte(2)) + "; only 8, unsigned bytes, are read");
    if (size < first()) cut("its header");
    int64_t end = 1;
    for (int64_t i = 0; i < byte(3); ++i) {
      sizes_.push_back(size_at(kMagicBytes + i * kSizeBytes));
      if (sizes_.back() == 0) fail(kMagicBytes + i * kSizeBytes, "it holds nothing: a size is 0");
      if (__builtin_mul_overflow(end, sizes_.back(), &end)) fail(kMagicBytes, "it is too large for a file");
    }
    if (__builtin_add_overflow(end, first(), &end)) fail(kMagicBytes, "it is too large for a file");
    if (size < end)
      cut("its data " + shape_text(sizes_) + ", which by its header end at byte " + std::to_string(end));
    if (size > end)
      fail(end, std::string("there are ") + (file_->is_cut() ? "more than " : "") +
                    std::to_string(size - end) + " bytes behind its data " + shape_text(sizes_));
  }

  const Shape& sizes() const { return sizes_; }
  ByteRecords records() const { return {file_, first(), row_bytes()}; }
  [[noreturn]] void fail(int64_t at, const std::string& what) const {
    throw UserError({file_->path()}, "byte " + std::to_string(at) + ": " + what);
  }

 private:
  int64_t byte(int64_t at) const {
    return std::to_integer<int64_t>(file_->bytes()[static_cast<std::size_t>(at)]);
  }
  int64_t size_at(int64_t at) const {
    int64_t size = 0;
    for (int64_t i = 0; i < kSizeBytes; ++i) size = size << 8 | byte(at + i);
    return size;
  }
  int64_t first() const { return kMagicBytes + byte(3) * kSizeBytes; }
  int64_t row_bytes() const {
    int64_t bytes = 1;
    for (std::size_t i = 1; i < sizes_.size(); ++i) bytes *= sizes_[i];
    return bytes;
  }
  [[noreturn]] void cut(const std::string& where) const {
    throw UserError({file_->path()}, "ends at byte " + std::to_string(file_->bytes().size()) + ", in " +
                                         where + ": truncated");
  }

  std::shared_ptr<const GzipFile> file_;
  Shape sizes_;
};

constexpr int64_t kDimensionsByte = 3;

void require_pair(const IdxArray& images, const IdxArray& labels) {
  const std::size_t dims = images.sizes().size();
  if (dims != 3 && dims != 4)
    images.fail(kDimensionsByte, "it has " + std::to_string(dims) +
                                     " dimensions; expected images [samples, height, width], or with "
                                     "channels");
  if (labels.sizes().size() != 1)
    labels.fail(kDimensionsByte,
                "it has " + std::to_string(labels.sizes().size()) + " dimensions; expected labels [samples]");
  if (labels.sizes()[0] != images.sizes()[0])
    labels.fail(kMagicBytes, "it has " + std::to_string(labels.sizes()[0]) + " labels, for " +
                                 std::to_string(images.sizes()[0]) + " images");
}

// Except `ignore_index`; -1 if there is none.
int64_t largest_byte_label(const ByteRecords& labels, int64_t samples, int64_t ignore_index) {
  const auto bytes =
      labels.file->bytes().subspan(static_cast<std::size_t>(labels.first), static_cast<std::size_t>(samples));
  int64_t largest = -1;
  for (const std::byte byte : bytes)
    if (const auto label = std::to_integer<int64_t>(byte); label != ignore_index)
      largest = std::max(largest, label);
  return largest;
}

}  // namespace

DatasetPtr open_idx(const IdxOptions& options) {
  const IdxArray images(options.images), labels(options.labels);
  require_pair(images, labels);
  const Shape& sizes = images.sizes();
  const ImageDataset::Part part{images.records(), labels.records(), sizes[0]};
  const ImageDataset::Layout layout{
      .height = sizes[1],
      .width = sizes[2],
      .channels = sizes.size() == 4 ? sizes[3] : 1,
      .planar = false,
      .classes = options.num_classes > 0
                     ? options.num_classes
                     : largest_byte_label(part.labels, sizes[0], options.ignore_index) + 1,
      .ignore_index = options.ignore_index};
  return std::make_shared<const ImageDataset>(layout, std::vector{part});
}

IdxOptions mnist_files(const std::string& folder, bool test) {
  const std::string set = test ? "t10k" : "train";
  std::error_code ignored;
  for (const std::string& below : {folder, folder + "/raw", folder + "/MNIST/raw"})
    for (const char* dot : {"-", "."}) {
      const std::string images = plain_or_gzip(below + "/" + set + "-images" + dot + "idx3-ubyte");
      const std::string labels = plain_or_gzip(below + "/" + set + "-labels" + dot + "idx1-ubyte");
      if (std::filesystem::exists(images, ignored)) return {images, labels};
    }
  throw UserError({folder}, "there is no " + set + "-images-idx3-ubyte in it, plain or .gz");
}

DatasetPtr MnistOptions::make(const Setting& section, const DataEnvironment&) const {
  return opened(section, [&] { return open_idx(mnist_files(path, test)); });
}

// The error names its file; the key is the one with that file.
DatasetPtr IdxOptions::make(const Setting& section, const DataEnvironment& environment) const try {
  IdxOptions options = *this;
  options.ignore_index = environment.ignore_index;
  return open_idx(options);
} catch (const UserError& error) {
  section.at(error.position().file == labels ? "labels" : "images").fail(error);
}

}  // namespace tutti
