#include "io/formats/mds_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>

#include "io/json/json_text.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

using Form = MdsEncoding::Form;

constexpr std::size_t kPlaceBytes = 4;
constexpr int64_t kMostEdge = int64_t{1} << 31;
constexpr double kExactIntegers = 9007199254740992.0;  // doubles below have all integers

[[noreturn]] void refuse_value(const std::string& what) { throw UserError(what); }

// The bytes from `first` on.
MdsBytes part(MdsBytes bytes, uint64_t first, uint64_t count) {
  if (first > bytes.size() || count > bytes.size() - first)
    refuse_value("is truncated: bytes " + std::to_string(first) + " to " + std::to_string(first + count) +
                 " of a value of " + std::to_string(bytes.size()));
  return bytes.subspan(first, count);
}

template <class Integer>
Integer at(MdsBytes bytes, uint64_t place) {
  Integer value;
  std::memcpy(&value, part(bytes, place, sizeof value).data(), sizeof value);
  return value;
}

std::string text_of(MdsBytes value) { return {reinterpret_cast<const char*>(value.data()), value.size()}; }

const std::map<std::string, MdsNumber>& numbers() {
  static const std::map<std::string, MdsNumber> kNumbers = {
      {"uint8", MdsNumber::kUint8}, {"int8", MdsNumber::kInt8},       {"uint16", MdsNumber::kUint16},
      {"int16", MdsNumber::kInt16}, {"float16", MdsNumber::kFloat16}, {"uint32", MdsNumber::kUint32},
      {"int32", MdsNumber::kInt32}, {"float32", MdsNumber::kFloat32}, {"uint64", MdsNumber::kUint64},
      {"int64", MdsNumber::kInt64}, {"float64", MdsNumber::kFloat64}, {"int", MdsNumber::kInt64}};
  return kNumbers;
}

// By the number in an array's first byte.
MdsNumber number_of_code(int code) {
  static const std::map<int, MdsNumber> kCodes = {
      {8, MdsNumber::kUint8},  {9, MdsNumber::kInt8},     {16, MdsNumber::kUint16},
      {17, MdsNumber::kInt16}, {18, MdsNumber::kFloat16}, {32, MdsNumber::kUint32},
      {33, MdsNumber::kInt32}, {34, MdsNumber::kFloat32}, {64, MdsNumber::kUint64},
      {65, MdsNumber::kInt64}, {66, MdsNumber::kFloat64}};
  const auto type = kCodes.find(code);
  if (type == kCodes.end())
    refuse_value("is damaged: an array's dtype has the number " + std::to_string(code));
  return type->second;
}

std::vector<int64_t> shape_of(const std::string& text, const std::string& encoding) {
  std::vector<int64_t> shape;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    int64_t edge = 0;
    const auto [next, error] = std::from_chars(at, end, edge);
    if (error != std::errc() || edge < 1 || edge > kMostEdge)
      refuse_value("there is no encoding '" + shown(encoding) + "'");
    shape.push_back(edge);
    if (next == end) return shape;
    if (*next != ',') refuse_value("there is no encoding '" + shown(encoding) + "'");
    at = next + 1;
  }
}

// Elements of a shape; fails for more than a value can hold.
uint64_t elements(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  for (const int64_t edge : shape) {
    if (edge < 0 || edge > kMostEdge) refuse_value("is damaged: an array's edge of " + std::to_string(edge));
    count *= static_cast<uint64_t>(edge);
    if (count > static_cast<uint64_t>(kMostEdge) * 2)
      refuse_value("is damaged: an array's shape is too large");
  }
  return count;
}

MdsEncoding array_encoding(const std::string& text) {
  MdsEncoding encoding{.form = Form::kArray};
  if (text == "ndarray") return encoding;
  const std::string rest = text.substr(text.find(':') + 1);
  const std::size_t colon = rest.find(':');
  const std::string type = rest.substr(0, colon);
  const auto number = numbers().find(type);
  if (!type.empty() && (number == numbers().end() || type == "int"))
    refuse_value("there is no encoding '" + shown(text) + "'");
  if (!type.empty()) encoding.type = number->second;
  if (colon != std::string::npos) encoding.shape = shape_of(rest.substr(colon + 1), text);
  return encoding;
}

// Puts a JSON value's numbers into the list, and its shape in front of `depth`.
void add_numbers(MdsJsonNumbers& out, const nlohmann::json& json, std::size_t depth) {
  if (json.is_number() || json.is_boolean()) {
    if (depth != out.shape.size()) refuse_value("its lists of numbers differ in depth");
    const double value = json.is_boolean() ? json.get<bool>() : json.get<double>();
    out.are_integers = out.are_integers && !json.is_number_float();
    if (out.are_integers && std::abs(value) > kExactIntegers) refuse_value("has an integer beyond 2^53");
    out.values.push_back(value);
    return;
  }
  if (!json.is_array()) refuse_value("is neither a number nor lists of numbers");
  const auto length = std::ssize(json);
  if (depth == out.shape.size()) {
    if (!out.values.empty()) refuse_value("its lists of numbers differ in depth");
    out.shape.push_back(length);
  }
  if (out.shape[depth] != length) refuse_value("its lists of numbers differ in length");
  for (const auto& item : json) add_numbers(out, item, depth + 1);
}

}  // namespace

void require_mds_shard(MdsBytes shard, int64_t samples) {
  const uint64_t head = kPlaceBytes * (static_cast<uint64_t>(samples) + 2);
  if (shard.size() < head) refuse_value("is truncated within its head");
  const auto samples_in_head = at<uint32_t>(shard, 0);
  if (samples_in_head != samples)
    refuse_value("has " + std::to_string(samples_in_head) + " samples, and by index.json " +
                 std::to_string(samples));
  const auto first = at<uint32_t>(shard, kPlaceBytes), end = at<uint32_t>(shard, head - kPlaceBytes);
  if (first < head || end != shard.size()) refuse_value("is damaged: its samples do not fill it");
}

MdsBytes mds_value(MdsBytes shard, const std::vector<MdsColumn>& columns, int64_t sample,
                   std::size_t column) {
  const uint64_t place = kPlaceBytes * (static_cast<uint64_t>(sample) + 1);
  const uint64_t first = at<uint32_t>(shard, place), end = at<uint32_t>(shard, place + kPlaceBytes);
  if (end < first || end > shard.size())
    refuse_value("byte " + std::to_string(place) + ": is no sample's place");
  const MdsBytes bytes = shard.subspan(first, end - first);
  uint64_t head = 0, before = 0, size = 0;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const uint64_t bytes_of_column = columns[c].size ? *columns[c].size : at<uint32_t>(bytes, head);
    if (!columns[c].size) head += kPlaceBytes;
    if (c < column) before += bytes_of_column;
    if (c == column) size = bytes_of_column;
  }
  return part(bytes, head + before, size);
}

int64_t bytes_of(MdsNumber type) {
  switch (type) {
    case MdsNumber::kUint8:
    case MdsNumber::kInt8:
      return 1;
    case MdsNumber::kUint16:
    case MdsNumber::kInt16:
    case MdsNumber::kFloat16:
      return 2;
    case MdsNumber::kUint32:
    case MdsNumber::kInt32:
    case MdsNumber::kFloat32:
      return 4;
    default:
      return 8;
  }
}

bool is_float(MdsNumber type) {
  return type == MdsNumber::kFloat16 || type == MdsNumber::kFloat32 || type == MdsNumber::kFloat64;
}

MdsEncoding MdsEncoding::parse(const std::string& text) {
  static const std::map<std::string, MdsEncoding> kPlain = {
      {"bytes", {Form::kBytes}},
      {"str", {Form::kText}},
      {"str_int", {Form::kTextInteger}},
      {"str_float", {Form::kTextFloat}},
      {"str_decimal", {Form::kTextFloat}},
      {"pil", {Form::kPixels}},
      {"jpeg", {Form::kImageFile}},
      {"png", {Form::kImageFile}},
      {"jpeg_array", {Form::kImageFiles}},
      {"jpegarray", {Form::kImageFiles}},
      {"list[pil]", {.form = Form::kPixelsList, .is_marked = true}},
      {"list[jpeg]", {.form = Form::kImageFiles, .is_marked = true}},
      {"list[png]", {.form = Form::kImageFiles, .is_marked = true}},
      {"json", {Form::kJson}}};
  if (text == "pkl")
    refuse_value(
        "is pickled (pkl): its values are programs, which are not run; write it as another encoding");
  if (text == "ndarray" || text.starts_with("ndarray:")) return array_encoding(text);
  if (const auto encoding = kPlain.find(text); encoding != kPlain.end()) return encoding->second;
  const auto number = numbers().find(text);
  if (number == numbers().end()) refuse_value("there is no encoding '" + shown(text) + "'");
  return {.form = Form::kNumber, .type = number->second};
}

MdsArray mds_array(const MdsEncoding& encoding, MdsBytes value) {
  uint64_t place = 0;
  MdsArray array{.shape = encoding.shape};
  array.type = encoding.type ? *encoding.type : number_of_code(at<uint8_t>(value, place++));
  if (encoding.shape.empty()) {
    const auto byte = at<uint8_t>(value, place++);
    const int bytes_of_edge = 1 << (byte & 3);
    for (int dim = 0; dim < byte >> 2; ++dim, place += static_cast<uint64_t>(bytes_of_edge)) {
      uint64_t edge = 0;
      std::memcpy(&edge, part(value, place, static_cast<uint64_t>(bytes_of_edge)).data(),
                  static_cast<std::size_t>(bytes_of_edge));
      array.shape.push_back(static_cast<int64_t>(std::min<uint64_t>(edge, INT64_MAX)));
    }
  }
  const uint64_t size = elements(array.shape) * static_cast<uint64_t>(bytes_of(array.type));
  array.bytes = part(value, place, size);
  if (place + size != value.size())
    refuse_value("is damaged: an array of " + std::to_string(size) + " bytes in " +
                 std::to_string(value.size()));
  return array;
}

MdsPixels mds_pixels(MdsBytes value) {
  constexpr uint64_t kHead = 12, kLongestMode = 16;
  const uint64_t length = at<uint32_t>(value, 8);
  if (length > kLongestMode)
    refuse_value("is damaged: an image's mode of " + std::to_string(length) + " bytes");
  return {at<uint32_t>(value, 0), at<uint32_t>(value, 4), text_of(part(value, kHead, length)),
          value.subspan(kHead + length)};
}

std::vector<MdsBytes> mds_list(const MdsEncoding& encoding, MdsBytes value) {
  uint64_t place = encoding.is_marked ? kPlaceBytes : 0;
  const uint64_t count = at<uint32_t>(value, place);
  place += kPlaceBytes;
  const MdsBytes sizes = part(value, place, count * kPlaceBytes);
  place += sizes.size();
  std::vector<MdsBytes> items;
  for (uint64_t i = 0; i < count; ++i) {
    items.push_back(part(value, place, at<uint32_t>(sizes, i * kPlaceBytes)));
    place += items.back().size();
  }
  return items;
}

int64_t mds_text_integer(MdsBytes value) {
  const std::string text = text_of(value);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    refuse_value("is no integer of 64 bits: '" + shown(text) + "'");
  return number;
}

double mds_text_float(MdsBytes value) {
  const std::string text = text_of(value);
  const char* begin = text.data() + text.starts_with('+');
  double number = 0;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    refuse_value("is no number: '" + shown(text) + "'");
  return number;
}

MdsJsonNumbers mds_json_numbers(MdsBytes value) {
  const auto json = parse_json(text_of(value), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) refuse_value("is no JSON");
  MdsJsonNumbers numbers;
  add_numbers(numbers, json, 0);
  return numbers;
}

}  // namespace tutti
