#include "recipe/resolve.h"

#include <algorithm>
#include <filesystem>

#include "recipe/mistakes.h"
#include "runtime/nearest_name.h"

namespace tutti {
namespace {

using Names = std::vector<std::string>;

// Resolves a whole recipe, section by section.
class RecipeResolver {
 public:
  RecipeResolver(const Setting& recipe, std::span<const Catalog> catalogs, Mistakes& mistakes)
      : recipe_(recipe), catalogs_(catalogs), mistakes_(mistakes) {
    folder_ = std::filesystem::absolute(recipe.position.file).parent_path();
  }

  Setting resolved() const {
    refuse_unknown_subsections();
    Setting out(Setting::Table{}, "", recipe_.position);
    const Names heads = section_heads();
    refuse_unknown_members(heads);
    for (const auto& catalog : catalogs_) {
      if (catalog.section.empty()) {
        out = resolve_table(catalog, recipe_, {.folder = folder_, .foreign = heads}, mistakes_);
      } else {
        mistakes_.all.collect([&] { place(out, catalog.section, section(catalog)); });
      }
    }
    return out;
  }

 private:
  Names section_heads() const {
    Names heads;
    for (const auto& catalog : catalogs_) {
      const std::string head = catalog.section.substr(0, catalog.section.find('.'));
      if (!head.empty() && !std::ranges::count(heads, head)) heads.push_back(head);
    }
    return heads;
  }

  // Without a catalog for the top level only sections are allowed there.
  void refuse_unknown_members(const Names& heads) const {
    const auto is_top = [](const Catalog& catalog) { return catalog.section.empty(); };
    if (std::ranges::any_of(catalogs_, is_top)) return;
    resolve_table({}, recipe_, {.folder = folder_, .foreign = heads}, mistakes_);
  }

  // For [data.train]: the table "data" may have only the catalogs' sections.
  void refuse_unknown_subsections() const {
    Names heads;
    for (const auto& catalog : catalogs_) {
      const std::size_t dot = catalog.section.find('.');
      const std::string head = dot == std::string::npos ? "" : catalog.section.substr(0, dot);
      if (head.empty() || std::ranges::count(heads, head)) continue;
      heads.push_back(head);
      if (const Setting* parent = recipe_.find(head))
        mistakes_.all.collect([&] { refuse_unknown_below(*parent); });
    }
  }

  void refuse_unknown_below(const Setting& parent) const {
    Names known;
    for (const auto& catalog : catalogs_) {
      if (catalog.section.starts_with(parent.path + '.')) known.push_back(catalog.section);
    }
    if (!parent.is_table()) mistakes_.meant.insert(known.begin(), known.end());
    if (!parent.is_table()) parent.fail("expected the tables [" + joined(known) + "]");
    for (const auto& [name, member] : parent.table())
      if (!std::ranges::count(known, member.path))
        mistakes_.all.collect([&] { fail_unknown_below(parent, name, member, known); });
  }

  [[noreturn]] void fail_unknown_below(const Setting& parent, const std::string& name, const Setting& member,
                                       const Names& known) const {
    if (member.is_table()) {
      const std::string near = nearest_name(member.path, known);
      const bool sure = !near.empty() && similar_name(near, member.path);
      if (sure) mistakes_.meant.insert(near);
      member.fail_key("unknown section; " +
                      (sure ? "did you mean " + near + "?" : "there are " + joined(known)));
    }
    const NameHint hint = mistakes_.hints.for_key({.section = parent.path, .noun = "", .doc = ""}, nullptr,
                                                  parent.path, name, known);
    mistakes_.meant.insert(hint.meant);
    member.fail_key("unknown key" + hint.text);
  }

  const Setting* find(const std::string& section) const {
    const Setting* at = &recipe_;
    for (std::size_t begin = 0; at && begin <= section.size();) {
      if (!at->is_table()) return nullptr;
      const std::size_t end = std::min(section.find('.', begin), section.size());
      at = at->find(section.substr(begin, end - begin));
      begin = end + 1;
    }
    return at;
  }

  Setting section(const Catalog& catalog) const {
    const Setting* given = find(catalog.section);
    if (catalog.repeated) return repeated(catalog, given);
    if (given && !given->is_none()) return resolve_table(catalog, *given, {.folder = folder_}, mistakes_);
    if (catalog.may_be_absent()) return Setting({}, catalog.section, recipe_.position);
    const Setting empty(Setting::Table{}, catalog.section, recipe_.position);
    return resolve_table(catalog, empty, {.folder = folder_, .missing = true}, mistakes_);
  }

  Setting repeated(const Catalog& catalog, const Setting* given) const {
    Setting::Array tables;
    if (given && !given->is_array())
      given->fail("expected [[" + catalog.section + "]], once for each " + catalog.noun);
    if (given) {
      for (const auto& table : given->array()) {
        tables.push_back(resolve_table(catalog, table, {.folder = folder_}, mistakes_));
      }
    }
    return Setting(std::move(tables), catalog.section, given ? given->position : recipe_.position);
  }

  void place(Setting& out, const std::string& section, Setting value) const {
    const std::size_t dot = section.find('.');
    if (dot == std::string::npos) {
      out.table().emplace_back(section, std::move(value));
      return;
    }
    const std::string head = section.substr(0, dot);
    if (!out.find(head)) {
      const Setting* written = recipe_.find(head);
      out.table().emplace_back(
          head, Setting(Setting::Table{}, head, written ? written->position : recipe_.position));
    }
    out.find(head)->table().emplace_back(section.substr(dot + 1), std::move(value));
  }

  const Setting& recipe_;
  std::span<const Catalog> catalogs_;
  Mistakes& mistakes_;
  std::filesystem::path folder_;
};

}  // namespace

Setting resolve(const Setting& recipe, std::span<const Catalog> catalogs,
                std::span<const ForeignName> foreign) {
  const NameHints hints(catalogs, foreign);
  Mistakes mistakes{hints};
  Setting resolved = RecipeResolver(recipe, catalogs, mistakes).resolved();
  mistakes.throw_all();
  return resolved;
}

}  // namespace tutti
