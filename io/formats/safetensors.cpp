#include "io/formats/safetensors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "io/formats/dtypes.h"
#include "io/json/json_text.h"
#include "io/mapped_file.h"
#include "runtime/error.h"

namespace tutti {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors holds little-endian numbers");

using Json = nlohmann::json;  // ordered_json looks through all names for each
using OrderedJson = nlohmann::ordered_json;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's limit
constexpr const char* kMetadataName = "__metadata__";

[[noreturn]] void fail(const std::string& path, uint64_t offset, const std::string& message) {
  throw UserError({path}, "byte " + std::to_string(offset) + ": " + message);
}

uint64_t header_length(const MappedFile& file) {
  const auto bytes = file.bytes();
  if (bytes.size() < kLengthBytes)
    fail(file.path(), bytes.size(), "the file ends within the header's length");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kMaxHeaderBytes || length > bytes.size() - kLengthBytes) {
    fail(file.path(), 0,
         "the header's length is " + std::to_string(length) + ", the file has " +
             std::to_string(bytes.size()) + " bytes: not a safetensors file, or truncated");
  }
  return length;
}

// Finds the first name that the outermost object has twice: JSON readers keep only the last member of a name.
// By a pass of its own, since the library's callbacks look through all members at the end of each.
class RepeatedName final : public Json::json_sax_t {
 public:
  std::optional<std::string> in(std::string_view text) && {
    Json::sax_parse(text, this);
    return std::move(found_);
  }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ > 0; }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override { return ++depth_ > 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool key(string_t& name) override {
    if (depth_ == 1 && !names_.insert(name).second) found_ = name;
    return !found_;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  int depth_ = 0;
  std::unordered_set<std::string> names_;
  std::optional<std::string> found_;
};

Json parse_header(const MappedFile& file, uint64_t length) {
  const auto* text = reinterpret_cast<const char*>(file.bytes().data()) + kLengthBytes;
  try {
    Json header = parse_json<Json>({text, length});
    if (const auto name = RepeatedName().in({text, length}))
      fail(file.path(), kLengthBytes, "tensor '" + *name + "' is named twice");
    if (!header.is_object()) fail(file.path(), kLengthBytes, "the header is not a JSON object");
    return header;
  } catch (const Json::parse_error& error) {
    fail(file.path(), kLengthBytes + error.byte,
         error.id == kJsonTooDeep ? "the header is nested too deeply" : "the header is not JSON");
  }
}

class HeaderReader {
 public:
  explicit HeaderReader(const std::string& path) : file_(path), data_(kLengthBytes + header_length(file_)) {}

  SafetensorsHeader read() {
    const Json json = parse_header(file_, data_ - kLengthBytes);
    SafetensorsHeader header;
    for (const auto& [name, value] : json.items()) {
      if (name == kMetadataName) {
        header.metadata = metadata(value);
      } else {
        header.tensors.emplace(name, entry(name, value));
      }
    }
    require_all_bytes(header);
    return header;
  }

 private:
  [[noreturn]] void fail_at(uint64_t offset, const std::string& name, const std::string& message) const {
    fail(file_.path(), offset, "tensor '" + name + "': " + message);
  }

  std::map<std::string, std::string> metadata(const Json& value) const try {
    return value.get<std::map<std::string, std::string>>();
  } catch (const Json::exception&) {
    fail(file_.path(), kLengthBytes, "__metadata__ is not a map of texts");
  }

  SafetensorsHeader::Entry entry(const std::string& name, const Json& value) const try {
    const auto dtype = dtype_of_safetensors(value.at("dtype").get<std::string>());
    if (!dtype) fail_at(kLengthBytes, name, "unknown dtype " + value.at("dtype").dump());
    auto shape = value.at("shape").get<Shape>();
    const auto ends = value.at("data_offsets").get<std::array<uint64_t, 2>>();
    check_extent(name, shape, *dtype, ends[0], ends[1]);
    return {std::move(shape), *dtype, data_ + ends[0]};
  } catch (const Json::exception& error) {
    fail_at(kLengthBytes, name, "bad header entry: " + json_problem(error));
  }

  void check_extent(const std::string& name, const Shape& shape, at::ScalarType dtype, uint64_t begin,
                    uint64_t end) const {
    const uint64_t there = file_.bytes().size() - data_;
    if (begin > end || end > there) {
      fail_at(data_ + std::min(begin, there), name,
              "its data [" + std::to_string(begin) + ", " + std::to_string(end) +
                  ") lies outside the file's " + std::to_string(there) + " bytes of data");
    }
    if (contiguous_bytes(shape, dtype) != end - begin) {
      fail_at(data_ + begin, name, "its shape does not fit its " + std::to_string(end - begin) + " bytes");
    }
  }

  // The format's tensors lie one behind the other, from the first byte of the data to the last.
  void require_all_bytes(const SafetensorsHeader& header) const {
    std::vector<std::tuple<uint64_t, uint64_t, std::string>> places;
    for (const auto& [name, tensor] : header.tensors)
      places.emplace_back(tensor.at, tensor.at + contiguous_bytes(tensor.shape, tensor.dtype).value_or(0),
                          name);
    std::ranges::sort(places);
    uint64_t end = data_;
    for (const auto& [from, to, name] : places) {
      if (from != end)
        fail_at(from, name, from < end ? "it overlaps another tensor" : "bytes before it are no tensor's");
      end = to;
    }
    if (end != file_.bytes().size()) fail(file_.path(), end, "bytes behind the last tensor are no tensor's");
  }

  MappedFile file_;
  uint64_t data_;  // offset of the first tensor's bytes
};

std::string header_of(const Safetensors& content) {
  OrderedJson header = OrderedJson::object();
  if (!content.metadata.empty()) header[kMetadataName] = content.metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : content.tensors) {
    header[name] = {{"dtype", safetensors_name(tensor.scalar_type())},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, offset + tensor.nbytes()}}};
    offset += tensor.nbytes();
  }
  std::string text = header.dump();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');  // data begins aligned
  return text;
}

}  // namespace

SafetensorsHeader read_safetensors_header(const std::string& path) { return HeaderReader(path).read(); }

SafetensorsFile::SafetensorsFile(Disk& disk, const std::string& path, const Safetensors& layout)
    : file_(disk.open(path, true)) {
  const std::string header = header_of(layout);
  const uint64_t length = header.size();
  file_->append(std::as_bytes(std::span(&length, 1)));
  file_->append(std::as_bytes(std::span(header)));
  uint64_t at = kLengthBytes + length;
  for (const auto& [name, tensor] : layout.tensors) at_[name] = std::exchange(at, at + tensor.nbytes());
}

void SafetensorsFile::put(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().cpu().contiguous();
  file_->write_at(at_.at(name), {static_cast<const std::byte*>(plain.const_data_ptr()), plain.nbytes()});
}

void SafetensorsFile::finish() {
  file_->sync();
  file_->close();
}

void write_safetensors(Disk& disk, const std::string& path, const Safetensors& content) {
  SafetensorsFile file(disk, path, content);
  for (const auto& [name, tensor] : content.tensors) file.put(name, tensor);
  file.finish();
}

}  // namespace tutti
