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
#include "io/formats/json_text.h"
#include "runtime/error.h"
#include "tensors/out_of_memory.h"

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
  for (const Json& one : list) numbers.push_back(whole_number(one.at("as_int")));
  return numbers;
}

// The numbers of a storage up to the tensor's last one; nullopt if they cannot be counted.
std::optional<uint64_t> numbers_needed(const Stored& one) {
  int64_t last = one.offset, way = 0;
  bool fits = one.offset >= 0 && one.sizes.size() == one.strides.size();
  for (std::size_t d = 0; fits && d < one.sizes.size(); ++d)
    fits = one.sizes[d] > 0 && one.strides[d] >= 0 &&
           !__builtin_mul_overflow(one.sizes[d] - 1, one.strides[d], &way) &&
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
      for (const auto& [name, one] : all.at("config").items()) add(folder, name, one);
    }
  }

  std::string text(const std::string& record) {
    const auto [data, bytes] = record_of(record);
    return {static_cast<const char*>(data.get()), bytes};
  }

  void read(const std::string& name, at::Tensor& to) {
    const Stored& one = stored_.at(name);
    if (at::IntArrayRef(one.sizes) != to.sizes()) throw UserError("'" + name + "' has another shape");
    if (to.numel() == 0) return;
    const auto [data, bytes] = record_of(one.record);
    const std::size_t elements = bytes / c10::elementSize(one.dtype);
    const auto needed = numbers_needed(one);
    if (!needed || *needed > elements) throw UserError("'" + name + "' is cut off");
    const at::NoGradGuard no_grad;
    to.copy_(at::from_blob(data.get(), {static_cast<int64_t>(elements)}, one.dtype)
                 .as_strided(one.sizes, one.strides, one.offset));
  }

  bool has_program() { return reader_.hasRecord(kProgram); }
  static constexpr const char* kProgram = "models/model.json";

  bool has(const std::string& name) const { return stored_.contains(name); }

  std::string place(const std::string& name) const {
    const auto found = stored_.find(name);
    if (found == stored_.end()) return "";
    const Stored& one = found->second;
    std::string place = one.record + " " + std::to_string(one.offset);
    for (const int64_t size : one.sizes) place += " " + std::to_string(size);
    for (const int64_t stride : one.strides) place += " " + std::to_string(stride);
    return place;
  }

 private:
  // torch.export.save compresses nothing, so that no record is larger than the file.
  std::tuple<at::DataPtr, std::size_t> record_of(const std::string& name) {
    if (reader_.getRecordSize(name) > bytes_) throw UserError("its record '" + name + "' is too large");
    return reader_.getRecord(name);
  }

  void add(const std::string& folder, const std::string& name, const Json& one) {
    if (one.value("use_pickle", false)) return;  // a tensor of a Python class
    const Json& meta = one.at("tensor_meta");
    stored_[name] = {folder + one.at("path_name").get<std::string>(),
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
