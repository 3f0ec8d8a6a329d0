#include "io/exported/archive.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <caffe2/serialize/inline_container.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "io/exported/program.h"
#include "runtime/error.h"

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
  for (const Json& one : list) numbers.push_back(one.at("as_int").get<int64_t>());
  return numbers;
}

}  // namespace

class Archive::Contents {
 public:
  explicit Contents(const std::string& path) : reader_(path) {
    for (const std::string what : {"weights", "constants"}) {
      const std::string folder = "data/" + what + "/", config = folder + "model_" + what + "_config.json";
      if (!reader_.hasRecord(config)) continue;
      const Json all = Json::parse(text(config));
      for (const auto& [name, one] : all.at("config").items()) add(folder, name, one);
    }
  }

  std::string text(const std::string& record) {
    const auto [data, bytes] = reader_.getRecord(record);
    return {static_cast<const char*>(data.get()), bytes};
  }

  void read(const std::string& name, at::Tensor& to) {
    const Stored& one = stored_.at(name);
    const auto [data, bytes] = reader_.getRecord(one.record);
    int64_t last = one.offset;
    for (std::size_t d = 0; d < one.sizes.size(); ++d) last += (one.sizes[d] - 1) * one.strides[d];
    if (to.numel() > 0 && static_cast<std::size_t>(last + 1) * c10::elementSize(one.dtype) > bytes)
      throw UserError("'" + name + "' is cut off");
    const auto elements = static_cast<int64_t>(bytes / c10::elementSize(one.dtype));
    const at::NoGradGuard no_grad;
    to.copy_(at::from_blob(data.get(), {elements}, one.dtype).as_strided(one.sizes, one.strides, one.offset));
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
  void add(const std::string& folder, const std::string& name, const Json& one) {
    if (one.value("use_pickle", false)) return;  // a tensor of a Python class
    const Json& meta = one.at("tensor_meta");
    stored_[name] = {folder + one.at("path_name").get<std::string>(),
                     dtype_of(meta.at("dtype").get<int64_t>()), numbers_of(meta.at("sizes")),
                     numbers_of(meta.at("strides")), meta.at("storage_offset").at("as_int").get<int64_t>()};
  }

  caffe2::serialize::PyTorchStreamReader reader_;
  std::map<std::string, Stored> stored_;
};

Archive::Archive(std::string path) : path_(std::move(path)) {
  if (!std::filesystem::is_regular_file(path_)) throw UserError("there is no file " + path_);
  try {
    contents_ = std::make_unique<Contents>(path_);
  } catch (const std::exception&) {
    throw UserError(path_ + " is no whole file of torch.export.save");
  }
  if (!contents_->has_program())
    throw UserError(path_ + " has no program of torch.export (PyTorch 2.9 and later)");
}

Archive::~Archive() = default;

std::string Archive::program() const { return contents_->text(Contents::kProgram); }

std::string Archive::place(const std::string& name) const { return contents_->place(name); }

void Archive::read(const std::string& name, at::Tensor& to) const try {
  if (!contents_->has(name)) throw UserError("it has no values of '" + name + "'");
  contents_->read(name, to);
} catch (const UserError& error) {
  throw UserError(path_ + ": " + error.what());
} catch (const std::exception&) {
  throw UserError(path_ + ": '" + name + "' cannot be read");
}

}  // namespace tutti::exported
