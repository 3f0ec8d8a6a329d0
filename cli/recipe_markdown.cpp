#include "cli/recipe_markdown.h"

#include <set>

#include "recipe/key_check.h"

namespace tutti {
namespace {

constexpr const char* kIntroduction =
    R"(# The recipe

*For those who write recipes.*

Every section, kind and key that a recipe may name, with its default. `tutti explain --markdown` writes this
page, and `tutti check RECIPE --all` shows a recipe with all defaults filled in.

- Times are texts: `10ep` epochs, `500ba` batches (steps), `20sp` samples, `1e6tok` tokens, `0.5dur` half of
  the whole training, `90sec` or `1h20m` seconds. A bare integer counts epochs.
- Relative paths are relative to the recipe's folder.
- `--set a.b=v` sets a key from the command line, as if it were written in the recipe; `v` is TOML, else a
  bare text. It replaces keys of the recipe that exclude it: `--set data.train.device_batch_size=48` drops the
  recipe's `batch_size`.
- A key may be given under one of its other (Composer) names; giving it under two names is an error.
- `tutti explain NAME` knows Composer's names too: `SpeedMonitor`, `train_dataloader`, `BATCH_START`.
)";

std::string code(const std::string& text) { return '`' + text + '`'; }

std::string default_cell(const Key& key) {
  if (key.required()) return "required";
  return key.may_be_absent() ? "absent" : code(fallback_value(key, key.name, {}).toml());
}

// Times in any unit are explained in the introduction.
std::string expects_cell(const Key& key) {
  if (!key.units.empty() || !key.words.empty()) return key.expects();
  if (key.type == KeyType::kTime) return "a time";
  return key.type == KeyType::kTimes ? "a list of times" : key.expects();
}

std::string key_line(const Key& key) {
  if (key.refused()) return "| " + code(key.name) + " | | | " + key.refusal + " |\n";
  std::string aliases;
  for (const auto& alias : key.aliases) aliases += (aliases.empty() ? "; also named " : ", ") + code(alias);
  return "| " + code(key.name) + " | " + default_cell(key) + " | " + expects_cell(key) + " | " + key.doc +
         aliases + " |\n";
}

std::string key_table(const std::vector<Key>& keys) {
  if (keys.empty()) return "";
  std::string out = "\n| key | default | expects | meaning |\n|---|---|---|---|\n";
  for (const auto& key : keys) out += key_line(key);
  return out;
}

std::string heading(const Catalog& catalog) {
  if (catalog.section.empty()) return "Top level";
  return code(catalog.repeated ? "[[" + catalog.section + "]]" : '[' + catalog.section + ']');
}

std::string absence(const Catalog& catalog) {
  if (catalog.entries.empty()) return "";
  if (catalog.may_be_absent()) return " The section may be left out.";
  if (catalog.default_kind.empty()) return " `kind` is required.";
  return " `kind` is " + code(catalog.default_kind) + " by default.";
}

// The first catalog with the same kinds, or the catalog itself.
const Catalog& first_with_noun(std::span<const Catalog> catalogs, const Catalog& catalog) {
  for (const auto& other : catalogs) {
    if (!catalog.noun.empty() && other.noun == catalog.noun) return other;
  }
  return catalog;
}

// The kinds that `other` has not; of the same catalog, all.
std::string kinds(const Catalog& catalog, const Catalog& other) {
  std::string out;
  for (const auto& entry : catalog.entries) {
    if (&catalog != &other && other.find_entry(entry.name)) continue;
    out += "\n### " + code("kind = \"" + entry.name + '"') + "\n" + entry.doc + '\n' + key_table(entry.keys);
  }
  return out;
}

constexpr const char* kAlgorithmsIntroduction =
    R"(# The algorithms

*For those who choose algorithms.*

Composer's speed-up algorithms, with its names, hyperparameters and defaults: as an entry of a recipe, and
most of them as a function for a training loop of your own. `tutti explain algorithms --markdown` writes this
page.
`docs/recipe.md` has the keys, and `docs/compat.md` says where tutti departs from Composer.
)";

std::string fenced(const std::string& language, const std::string& text) {
  return "\n```" + language + '\n' + text + "\n```\n";
}

std::string algorithm_section(const Entry& entry) {
  const Origin& origin = entry.origin;
  std::string out = "\n## " + (origin.composer.empty() ? entry.name : origin.composer) + '\n' + entry.doc +
                    "\n\n- Suits: " + origin.models + "\n- Effect: " + origin.effect + '\n';
  if (!origin.paper.empty()) out += "- From: " + origin.paper + '\n';
  out += fenced("toml", "[[algorithms]]\nkind = \"" + entry.name + '"' +
                            (origin.example.empty() ? "" : '\n' + origin.example));
  if (!origin.call.empty()) out += fenced("cpp", "#include <tutti/" + origin.header + ">\n\n" + origin.call);
  return out;
}

// The tables [[section.key]], or the table [section.key], of a section.
std::string tables_of(const Catalog& section, const Key& key) {
  const Catalog& tables = *key.tables;
  const std::string path = '[' + section.section + '.' + key.name + ']';
  return "\n## " + code(key.type == KeyType::kTables ? '[' + path + ']' : path) + '\n' + tables.doc +
         absence(tables) + '\n' + key_table(tables.keys) + kinds(tables, tables);
}

}  // namespace

std::string recipe_markdown(std::span<const Catalog> catalogs) {
  std::string out = kIntroduction;
  std::set<std::string> nouns;  // whose kinds are in the page
  for (const auto& catalog : catalogs) nouns.insert(catalog.noun);
  for (const auto& catalog : catalogs) {
    out +=
        "\n## " + heading(catalog) + '\n' + catalog.doc + absence(catalog) + '\n' + key_table(catalog.keys);
    const Catalog& first = first_with_noun(catalogs, catalog);
    if (&first != &catalog) out += "\nThe kinds and their keys are those of " + heading(first) + ".\n";
    out += kinds(catalog, first);
    const auto add_tables_of = [&](const std::vector<Key>& keys) {
      for (const auto& key : keys)
        if (key.tables && nouns.insert(key.tables->noun).second) out += tables_of(catalog, key);
    };
    add_tables_of(catalog.keys);
    for (const auto& entry : catalog.entries) add_tables_of(entry.keys);
  }
  return out;
}

std::string algorithms_markdown(const Catalog& algorithms) {
  std::string out = kAlgorithmsIntroduction;
  for (const auto& entry : algorithms.entries)
    if (!entry.origin.models.empty()) out += algorithm_section(entry);
  return out;
}

}  // namespace tutti
