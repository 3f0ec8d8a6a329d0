#include "data/tokenizers/json_place.h"

#include "data/tokenizers/unicode/code_points.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"
#include "runtime/printable.h"

namespace tutti {

namespace {

// A value in memory takes up to 20 bytes for each in the file; the largest tokenizers known have 40 MB.
constexpr std::size_t kMostBytes = std::size_t{128} << 20;

}  // namespace

JsonFile::JsonFile(const std::string& path) : file_(path) {
  if (file_.bytes().size() > kMostBytes)
    throw UserError({path}, "more than the 128 MiB that are read of a tokenizer's files");
  const auto* begin = reinterpret_cast<const char*>(file_.bytes().data());
  try {
    json_ = parse_json<JsonPlace::Json>({begin, file_.bytes().size()});
  } catch (const JsonPlace::Json::parse_error& error) {
    throw UserError({path}, json_problem(error));
  }
}

JsonPlace::JsonPlace(const Json& value, std::string file, std::string place)
    : value_(&value), file_(std::move(file)), place_(std::move(place)) {}

void JsonPlace::fail(const std::string& problem) const {
  throw UserError({file_}, (place_.empty() ? "" : on_one_line(place_) + ": ") + problem);
}

const JsonPlace::Json& JsonPlace::object() const {
  if (!value_->is_object()) fail("expected an object");
  return *value_;
}

std::optional<JsonPlace> JsonPlace::find(const std::string& key) const {
  const auto member = object().find(key);
  if (member == value_->end() || member->is_null()) return std::nullopt;
  return JsonPlace(*member, file_, place_.empty() ? key : place_ + "." + key);
}

JsonPlace JsonPlace::at(const std::string& key) const {
  const auto member = find(key);
  if (!member) fail("\"" + key + "\" is missing");
  return *member;
}

std::vector<JsonPlace> JsonPlace::elements() const {
  if (!value_->is_array()) fail("expected an array");
  std::vector<JsonPlace> all;
  all.reserve(value_->size());
  for (const Json& element : *value_)
    all.emplace_back(element, file_, place_ + "[" + std::to_string(all.size()) + "]");
  return all;
}

std::string JsonPlace::text() const {
  if (!value_->is_string()) fail("expected a text");
  return value_->get<std::string>();
}

bool JsonPlace::boolean() const {
  if (!value_->is_boolean()) fail("expected true or false");
  return value_->get<bool>();
}

uint32_t JsonPlace::number(uint32_t most) const {
  if (!value_->is_number_unsigned() || value_->get<uint64_t>() > most)
    fail("expected a whole number from 0 to " + std::to_string(most));
  return value_->get<uint32_t>();
}

double JsonPlace::real() const {
  if (!value_->is_number()) fail("expected a number");
  return value_->get<double>();
}

uint32_t JsonPlace::character() const {
  const std::string chars = text();
  if (chars.empty() || code_point_at(chars.data()).bytes != chars.size()) fail("expected one character");
  return code_point_at(chars.data()).value;
}

std::string JsonPlace::text(const std::string& key, const std::string& fallback) const {
  const auto member = find(key);
  return member ? member->text() : fallback;
}

bool JsonPlace::boolean(const std::string& key, bool fallback) const {
  const auto member = find(key);
  return member ? member->boolean() : fallback;
}

std::string JsonPlace::type(const std::vector<std::string>& known) const {
  const JsonPlace place = at("type");
  const std::string name = place.text();
  std::string list;
  for (const std::string& type : known) {
    if (type == name) return name;
    list += (list.empty() ? "" : ", ") + type;
  }
  const std::string nearest = nearest_name(name, known);
  place.fail("'" + shown(name) + "' is not known; " +
             (nearest.empty() ? "known are " + list : "did you mean '" + nearest + "'?"));
}

}  // namespace tutti
