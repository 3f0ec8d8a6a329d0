#include "io/exported/archive.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <caffe2/serialize/inline_container.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "io/exported/program.h"
#include "io/json/json_text.h"
#include "runtime/error.h"
#include "tensors/memory/out_of_memory.h"

namespace tutti::exported {
namespace {

using Json = nlohmann::json;

struct Stored {
  std::string record;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;  // in elements
};

std::vector<int64_t> numbers_of(const Json& list) {
  std::vector<int64_t> numbers;
  for (const Json& number : list) numbers.push_back(whole_number(number.at("as_int")));
  return numbers;
}

// The numbers of a storage up to the tensor's last one; nullopt if they cannot be counted.
std::optional<uint64_t> numbers_needed(const Stored& stored) {
  int64_t last = stored.offset, way = 0;
  bool fits = stored.offset >= 0 && stored.sizes.size() == stored.strides.size();
  for (std::size_t d = 0; fits && d < stored.sizes.size(); ++d)
    fits = stored.sizes[d] > 0 && stored.strides[d] >= 0 &&
           !__builtin_mul_overflow(stored.sizes[d] - 1, stored.strides[d], &way) &&
           !__builtin_add_overflow(last, way, &last);
  return fits ? std::optional(static_cast<uint64_t>(last) + 1) : std::nullopt;
}

}  // namespace

class Archive::Contents {
 public:
  explicit Contents(const std::string& path) : reader_(path), bytes_(std::filesystem::file_size(path)) {
    for (const std::string what : {"weights", "constants"}) {
      const std::string folder = "data/" + what + "/", config = folder + "model_" + what + "_config.json";
      if (!reader_.hasRecord(config)) continue;
      const Json all = parse_json<Json>(text(config));
      for (const auto& [name, tensor] : all.at("config").items()) add(folder, name, tensor);
    }
  }

  std::string text(const std::string& record) {
    const auto [data, bytes] = record_of(record);
    return {static_cast<const char*>(data.get()), bytes};
  }

  void read(const std::string& name, at::Tensor& to) {
    const Stored& stored = stored_.at(name);
    if (at::IntArrayRef(stored.sizes) != to.sizes()) throw UserError("'" + name + "' has another shape");
    if (to.numel() == 0) return;
    const auto [data, bytes] = record_of(stored.record);
    const std::size_t elements = bytes / c10::elementSize(stored.dtype);
    const auto needed = numbers_needed(stored);
    if (!needed || *needed > elements) throw UserError("'" + name + "' is cut off");
    const at::NoGradGuard no_grad;
    to.copy_(at::from_blob(data.get(), {static_cast<int64_t>(elements)}, stored.dtype)
                 .as_strided(stored.sizes, stored.strides, stored.offset));
  }

  bool has_program() { return reader_.hasRecord(kProgram); }
  static constexpr const char* kProgram = "models/model.json";

  bool has(const std::string& name) const { return stored_.contains(name); }

  std::string place(const std::string& name) const {
    const auto known = stored_.find(name);
    if (known == stored_.end()) return "";
    const Stored& stored = known->second;
    std::string place = stored.record + " " + std::to_string(stored.offset);
    for (const int64_t size : stored.sizes) place += " " + std::to_string(size);
    for (const int64_t stride : stored.strides) place += " " + std::to_string(stride);
    return place;
  }

 private:
  // torch.export.save compresses nothing, so that no record is larger than the file.
  std::tuple<at::DataPtr, std::size_t> record_of(const std::string& name) {
    if (reader_.getRecordSize(name) > bytes_) throw UserError("its record '" + name + "' is too large");
    return reader_.getRecord(name);
  }

  void add(const std::string& folder, const std::string& name, const Json& tensor) {
    if (tensor.value("use_pickle", false)) return;  // a tensor of a Python class
    const Json& meta = tensor.at("tensor_meta");
    stored_[name] = {folder + tensor.at("path_name").get<std::string>(),
                     dtype_of(whole_number(meta.at("dtype"))), numbers_of(meta.at("sizes")),
                     numbers_of(meta.at("strides")), whole_number(meta.at("storage_offset").at("as_int"))};
  }

  caffe2::serialize::PyTorchStreamReader reader_;
  uint64_t bytes_;  // of the file
  std::map<std::string, Stored> stored_;
};

Archive::Archive(std::string path) : path_(std::move(path)) {
  if (!std::filesystem::is_regular_file(path_)) throw UserError("there is no file " + path_);
  try {
    contents_ = std::make_unique<Contents>(path_);
  } catch (const std::exception& error) {
    if (is_lack_of_memory(error)) throw;
    throw UserError(path_ + " is no whole file of torch.export.save");
  }
  if (!contents_->has_program())
    throw UserError(path_ + " has no program of torch.export (PyTorch 2.9 and later)");
}

Archive::~Archive() = default;

std::string Archive::program() const try {
  return contents_->text(Contents::kProgram);
} catch (const std::exception& error) {
  if (is_lack_of_memory(error)) throw;
  throw UserError(path_ + ": its program cannot be read");
}

std::string Archive::place(const std::string& name) const { return contents_->place(name); }

void Archive::read(const std::string& name, at::Tensor& to) const try {
  if (!contents_->has(name)) throw UserError("it has no values of '" + name + "'");
  contents_->read(name, to);
} catch (const UserError& error) {
  throw UserError(path_ + ": " + error.what());
} catch (const std::exception& error) {
  if (is_lack_of_memory(error)) throw;
  throw UserError(path_ + ": '" + name + "' cannot be read");
}

}  // namespace tutti::exported
