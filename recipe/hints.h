#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "recipe/catalog.h"
#include "recipe/foreign_name.h"
#include "recipe/setting.h"

namespace tutti {

// Guesses the meaning of a name that is unknown at its place.
struct NameHint {
  std::string text;        // "; did you mean lr?", "; it belongs in [train]"
  std::string meant = "";  // the path of the key or section that is meant: "train.max_duration"; "" = none
};

// Knows every section, kind and key of a recipe, and names of other libraries.
class NameHints {
 public:
  // All must outlive the hints. `catalogs` may be empty.
  NameHints(std::span<const Catalog> catalogs, std::span<const ForeignName> foreign)
      : catalogs_(catalogs), foreign_(foreign) {}

  // For a key, or a section at the top level, that the table at `path` does not have; `known` are all names
  // that may stand there. `entry`: the table's kind, or null.
  NameHint for_key(const Catalog& catalog, const Entry* entry, const std::string& path,
                   const std::string& name, const std::vector<std::string>& known) const;

  // The other sections that have the key.
  NameHint elsewhere(const std::string& section, const std::string& name) const;

  struct KindHint {
    std::string text;
    const Entry* entry = nullptr;  // the kind, if certain
  };
  // For a kind that the catalog does not have.
  KindHint for_kind(const Catalog& catalog, const std::string& name) const;

 private:
  const ForeignName* foreign(const std::string& name) const;
  NameHint nearly_elsewhere(const std::string& name) const;
  std::string meant_by(const std::string& target) const;

  std::span<const Catalog> catalogs_;
  std::span<const ForeignName> foreign_;
};

// The value, as TOML, that is probably meant by a refused value: 1e-3 for "1e-3", "5ep" for "5 epochs", [128]
// for 128, "amp_bf16" for "bf16"; "" without a guess that `accepts` accepts.
std::string value_hint(const Key& key, const Setting& given,
                       const std::function<bool(const Setting&)>& accepts);

// A guess at line `line` (from 1) of a text that is not TOML: "; did you mean true?" or "; texts stand in
// quotes: \"sgd\"". "" if there is no guess.
std::string toml_hint(const std::string& text, int line);

}  // namespace tutti
