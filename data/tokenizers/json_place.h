#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/formats/json_text.h"
#include "io/mapped_file.h"

namespace tutti {

// A value of a JSON file and the way to it, as "normalizer.normalizers[2].type", for errors: all functions
// throw UserError with file, place and what was expected there. Refers to the value, which must outlive it.
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
  uint32_t character() const;  // the code point of a text of one

  // Of a member, or the fallback where it is absent or null.
  std::string text(const std::string& key, const std::string& fallback) const;
  bool boolean(const std::string& key, bool fallback) const;

  // The text of member "type". Unless `known` has it, the error names the nearest one.
  std::string type(const std::vector<std::string>& known) const;

  [[noreturn]] void fail(const std::string& problem) const;

 private:
  const Json* value_;
  std::string file_, place_;
};

// A JSON file of a tokenizer. Throws UserError if it cannot be read, is larger than 128 MiB or no JSON.
class JsonFile {
 public:
  explicit JsonFile(const std::string& path);

  std::span<const std::byte> bytes() const { return file_.bytes(); }
  JsonPlace root() const { return JsonPlace(json_, file_.path()); }

 private:
  MappedFile file_;
  JsonPlace::Json json_;
};

// The entry of a table of kinds, each with its name first, that "type" names.
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
