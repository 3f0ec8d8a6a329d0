#include "io/weights/torch_writer.h"

#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>
#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <set>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "io/formats/dtypes.h"
#include "io/formats/safetensors.h"
#include "runtime/error.h"

namespace tutti {
namespace {

uint64_t bytes_of(const TensorSource::Entry& entry) {
  return contiguous_bytes(entry.shape, entry.dtype).value_or(0);
}

const char* storage_of(at::ScalarType dtype) {
  static const std::map<at::ScalarType, const char*> names{
      {at::kFloat, "FloatStorage"}, {at::kDouble, "DoubleStorage"},     {at::kHalf, "HalfStorage"},
      {at::kLong, "LongStorage"},   {at::kBFloat16, "BFloat16Storage"}, {at::kInt, "IntStorage"},
      {at::kShort, "ShortStorage"}, {at::kChar, "CharStorage"},         {at::kByte, "ByteStorage"},
      {at::kBool, "BoolStorage"}};
  const auto name = names.find(dtype);
  if (name == names.end())
    throw OperatingError("torch.load has no storage of " + dtype_name(dtype) + "; --to writes safetensors");
  return name->second;
}

// A pickle of protocol 2, as pickletools.dis shows it: an OrderedDict of tensors, which the storages "0",
// "1",
// ... hold.
class StateDictPickle {
 public:
  StateDictPickle(const TensorSource::Entries& tensors, const std::vector<std::string>& keys)
      : text_("\x80\x02") {
    for (const std::string& key : keys) {
      text_ += "}";
      add_text(key);
    }
    add_ordered_dict();
    text_ += "(";
    std::size_t number = 0;
    for (const auto& [name, entry] : tensors) {
      add_text(name);
      add_tensor(entry, std::to_string(number++));
    }
    text_ += "u";
    text_.append(keys.size(), 's');
    text_ += ".";
  }

  const std::string& text() const { return text_; }

 private:
  void add_little_endian(const char* opcode, uint64_t value, int bytes) {
    text_ += opcode;
    for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(value >> (8 * i) & 0xff);
  }
  void add_text(const std::string& text) {
    add_little_endian("X", text.size(), 4);
    text_ += text;
  }
  void add_number(int64_t value) { add_little_endian("\x8a\x08", static_cast<uint64_t>(value), 8); }
  void add_sizes(const Shape& sizes) {
    text_ += "(";
    for (const int64_t size : sizes) add_number(size);
    text_ += "t";
  }
  void add_ordered_dict() { text_ += "ccollections\nOrderedDict\n)R"; }

  void add_tensor(const TensorSource::Entry& entry, const std::string& key) {
    Shape strides(entry.shape.size(), 1);
    for (std::size_t d = strides.size(); d-- > 1;)
      strides[d - 1] = strides[d] * std::max<int64_t>(1, entry.shape[d]);
    text_ += "ctorch._utils\n_rebuild_tensor_v2\n((";
    add_text("storage");
    text_ += std::string("ctorch\n") + storage_of(entry.dtype) + "\n";
    add_text(key);
    add_text("cpu");
    add_number(c10::multiply_integers(entry.shape));
    text_ += "tQ";
    add_number(0);
    add_sizes(entry.shape);
    add_sizes(strides);
    text_ += "\x89";
    add_ordered_dict();
    text_ += "tR";
  }

  std::string text_;
};

at::Tensor packed(const at::Tensor& tensor) { return tensor.detach().cpu().contiguous(); }

// "model.safetensors" -> "model-00002-of-00003.safetensors".
std::string name_of_part(const std::string& path, std::size_t part, std::size_t parts) {
  if (parts == 1) return path;
  char number[32];
  std::snprintf(number, sizeof number, "-%05zu-of-%05zu", part + 1, parts);
  const std::size_t end = path.rfind('.');
  return path.substr(0, end) + number + path.substr(end);
}

std::vector<TensorSource::Entries> parts_of(const TensorSource::Entries& tensors, uint64_t most_bytes) {
  std::vector<TensorSource::Entries> parts(1);
  uint64_t bytes = 0;
  for (const auto& [name, entry] : tensors) {
    if (!parts.back().empty() && bytes + bytes_of(entry) > most_bytes) {
      parts.emplace_back();
      bytes = 0;
    }
    parts.back().emplace(name, entry);
    bytes += bytes_of(entry);
  }
  return parts;
}

void write_part(Disk& disk, const std::string& path, const TensorSource::Entries& tensors,
                const WrittenTensor& read) {
  const std::string fresh = path + ".new";
  Safetensors layout{{}, {{"format", "pt"}}};
  for (const auto& [name, entry] : tensors)
    layout.tensors[name] = at::empty(entry.shape, at::TensorOptions(at::kMeta).dtype(entry.dtype));
  SafetensorsFile file(disk, fresh, layout);
  for (const auto& [name, entry] : tensors) file.put(name, read(name));
  file.finish();
  disk.rename(fresh, path);
}

void write_text(Disk& disk, const std::string& path, const std::string& text) {
  const auto file = disk.open(path + ".new", /*truncate=*/true);
  file->append(std::as_bytes(std::span(text)));
  file->sync();
  file->close();
  disk.rename(path + ".new", path);
}

}  // namespace

void write_torch_file(Disk& disk, const std::string& path, const TensorSource::Entries& tensors,
                      const std::vector<std::string>& keys, const WrittenTensor& read) {
  const std::string fresh = path + ".new", pickle = StateDictPickle(tensors, keys).text(), order = "little";
  const auto file = disk.open(fresh, /*truncate=*/true);
  std::exception_ptr failure;  // no exception may leave the writer's callback, nor its destructor
  {
    caffe2::serialize::PyTorchStreamWriter writer([&](const void* bytes, std::size_t count) {
      try {
        if (!failure) file->append({static_cast<const std::byte*>(bytes), count});
      } catch (...) {
        failure = std::current_exception();
      }
      return count;
    });
    writer.writeRecord("data.pkl", pickle.data(), pickle.size());
    writer.writeRecord("byteorder", order.data(), order.size());
    std::size_t number = 0;
    for (const auto& [name, entry] : tensors) {
      if (failure) break;
      const at::Tensor tensor = packed(read(name));
      writer.writeRecord("data/" + std::to_string(number++), tensor.const_data_ptr(), tensor.nbytes());
    }
    writer.writeEndOfFile();
  }
  if (failure) std::rethrow_exception(failure);
  file->sync();
  file->close();
  disk.rename(fresh, path);
}

namespace {

// Parts of an earlier set, and its whole file, which readers would prefer.
void remove_other_parts(Disk& disk, const std::string& path, const std::set<std::string>& written) {
  const std::filesystem::path whole(path);
  const std::string begin = whole.stem().string() + '-', end = whole.extension().string();
  for (const std::string& name : disk.list(whole.has_parent_path() ? whole.parent_path().string() : ".")) {
    const bool is_part = name.starts_with(begin) && name.ends_with(end) && name.find("-of-") != name.npos;
    if ((is_part || name == whole.filename().string()) && !written.contains(name))
      disk.remove_all((whole.parent_path() / name).string());
  }
}

}  // namespace

std::size_t write_safetensors_set(Disk& disk, const std::string& path, const TensorSource::Entries& tensors,
                                  uint64_t most_bytes, const WrittenTensor& read) {
  const auto parts = parts_of(tensors, most_bytes);
  nlohmann::ordered_json index = {{"metadata", {{"total_size", uint64_t{0}}}},
                                  {"weight_map", nlohmann::ordered_json::object()}};
  const std::string index_path = path + ".index.json";
  disk.remove_all(index_path);  // of an earlier set, whose parts are replaced
  uint64_t total = 0;
  std::set<std::string> written;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string part = name_of_part(path, i, parts.size());
    write_part(disk, part, parts[i], read);
    written.insert(std::filesystem::path(part).filename().string());
    for (const auto& [name, entry] : parts[i]) {
      index["weight_map"][name] = std::filesystem::path(part).filename().string();
      total += bytes_of(entry);
    }
  }
  index["metadata"]["total_size"] = total;
  if (parts.size() > 1) write_text(disk, index_path, index.dump(2) + '\n');
  remove_other_parts(disk, path, written);
  return parts.size();
}

}  // namespace tutti
