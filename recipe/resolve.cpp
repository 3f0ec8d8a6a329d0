#include "recipe/resolve.h"

#include <algorithm>
#include <filesystem>

namespace tutti {
namespace {

using Names = std::vector<std::string>;

// Resolves a whole recipe, section by section.
class RecipeResolver {
 public:
  RecipeResolver(const Setting& recipe, std::span<const Catalog> catalogs)
      : recipe_(recipe), catalogs_(catalogs) {
    folder_ = std::filesystem::absolute(recipe.position.file).parent_path();
  }

  Setting resolved() const {
    refuse_unknown_subsections();
    Setting out(Setting::Table{}, "", recipe_.position);
    const Names heads = section_heads();
    refuse_unknown_members(heads);
    for (const auto& catalog : catalogs_) {
      if (catalog.section.empty()) {
        out = resolve_section(catalog, recipe_, {.folder = folder_, .foreign = heads});
      } else {
        place(out, catalog.section, section(catalog));
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
    resolve_section({}, recipe_, {.folder = folder_, .foreign = heads});
  }

  // For [data.train]: the table "data" may have only the catalogs' sections.
  void refuse_unknown_subsections() const {
    for (const auto& catalog : catalogs_) {
      const std::size_t dot = catalog.section.find('.');
      if (dot == std::string::npos) continue;
      const Setting* parent = recipe_.find(catalog.section.substr(0, dot));
      if (parent) refuse_unknown_below(*parent);
    }
  }

  void refuse_unknown_below(const Setting& parent) const {
    Names known;
    for (const auto& catalog : catalogs_) {
      if (catalog.section.starts_with(parent.path + '.')) known.push_back(catalog.section);
    }
    if (!parent.is_table()) parent.fail("expected the tables [" + joined(known) + "]");
    for (const auto& [name, member] : parent.table()) {
      if (std::ranges::count(known, member.path)) continue;
      member.fail(std::string(member.is_table() ? "unknown section" : "unknown key") + "; there are " +
                  joined(known));
    }
  }

  const Setting* find(const std::string& section) const {
    const Setting* at = &recipe_;
    for (std::size_t begin = 0; at && begin <= section.size();) {
      const std::size_t end = std::min(section.find('.', begin), section.size());
      at = at->find(section.substr(begin, end - begin));
      begin = end + 1;
    }
    return at;
  }

  Setting section(const Catalog& catalog) const {
    const Setting* given = find(catalog.section);
    if (catalog.repeated) return repeated(catalog, given);
    if (given) return resolve_section(catalog, *given, {.folder = folder_});
    if (catalog.may_be_absent()) return Setting({}, catalog.section, recipe_.position);
    const Setting empty(Setting::Table{}, catalog.section, recipe_.position);
    return resolve_section(catalog, empty, {.folder = folder_, .missing = true});
  }

  Setting repeated(const Catalog& catalog, const Setting* given) const {
    Setting::Array tables;
    if (given && !given->is_array())
      given->fail("expected [[" + catalog.section + "]], once for each " + catalog.noun);
    if (given) {
      for (const auto& table : given->array()) {
        tables.push_back(resolve_section(catalog, table, {.folder = folder_}));
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
  std::filesystem::path folder_;
};

}  // namespace

Setting resolve(const Setting& recipe, std::span<const Catalog> catalogs) {
  return RecipeResolver(recipe, catalogs).resolved();
}

}  // namespace tutti
