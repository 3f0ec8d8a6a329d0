#include "cli/catalog_text.h"

#include <algorithm>
#include <functional>

#include "cli/topics.h"
#include "recipe/key_check.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"

namespace tutti {
namespace {

using Names = std::vector<std::string>;

constexpr int kTypos = 2;  // in a name that is taken for another

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(text.size() < width ? width - text.size() : 0, ' ');
}

std::string plural(const Catalog& catalog) {
  return catalog.noun + (catalog.noun.ends_with('s') ? "es" : "s");
}

// Catalogs with kinds, one per noun.
std::vector<const Catalog*> with_kinds(std::span<const Catalog> catalogs) {
  std::vector<const Catalog*> out;
  for (const auto& catalog : catalogs) {
    const auto same = [&](const Catalog* other) { return other->noun == catalog.noun; };
    if (!catalog.noun.empty() && std::ranges::none_of(out, same)) out.push_back(&catalog);
  }
  return out;
}

std::string columns(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.first.size() + 2);
  std::string out;
  for (const auto& [left, right] : rows) out += padded(left, width) + right + '\n';
  return out;
}

std::string default_text(const Key& key) {
  if (key.required()) return "(required)";
  return key.may_be_absent() ? "(none)" : fallback_value(key, key.name, {}).toml();
}

// A key and its meaning: "lr = 0.1", "# learning rate: a number >= 0".
std::pair<std::string, std::string> key_row(const Key& key) {
  if (key.refused()) return {key.name, "# " + key.refusal};
  std::string meaning = "# " + key.doc + ": " + key.expects();
  if (!key.aliases.empty()) meaning += "; also named " + joined(key.aliases);
  return {key.name + " = " + default_text(key), meaning};
}

std::string keys_text(const std::vector<Key>& keys) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& key : keys) rows.push_back(key_row(key));
  return columns(rows);
}

std::string section_name(const Catalog& catalog) {
  if (catalog.section.empty()) return "";
  return catalog.repeated ? "[[" + catalog.section + "]]" : '[' + catalog.section + ']';
}

std::string section_text(const Catalog& catalog) {
  std::string out = "# " + catalog.doc + '\n';
  if (!catalog.section.empty()) out += section_name(catalog) + '\n';
  if (!catalog.entries.empty()) {
    const bool has_default = !catalog.default_kind.empty() && !catalog.may_be_absent();
    const std::string kind = has_default ? '"' + catalog.default_kind + '"' : "(required)";
    out += "kind = " + kind + "  # one of " + joined(catalog.kinds()) + '\n';
  }
  return out + keys_text(catalog.keys);
}

std::string origin_text(const Origin& origin) {
  if (origin.models.empty()) return "";
  std::string text = "# Suits " + origin.models + ": " + origin.effect + ".\n";
  if (!origin.paper.empty()) text += "# " + origin.paper + ".\n";
  for (const std::string& function : origin.functions)
    text += "# In C++: " + function + " (" + origin.header + ").\n";
  return text;
}

std::string kind_text(const Catalog& catalog, const Entry& entry) {
  const std::string keys = keys_text(catalog.keys_of(&entry));
  if (catalog.section.empty()) return "# " + entry.doc + '\n' + keys;
  return "# " + entry.doc + '\n' + origin_text(entry.origin) + section_name(catalog) + "\nkind = \"" +
         entry.name + "\"\n" + keys;
}

// "data" matches [data.train] and [data.eval]; "model.kind" matches [model].
bool is_section(const Catalog& catalog, const std::string& name) {
  const bool has_kind = !catalog.entries.empty();
  return catalog.section == name || catalog.section.starts_with(name + '.') ||
         (has_kind && name == catalog.section + ".kind");
}

bool has_name(const Key& key, const std::string& name) {
  return key.name == name || std::ranges::count(key.aliases, name) > 0;
}

// Texts with the places where they apply; a text occurs once.
class Findings {
 public:
  void add(const std::string& place, const std::string& text) {
    for (auto& [places, known] : found_) {
      if (known == text) {
        if (!std::ranges::count(places, place)) places.push_back(place);
        return;
      }
    }
    found_.push_back({{place}, text});
  }

  std::string text() const {
    std::string out;
    for (const auto& [places, text] : found_) out += (out.empty() ? "" : "\n") + joined(places) + '\n' + text;
    return out;
  }

 private:
  std::vector<std::pair<Names, std::string>> found_;
};

std::string key_place(const Catalog& catalog, const Entry* entry) {
  if (catalog.section.empty() && entry) return catalog.noun + ' ' + entry->name;
  return (catalog.section.empty() ? "the top level" : section_name(catalog)) +
         (entry ? " kind = \"" + entry->name + '"' : "");
}

using KeyPredicate = std::function<bool(const Key&)>;

void add_keys(Findings& findings, const Catalog& catalog, const KeyPredicate& matches) {
  const auto add_from = [&](const std::vector<Key>& keys, const Entry* entry) {
    for (const auto& key : keys)
      if (matches(key)) findings.add(key_place(catalog, entry), columns({key_row(key)}));
  };
  add_from(catalog.keys, nullptr);
  for (const auto& entry : catalog.entries) add_from(entry.keys, &entry);
}

void add_keys(Findings& findings, const Catalog& catalog, const std::string& name) {
  const std::string prefix = catalog.section.empty() ? "" : catalog.section + '.';
  add_keys(findings, catalog, [&](const Key& key) {
    return (name.starts_with(prefix) && has_name(key, name.substr(prefix.size()))) || has_name(key, name);
  });
}

Names every_name(std::span<const Catalog> catalogs, std::span<const ComposerName> composer) {
  Names names;
  const auto add_keys = [&names](const Catalog& catalog, const std::vector<Key>& keys) {
    for (const auto& key : keys) {
      names.push_back(key.name);
      names.push_back(catalog.section + '.' + key.name);
      names.insert(names.end(), key.aliases.begin(), key.aliases.end());
    }
  };
  for (const auto& catalog : catalogs) {
    names.push_back(catalog.section);
    add_keys(catalog, catalog.keys);
    for (const auto& entry : catalog.entries) {
      names.push_back(entry.name);
      add_keys(catalog, entry.keys);
    }
  }
  for (const auto& name : composer) names.push_back(name.name);
  for (auto& word : topic_words(catalogs)) names.push_back(std::move(word));
  return names;
}

// "Composer's SpeedMonitor is [[callbacks]] kind = "speed_monitor"", then the catalog text of that place.
std::string translation(std::span<const Catalog> catalogs, const ComposerName& name) {
  if (name.target.empty()) return name.origin + ' ' + name.name + '\n' + name.note + '\n';
  return name.translation() + '\n' + place_text(catalogs, name.target);
}

// Of kinds that have the name in another spelling.
std::string spelled_kinds_text(std::span<const Catalog> catalogs, const std::string& name) {
  Findings findings;
  for (const auto& catalog : catalogs)
    if (const Entry* entry = catalog.find_entry(name))
      findings.add(catalog.noun + ' ' + entry->name, kind_text(catalog, *entry));
  return findings.text();
}

std::string with_paragraph(const std::string& text, const std::string& more) {
  return text + (text.empty() || more.empty() ? "" : "\n") + more;
}

}  // namespace

std::string list_text(std::span<const Catalog> catalogs, const std::string& what) {
  std::vector<std::pair<std::string, std::string>> rows;
  Names nouns;
  for (const Catalog* catalog : with_kinds(catalogs)) {
    nouns.push_back(plural(*catalog));
    const Names refused = catalog->refused_kinds();
    if (what.empty())
      rows.emplace_back(plural(*catalog),
                        joined(catalog->kinds()) + (refused.empty() ? "" : "; refused: " + joined(refused)));
    if (what != plural(*catalog) && what != catalog->noun) continue;
    for (const auto& entry : catalog->entries) rows.emplace_back(entry.name, entry.doc);
  }
  if (!rows.empty()) return columns(rows);
  const std::string near = nearest_name(what, nouns);
  throw UserError("there are no " + what + " to list; " +
                  (near.empty() ? "there are " + joined(nouns) : "did you mean " + near + "?"));
}

std::string place_text(std::span<const Catalog> catalogs, const std::string& place) {
  Findings findings;
  for (const auto& catalog : catalogs) {
    const std::string section = section_name(catalog);
    if (!section.empty() && section == place) return section_text(catalog);
    for (const auto& entry : catalog.entries)
      if (key_place(catalog, &entry) == place) return kind_text(catalog, entry);
    const std::string prefix = section.empty() ? "" : section + ' ';
    if (place.starts_with(prefix))
      add_keys(findings, catalog, [&](const Key& key) { return key.name == place.substr(prefix.size()); });
  }
  return findings.text();
}

std::string explain_text(std::span<const Catalog> catalogs, const std::string& name) {
  return explain_text(catalogs, std::span<const ComposerName>{}, name);
}

std::string explain_text(std::span<const Catalog> catalogs, std::span<const ComposerName> composer,
                         const std::string& name, std::span<const Guide> guides) {
  Findings findings;
  for (const auto& catalog : catalogs) {
    if (is_section(catalog, name)) findings.add("section " + catalog.section, section_text(catalog));
    for (const Entry& entry : catalog.entries)
      if (entry.name == name) findings.add(catalog.noun + ' ' + name, kind_text(catalog, entry));
    add_keys(findings, catalog, name);
  }
  std::string text = findings.text();
  for (const auto& composers : composer)
    if (composers.is_called(name)) text = with_paragraph(text, translation(catalogs, composers));
  const Guide* guide = guide_for(guides, name);
  const std::string guidance = guide ? guide_text(*guide) : "";
  if (text.empty()) text = spelled_kinds_text(catalogs, name);
  if (!text.empty()) return with_paragraph(with_paragraph(guidance, text), see_also(catalogs, name));
  text = with_paragraph(guidance, topic_text(catalogs, name, WordMatch::kWhole));
  if (!text.empty()) return text;
  const std::string nearest = nearest_name(name, every_name(catalogs, composer));
  // A name that is only a little alike would be an absurd answer: "progressive" for "regression".
  const std::string near = similar_name(nearest, name) ? nearest : "";
  if (near.empty() || edit_distance(near, name) > kTypos)
    text = topic_text(catalogs, name, WordMatch::kBegun);
  if (!text.empty()) return text;
  throw UserError("nothing is called " + name +
                  (near.empty() ? "; `tutti list` shows what there is" : "; did you mean " + near + "?"));
}

}  // namespace tutti
