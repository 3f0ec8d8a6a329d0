#pragma once

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tutti {

enum class KeyType {
  kBoolean,
  kInteger,
  kNumber,
  kText,
  kTime,
  kPath,
  kIntegers,
  kNumbers,
  kTexts,
  kTimes,
  kNumberOrNumbers,
  kIntegerOrIntegers,
  kIntegerOrSteps,  // 2, or [[0, 1], [7, 2]]: from step 0 on 1, from step 7 on 2
  kBooleanIntegerOrTexts,
  kNamedTexts,  // { name = "a", other = "b" }
  kTextOrTexts,
  kTextsOrNamedTexts,  // ["a", "b"], or { name = "a", other = "b" }
  kTables,             // [[section.key]]: tables, each with a kind
  kTable,              // { ... }, a table without a kind
  kKindOrTable,        // the name of a kind, or a table with a kind: "mse", or { kind = "mse" }
  kAny
};

// The allowed range of a number, or of each number of a list.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above = false;  // excludes `low`
  bool below = false;  // excludes `high`

  bool holds(double value) const;
  std::string text() const;  // ">= 1", "> 0", "in [0, 1)"; "" without limits
};

struct Catalog;

// A key of a recipe: its type, meaning and default.
struct Key {
  std::string name;
  KeyType type = KeyType::kText;
  // "" = required; "none", unless a choice, = may be absent; else as in `--set`: 1ep, 0.9, [128, 64]
  std::string fallback;
  std::string doc;                        // one line
  std::vector<std::string> aliases = {};  // Composer's names; giving a key twice is an error
  std::vector<std::string> choices = {};  // all allowed values; empty = any
  // Other names of choices, as pairs of name and choice: {"FULL_SHARD", "full"}. A resolved recipe has the
  // choice.
  std::vector<std::pair<std::string, std::string>> synonyms = {};
  std::vector<std::string> words = {};  // texts allowed beside the type: "auto"
  std::vector<std::string> units = {};  // of a time; empty = any
  Range range = {};
  std::shared_ptr<const Catalog> tables = nullptr;  // of kTables, kTable, kKindOrTable; kPath: or a table
  std::string refusal = "";  // why tutti refuses this argument of Composer's; "" = allowed

  bool required() const { return fallback.empty(); }
  bool may_be_absent() const;
  std::string expects() const;  // "an integer >= 1", "one of auto, cpu, gpu", ...

  // The choice for its other name `text`, else `text`.
  const std::string &choice_named(const std::string &text) const;

  bool refused() const { return !refusal.empty(); }

  // Builders, so that catalogs read as sentences.
  Key also_named(std::vector<std::string> names) &&;
  Key one_of(std::vector<std::string> values) &&;
  Key also_written(std::vector<std::pair<std::string, std::string>> names) &&;
  Key or_word(std::string word) &&;
  Key in_units(std::vector<std::string> names) &&;
  Key at_least(double value) &&;
  Key more_than(double value) &&;
  Key at_most(double value) &&;
  Key less_than(double value) &&;
  Key each(std::shared_ptr<const Catalog> table) &&;
  Key not_carried_over(const std::string &reason) &&;
};

// The origin of a kind, for `tutti explain`, readers who know Composer's names, and docs/algorithms.md.
struct Origin {
  std::string composer = "";                // Composer's class: "MixUp"; a name of the kind in recipes too
  std::vector<std::string> functions = {};  // Composer's, for a custom loop: "mixup_batch"
  std::string header = "";                  // of class and function: "algorithms/augmentation/mixup.h"
  std::string call = "";                    // a call of the function in C++; "" = none
  std::string paper = "";                   // "Zhang et al. 2018, arXiv:1710.09412"; "" = none
  std::string models = "";                  // that it suits
  std::string effect = "";                  // what to expect of it
  std::string example = "";                 // lines of a recipe beside the kind, for keys without a default
};

// A kind, chosen by `kind = "name"`: a model, an optimizer, a dataset, ...
struct Entry {
  std::string name;
  std::string doc;
  std::vector<Key> keys = {};
  std::string refusal = "";  // why tutti refuses this kind of Composer's; "" = allowed
  Origin origin = {};
};

// A kind of Composer's that tutti refuses. `why` is also the doc.
Entry refused_entry(const std::string &name, const std::string &why);

// Keys of which at most one key may be given; with `required`, exactly one key.
struct Alternatives {
  std::vector<std::string> keys;
  bool required = false;
};

// The keys of a recipe's table, e.g. [optimizer], and the additional keys of each kind. Catalogs have no
// factories, so that reading a recipe needs no libtorch.
struct Catalog {
  std::string section;  // dotted path: "model", "data.train"; "" = the recipe's top level
  std::string noun;     // the name of a kind: "model", "models" in `tutti list`; "" without kinds
  std::string doc;
  std::vector<Key> keys = {};
  std::vector<Entry> entries = {};  // the kinds; empty: the section has no kind
  std::string default_kind = "";    // "" = kind is required; "none" = the section may be absent
  std::vector<Alternatives> alternatives = {};
  bool repeated = false;  // [[section]]: any number of tables, each with a kind

  // By its name or Composer's, also in another spelling, and with the noun behind: "AdamW", "SpeedMonitor",
  // "CosineAnnealingScheduler". Null if there is none.
  const Entry *find_entry(const std::string &kind) const;
  std::vector<std::string> kinds() const;          // that recipes may have
  std::vector<std::string> refused_kinds() const;  // see Entry::refusal
  bool may_be_absent() const { return default_kind == "none"; }
  // The section's keys, then the kind's. `entry`: null = no kind.
  std::vector<Key> keys_of(const Entry *entry) const;
};

// "a, b, c"
std::string joined(const std::vector<std::string> &names);

inline constexpr const char *kPluginKind = "plugin";

// The kind of components of the library of [plugins]; see job/plugin.h.
inline Entry plugin_entry(const std::string &noun) {
  return {kPluginKind,
          "What the library of [plugins] brings.",
          {{"name", KeyType::kText, "", "the library's name for the " + noun},
           {"options", KeyType::kAny, "none", "a table that is the library's own affair"}}};
}

}  // namespace tutti
