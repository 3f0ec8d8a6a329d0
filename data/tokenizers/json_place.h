#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/json/json_text.h"
#include "io/mapped_file.h"

namespace tutti {

// A value of a JSON file and its path, as "normalizer.normalizers[2].type", for errors: all functions throw
// UserError with file, place and the expected value. Refers to the value, which must outlive this object.
class JsonPlace {
 public:
  using Json = nlohmann::json;
  JsonPlace(const Json& value, std::string file, std::string place = "");

  const Json& json() const { return *value_; }
  JsonPlace at(const std::string& key) const;                   // a member, which must be there
  std::optional<JsonPlace> find(const std::string& key) const;  // nullopt where it is absent or null
  std::vector<JsonPlace> elements() const;                      // of an array
  const Json& object() const;                                   // this value, which must be an object

  std::string text() const;
  bool boolean() const;
  uint32_t number(uint32_t most) const;  // 0 to `most`
  double real() const;
  uint32_t character() const;  // the code point of a text of one character

  // Of a member, or the fallback for an absent or null member.
  std::string text(const std::string& key, const std::string& fallback) const;
  bool boolean(const std::string& key, bool fallback) const;

  // The text of member "type". For a text outside `known`, the error names the nearest known text.
  std::string type(const std::vector<std::string>& known) const;

  [[noreturn]] void fail(const std::string& problem) const;

 private:
  const Json* value_;
  std::string file_, place_;
};

// A JSON file of a tokenizer. Throws UserError for a file that cannot be read, is larger than 128 MiB or no
// JSON.
class JsonFile {
 public:
  explicit JsonFile(const std::string& path);

  std::span<const std::byte> bytes() const { return file_.bytes(); }
  JsonPlace root() const { return JsonPlace(json_, file_.path()); }

 private:
  MappedFile file_;
  JsonPlace::Json json_;
};

// The entry of a table of kinds that "type" names; a kind's name is its first member.
template <class Kinds>
const auto& kind_at(const JsonPlace& place, const Kinds& kinds) {
  std::vector<std::string> names;
  for (const auto& kind : kinds) names.push_back(kind.first);
  const std::string type = place.type(names);
  std::size_t i = 0;
  while (names[i] != type) ++i;
  return kinds[i];
}

}  // namespace tutti
