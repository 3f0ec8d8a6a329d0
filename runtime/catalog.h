#pragma once

#include <string>
#include <vector>

namespace tutti {

enum class KeyType { kBoolean, kInteger, kNumber, kText, kTime, kPath, kIntegers, kNumbers, kTexts, kAny };

// How a key that a recipe may name is written, what it means, and what stands in its place when it is absent.
struct Key {
  std::string name;
  KeyType type = KeyType::kText;
  std::string fallback;              // a TOML value; "" = required; "none" = may be absent
  std::string doc;                   // one line
  std::vector<std::string> aliases;  // Composer's own argument names; both given is an error
  std::vector<std::string> choices;  // of a text; empty = any
};

// A thing that `kind = "name"` chooses: a model, an optimizer, a dataset, ...
struct Entry {
  std::string name;
  std::string doc;
  std::vector<Key> keys;
};

// One table of the recipe, e.g. [optimizer]: the keys that it always has, and those its kind adds. Catalogs hold no
// factories, so that reading a recipe needs no libtorch.
struct Catalog {
  std::string section;  // dotted path: "model", "data.train"
  std::string noun;     // "model", "models" in `tutti list`
  std::string doc;
  std::vector<Key> keys;
  std::vector<Entry> entries;  // empty: the section has no kind
  std::string default_kind;    // "" = kind is required; "none" = the section may be absent
};

}  // namespace tutti
