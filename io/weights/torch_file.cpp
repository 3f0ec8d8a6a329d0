#include "io/weights/torch_file.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#include "io/mapped_file.h"
#include "io/weights/torch_archive.h"

namespace tutti {
namespace {

constexpr int kMostWrappers = 4;  // of dicts around a state dict
constexpr std::size_t kNamedKeys = 5;

bool has_tensors(const PickledDict& dict) {
  return std::ranges::any_of(dict.entries, [](const auto& entry) {
    return std::holds_alternative<PickledTensor>(entry.second->value);
  });
}

// The state dict in what was saved; null if there is none. Beside that of a model there may be other tensors.
const PickledDict* state_dict_in(const PickledValue& saved, int depth = 0) {
  const auto* dict = std::get_if<PickledDict>(&saved.value);
  if (!dict || depth > kMostWrappers) return nullptr;
  for (const char* key : {"state_dict", "model_state_dict", "model", "module", "state"})
    if (const PickledValue* member = dict->find(key))
      if (const PickledDict* inner = state_dict_in(*member, depth + 1)) return inner;
  return has_tensors(*dict) || (depth == 0 && dict->entries.empty()) ? dict : nullptr;
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
    const TorchArchive archive(file_);
    const Pickle pickle = archive.pickle();
    const PickledDict* weights = state_dict_in(pickle.root());
    if (!weights) archive.fail("it holds no state dict; " + keys_of(pickle.root()));
    for (const auto& [key, value] : weights->entries) {
      const auto* name = std::get_if<std::string>(&key->value);
      const auto* tensor = std::get_if<PickledTensor>(&value->value);
      if (name && tensor) add(archive, *name, *tensor);
    }
  }

  void read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const override {
    const TorchArchive::Place& place = places_.at(name);
    const Entry& entry = at(name);
    if (place.strides.empty())
      return disk_.read_into(file_.path(), place.at + first * c10::elementSize(entry.dtype), to);
    // libtorch has no tensors of memory that may not be written; this one is only read.
    auto* numbers = const_cast<std::byte*>(file_.bytes().data() + place.at);
    gather(at::from_blob(numbers, entry.shape, place.strides, entry.dtype), first, to);
  }

 private:
  void add(const TorchArchive& archive, const std::string& name, const PickledTensor& tensor) {
    places_[name] = archive.place(tensor, name);
    entries_[name] = {tensor.shape, tensor.storage.dtype};
  }

  const Disk& disk_;
  MappedFile file_;
  std::map<std::string, TorchArchive::Place> places_;
};

}  // namespace

std::unique_ptr<TensorSource> open_torch_file(const Disk& disk, const std::string& path) {
  return std::make_unique<TorchFile>(disk, path);
}

}  // namespace tutti
