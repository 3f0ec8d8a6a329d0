#include "io/weights/torch_archive.h"

#include <c10/util/Exception.h>
#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "io/formats/dtypes.h"
#include "runtime/error.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"

namespace tutti {
namespace {

constexpr uint64_t kMostPickleBytes = uint64_t{256} << 20;
constexpr uint64_t kMethod = 8;  // in a record's header: how the record is compressed
constexpr std::string_view kOldStart = "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.";  // a pickle of a number

class MappedBytes final : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit MappedBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  size_t size() const override { return bytes_.size(); }
  size_t read(uint64_t at, void* buffer, size_t count, const char*) const override {
    if (at >= bytes_.size()) return 0;
    const auto part = bytes_.subspan(at, std::min(count, bytes_.size() - at));
    std::memcpy(buffer, part.data(), part.size());
    return part.size();
  }

 private:
  std::span<const std::byte> bytes_;
};

bool is_contiguous(const PickledTensor& tensor) {
  int64_t expected = 1;
  for (std::size_t d = tensor.shape.size(); d-- > 0;) {
    if (tensor.shape[d] == 0) return true;
    if (tensor.shape[d] != 1 && tensor.strides[d] != expected) return false;
    expected *= tensor.shape[d];
  }
  return true;
}

}  // namespace

TorchArchive::TorchArchive(const MappedFile& file, uint64_t begin, uint64_t size)
    : file_(file), begin_(begin) {
  const uint64_t all = file.bytes().size();
  if (begin > all || (size != UINT64_MAX && size > all - begin))
    fail("the file ends before byte " + std::to_string(begin) + " + " + std::to_string(size) +
         ": a truncated file");
  bytes_ = file.bytes().subspan(begin, std::min(size, all - begin));
  require_archive();
  reader_ = guarded([&] {
    return std::make_unique<caffe2::serialize::PyTorchStreamReader>(std::make_shared<MappedBytes>(bytes_));
  });
  if (has("constants.pkl")) fail("it is a TorchScript program; torch.save the state_dict() of its model");
  if (has("byteorder") && record("byteorder", 64) != "little") fail("its numbers are big-endian");
}

TorchArchive::~TorchArchive() = default;

void TorchArchive::fail(const std::string& what) const { throw UserError({file_.path()}, what); }

bool TorchArchive::has(const std::string& record) const {
  return guarded([&] { return reader_->hasRecord(record); });
}

Pickle TorchArchive::pickle(const PickledObjects& objects) const {
  if (!has("data.pkl")) fail("it has no record 'data.pkl': torch.save did not write it");
  const std::string text = record("data.pkl", kMostPickleBytes);
  return Pickle(std::as_bytes(std::span(text)), file_.path(), objects);
}

TorchArchive::Place TorchArchive::place(const PickledTensor& tensor, const std::string& name) const {
  if (at::isComplexType(tensor.storage.dtype))
    fail("'" + name + "' has complex numbers, which tutti does not read");
  const uint64_t item = c10::elementSize(tensor.storage.dtype);
  const auto [at, bytes] = place("data/" + tensor.storage.key);
  if (bytes < tensor.storage.numbers * item)
    fail("its record 'data/" + tensor.storage.key + "' has " + std::to_string(bytes) +
         " bytes, its pickle expects " + std::to_string(tensor.storage.numbers * item));
  return {begin_ + at + tensor.offset * item, is_contiguous(tensor) ? Shape() : tensor.strides};
}

void TorchArchive::require_archive() const {
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  if (text.substr(0, kOldStart.size()) == kOldStart)
    fail("it is in the format of PyTorch before 1.6; load it in PyTorch and torch.save it again");
  if (!text.starts_with("PK")) fail("it is no zip archive, which torch.save writes");
}

std::string TorchArchive::record(const std::string& name, uint64_t most_bytes) const {
  const uint64_t bytes = place(name).second;
  return guarded([&] {
    if (bytes > most_bytes)
      fail("its record '" + name + "' of " + std::to_string(bytes) + " bytes is too large");
    const auto [data, size] = reader_->getRecord(name);
    return std::string(static_cast<const char*>(data.get()), size);
  });
}

// Where the bytes of a record are in the archive.
std::pair<uint64_t, uint64_t> TorchArchive::place(const std::string& record) const {
  if (!has(record)) fail("it has no record '" + record + "', which its pickle needs: the file is damaged");
  return guarded([&] {
    const uint64_t at = reader_->getRecordOffset(record), bytes = reader_->getRecordSize(record);
    const uint64_t method = reader_->getRecordHeaderOffset(record) + kMethod, all = bytes_.size();
    if (method < all && bytes_[method] != std::byte{0})
      fail("its record '" + record + "' is compressed, which torch.save does not do");
    if (method >= all || at > all || bytes > all - at)
      fail("its record '" + record + "' ends behind the file");
    return std::pair(at, bytes);
  });
}

template <class Function>
auto TorchArchive::guarded(const Function& function) const -> decltype(function()) try {
  return function();
} catch (const c10::Error& error) {
  if (is_lack_of_memory(error)) throw;
  fail("its zip archive is damaged: " + one_line(error));
}

}  // namespace tutti
