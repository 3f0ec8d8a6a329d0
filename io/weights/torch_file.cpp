#include "io/weights/torch_file.h"

#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>
#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <string_view>

#include "io/formats/dtypes.h"
#include "io/mapped_file.h"
#include "io/weights/pickle.h"
#include "runtime/error.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"

namespace tutti {
namespace {

constexpr uint64_t kMostPickleBytes = uint64_t{256} << 20;
constexpr int kMostWrappers = 4;  // of dicts around a state dict
constexpr std::size_t kNamedKeys = 5;
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

// The zip archive of torch.save. Errors name the file.
class Archive {
 public:
  explicit Archive(const MappedFile& file) : file_(file) {
    require_archive();
    reader_ = guarded([&] {
      return std::make_unique<caffe2::serialize::PyTorchStreamReader>(
          std::make_shared<MappedBytes>(file.bytes()));
    });
    if (has("constants.pkl")) fail("it is a TorchScript program; torch.save the state_dict() of its model");
    if (has("byteorder") && record("byteorder", 64) != "little") fail("its numbers are big-endian");
  }

  [[noreturn]] void fail(const std::string& what) const { throw UserError({file_.path()}, what); }

  bool has(const std::string& name) const {
    return guarded([&] { return reader_->hasRecord(name); });
  }

  std::string record(const std::string& name, uint64_t most_bytes) const {
    const uint64_t bytes = place(name).second;
    return guarded([&] {
      if (bytes > most_bytes)
        fail("its record '" + name + "' of " + std::to_string(bytes) + " bytes is too large");
      const auto [data, size] = reader_->getRecord(name);
      return std::string(static_cast<const char*>(data.get()), size);
    });
  }

  // Where the bytes of a record are in the file.
  std::pair<uint64_t, uint64_t> place(const std::string& name) const {
    if (!has(name)) fail("it has no record '" + name + "', which its pickle needs: the file is damaged");
    return guarded([&] {
      const uint64_t at = reader_->getRecordOffset(name), bytes = reader_->getRecordSize(name);
      const uint64_t method = reader_->getRecordHeaderOffset(name) + kMethod, all = file_.bytes().size();
      if (method < all && file_.bytes()[method] != std::byte{0})
        fail("its record '" + name + "' is compressed, which torch.save does not do");
      if (method >= all || at > all || bytes > all - at)
        fail("its record '" + name + "' ends behind the file");
      return std::pair(at, bytes);
    });
  }

 private:
  static constexpr uint64_t kMethod = 8;  // in a record's header: how the record is compressed

  void require_archive() const {
    const std::string_view text(reinterpret_cast<const char*>(file_.bytes().data()), file_.bytes().size());
    if (text.substr(0, kOldStart.size()) == kOldStart)
      fail("it is in the format of PyTorch before 1.6; load it in PyTorch and torch.save it again");
    if (!text.starts_with("PK")) fail("it is no zip archive, which torch.save writes");
  }

  template <class Function>
  auto guarded(const Function& function) const -> decltype(function()) try {
    return function();
  } catch (const c10::Error& error) {
    if (is_lack_of_memory(error)) throw;
    fail("its zip archive is damaged: " + one_line(error));
  }

  const MappedFile& file_;
  std::unique_ptr<caffe2::serialize::PyTorchStreamReader> reader_;
};

bool has_tensors(const PickledDict& dict) {
  return std::ranges::any_of(dict.entries, [](const auto& entry) {
    return std::holds_alternative<PickledTensor>(entry.second->value);
  });
}

// The state dict in what was saved; null if there is none.
const PickledDict* state_dict_in(const PickledValue& saved) {
  const auto* dict = std::get_if<PickledDict>(&saved.value);
  for (int depth = 0; dict && !has_tensors(*dict) && depth < kMostWrappers; ++depth) {
    const PickledDict* inner = nullptr;
    for (const char* key : {"state_dict", "model_state_dict", "model", "module", "state"})
      if (const PickledValue* member = dict->find(key); member && !inner)
        inner = std::get_if<PickledDict>(&member->value);
    dict = inner;
  }
  return dict && (has_tensors(*dict) || dict->entries.empty()) ? dict : nullptr;
}

std::string keys_of(const PickledValue& saved) {
  const auto* dict = std::get_if<PickledDict>(&saved.value);
  if (!dict) return "it is no dict";
  std::string keys;
  for (std::size_t i = 0; i < std::min(dict->entries.size(), kNamedKeys); ++i)
    if (const auto* key = std::get_if<std::string>(&dict->entries[i].first->value))
      keys += (keys.empty() ? "'" : ", '") + *key + "'";
  return "its keys are " + keys + (dict->entries.size() > kNamedKeys ? ", ..." : "");
}

// Copies the numbers from `first` on of a tensor of any strides, in row-major order.
void gather(const at::Tensor& from, int64_t first, std::span<std::byte> to) {
  const auto item = static_cast<int64_t>(from.element_size());
  const int64_t count = static_cast<int64_t>(to.size()) / item;
  if (count == 0) return;
  if (first == 0 && count == from.numel()) {
    const at::Tensor packed = from.contiguous();
    std::memcpy(to.data(), packed.const_data_ptr(), to.size());
    return;
  }
  const int64_t row = from.numel() / from.size(0);
  for (int64_t i = first / row, end = first + count; i * row < end; ++i) {
    const int64_t begin = std::max(first, i * row), last = std::min(end, (i + 1) * row);
    gather(from.select(0, i), begin - i * row, to.subspan((begin - first) * item, (last - begin) * item));
  }
}

class TorchFile final : public TensorSource {
 public:
  TorchFile(const Disk& disk, const std::string& path) : disk_(disk), file_(path) {
    const Archive archive(file_);
    if (!archive.has("data.pkl")) archive.fail("it has no record 'data.pkl': torch.save did not write it");
    const std::string text = archive.record("data.pkl", kMostPickleBytes);
    const Pickle pickle(std::as_bytes(std::span(text)), path);
    const PickledDict* weights = state_dict_in(pickle.root());
    if (!weights) archive.fail("it holds no state dict; " + keys_of(pickle.root()));
    for (const auto& [key, value] : weights->entries) {
      const auto* name = std::get_if<std::string>(&key->value);
      const auto* tensor = std::get_if<PickledTensor>(&value->value);
      if (name && tensor) add(archive, *name, *tensor);
    }
  }

  void read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const override {
    const Place& place = places_.at(name);
    const Entry& entry = at(name);
    if (place.strides.empty())
      return disk_.read_into(file_.path(), place.at + first * c10::elementSize(entry.dtype), to);
    // libtorch has no tensors of memory that may not be written; this one is only read.
    auto* numbers = const_cast<std::byte*>(file_.bytes().data() + place.at);
    gather(at::from_blob(numbers, entry.shape, place.strides, entry.dtype), first, to);
  }

 private:
  struct Place {
    uint64_t at = 0;  // of the first number, in the file
    Shape strides;    // empty: contiguous
  };

  void add(const Archive& archive, const std::string& name, const PickledTensor& tensor) {
    if (at::isComplexType(tensor.storage.dtype))
      archive.fail("'" + name + "' has complex numbers, which tutti does not read");
    const uint64_t item = c10::elementSize(tensor.storage.dtype);
    const auto [at, bytes] = archive.place("data/" + tensor.storage.key);
    if (bytes < tensor.storage.numbers * item)
      archive.fail("its record 'data/" + tensor.storage.key + "' has " + std::to_string(bytes) +
                   " bytes, its pickle expects " + std::to_string(tensor.storage.numbers * item));
    entries_[name] = {tensor.shape, tensor.storage.dtype};
    places_[name] = {at + tensor.offset * item, is_contiguous(tensor) ? Shape() : tensor.strides};
  }

  static bool is_contiguous(const PickledTensor& tensor) {
    int64_t expected = 1;
    for (std::size_t d = tensor.shape.size(); d-- > 0;) {
      if (tensor.shape[d] == 0) return true;
      if (tensor.shape[d] != 1 && tensor.strides[d] != expected) return false;
      expected *= tensor.shape[d];
    }
    return true;
  }

  const Disk& disk_;
  MappedFile file_;
  std::map<std::string, Place> places_;
};

}  // namespace

std::unique_ptr<TensorSource> open_torch_file(const Disk& disk, const std::string& path) {
  return std::make_unique<TorchFile>(disk, path);
}

}  // namespace tutti
